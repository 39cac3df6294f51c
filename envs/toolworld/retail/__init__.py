"""An online shop's service desk: orders, variants, payments.

state     tables and worlds          actions   what the agent can call
tasks     requests and traps         rules     the policy, in prose and as checks
language  how people speak of all this
"""

from turnwise.envs.toolworld.retail.tasks import DOMAIN as DOMAIN
