"""Second roles around any world: an agent that advises the one who acts, one that tries first; and a look back that cuts what went wrong.

``advised:SUITE``, ``pair:SUITE`` and ``refined:SUITE`` are suites of the tasks of another suite. The world within is any environment that is pure and has one agent; it
is played through its own contract, so that its rules, tools, chance and rewards are its own.
"""
