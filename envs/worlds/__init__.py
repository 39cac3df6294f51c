"""Shared code of the text worlds and the conversations; not an environment family itself.

commands         a command in plain words out of a message; the base class of environments that take one
sessions         games and conversations of one or two agents: plays, positions, their base class
knobs            knobs checked, splits by hash
solver           A*: gold plans and distance to the goal, where no rule gives them
meta_reasoning   tags of meta-reasoning in messages, and what they are paid
vocabulary       numbers and months in words
"""
