"""Second roles around any world: an agent that advises the one who acts, and one that tries first.

``advised:SUITE`` and ``pair:SUITE`` are suites of the tasks of another suite. The world within is any environment that is pure and has one agent; it
is played through its own contract, so that its rules, tools, chance and rewards are its own.
"""
