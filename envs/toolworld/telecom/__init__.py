"""A mobile operator's support, with dual control: the account is the agent's to change, the phone is the customer's.

rows      tables, worlds, when a phone works      tools     what the agent can call
device    what the customer can do                stories   requests and traps          rules   the policy
"""

from turnwise.envs.toolworld.telecom.stories import DOMAIN as DOMAIN
