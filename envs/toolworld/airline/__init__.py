"""An airline's service desk: reservations, flights, bags, compensation.

rows      tables and worlds          tools     what the agent can call
stories   requests                   rules     the policy, in prose and as checks
traps     what must be refused       parts     what stories are put together from
"""

from turnwise.envs.toolworld.airline.stories import DOMAIN as DOMAIN
