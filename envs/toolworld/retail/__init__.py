"""An online shop's service desk: orders, variants, payments.

state      tables and worlds            actions   what the agent can call
operations what can be changed, when     policy.md what the agent reads
tasks      requests and refusals         questions what is only asked
conditions wishes that depend on what is found out
several    of several orders, or two things in one wish
parts      what stories are put together from

operations.yaml, phrases.yaml, arguments.yaml and language.yaml have the words for all this.
"""

from turnwise.envs.toolworld.retail.tasks import DOMAIN as DOMAIN
