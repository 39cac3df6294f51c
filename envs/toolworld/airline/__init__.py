"""An airline's service desk: reservations, flights, bags, compensation.

rows      tables and worlds          tools     what the agent can call
stories   requests and traps         rules     the policy, in prose and as checks
"""

from turnwise.envs.toolworld.airline.stories import DOMAIN as DOMAIN
