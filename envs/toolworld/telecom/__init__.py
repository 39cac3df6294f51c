"""A mobile operator's support, with dual control: the account is the agent's to change, the phone is the customer's.

state       tables, worlds, when a phone works     actions     what the agent can call
device      what the customer can do               policy.md   what the agent reads
operations  what can be changed, and when          conditions  what hangs on something, questions, pairs
troubles    what can be broken                     parts       what stories are put together from
hearing     whose name is whose, and on or off

operations.yaml, phrases.yaml, deeds.yaml and language.yaml have the words for all this.
"""

from turnwise.envs.toolworld.telecom.tasks import DOMAIN as DOMAIN
