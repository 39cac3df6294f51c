"""A mobile operator's support, with dual control: the account is the agent's to change, the phone is the customer's.

state     tables, worlds, when a phone works      actions   what the agent can call
device    what the customer can do                tasks     requests about the account   rules   what breaks the policy
troubles  what can be broken                     traps     what is refused              policy  what the agent reads
parts     what stories are put together from
wishes    what is asked for, granted or not
language  how people speak of all this           hearing   whose name is whose, and on or off
"""

from turnwise.envs.toolworld.telecom.tasks import DOMAIN as DOMAIN
