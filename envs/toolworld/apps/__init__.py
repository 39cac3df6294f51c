"""A person's apps: mail, calendar, files, payments, notes, music, contacts. AppWorld's kind, without its code.

The agent has six tools; what the apps can do it finds in their documentation, whose argument names differ from
world to world, so that they cannot be known by heart.

state     tables and worlds           generic, office, leisure    the APIs
manual    what the documentation calls the arguments
actions   documentation, and the tools over the APIs              parts, tasks      requests
rules     what the agent is told
"""

from turnwise.envs.toolworld.apps.tasks import DOMAIN as DOMAIN
