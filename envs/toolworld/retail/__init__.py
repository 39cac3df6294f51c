"""An online shop's service desk: orders, variants, payments.

state     tables and worlds          actions   what the agent can call
tasks     requests                   rules     what breaks the policy
questions what is only asked         policy    what the agent reads
traps     what is refused            parts     what stories are put together from
language  how people speak of all this
asking    wishes in whole sentences  wishes    wishes as parts of others
conditions wishes that depend on what is found out
several   of several at once         pairs     two things in one wish
"""

from turnwise.envs.toolworld.retail.tasks import DOMAIN as DOMAIN
