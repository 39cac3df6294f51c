"""A mobile operator's support, with dual control: the account is the agent's to change, the phone is the customer's.

state     tables, worlds, when a phone works      actions   what the agent can call
device    what the customer can do                tasks     requests and traps          rules   the policy
language  how people speak of all this
"""

from turnwise.envs.toolworld.telecom.tasks import DOMAIN as DOMAIN
