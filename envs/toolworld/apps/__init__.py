"""A person's apps (mail, calendar, files, payments, notes, music, contacts), and the account behind them.

What the apps can do the agent finds in their documentation (AppWorld's kind, without its code), whose argument names differ
from world to world, so that they cannot be known by heart. The account is a service desk's: who speaks must be verified, each
change needs a yes, and a policy says what is refused.

state     tables and worlds           generic, office, leisure    the APIs
manual    what the documentation calls the arguments
actions   documentation, the tools over the APIs, those of accounts
errands   requests to the apps        parts       what they are put together from
policy.md what the agent reads        rules       what breaks it
account/  subscriptions, purchases, devices, families and teams
tasks     all requests and traps
"""

from turnwise.envs.toolworld.apps.tasks import DOMAIN as DOMAIN
