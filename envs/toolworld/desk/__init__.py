"""A tiny service desk for models that learn within minutes: three words per order, eight turns, one policy.

The policy: what was sent can be neither cancelled nor changed; deny it. Orders are named by trees, so that every
name is one token, and each customer has orders that differ in one word.

state     tables and worlds, in words of one token     tasks    requests and traps
actions   what the agent can call, and the policy      solver   an imperfect scripted policy
"""

from turnwise.envs.toolworld.desk.tasks import DOMAIN as DOMAIN
