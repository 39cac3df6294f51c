"""The account behind a person's apps: subscriptions, purchases, devices, data, storage, family, business seats.

state     tables and worlds          actions, changes   what the agent can call
rules     what breaks the policy     language           how people speak of all this
parts     what stories are put together from
wishes    what is asked for, granted or not
paying, keeping, sharing             requests           traps, questions   what is refused, and only asked
"""
