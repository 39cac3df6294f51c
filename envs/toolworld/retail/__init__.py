"""An online shop's service desk: orders, variants, payments.

rows      tables and worlds          tools     what the agent can call
stories   requests and traps         rules     the policy, in prose and as checks
"""

from turnwise.envs.toolworld.retail.stories import DOMAIN as DOMAIN
