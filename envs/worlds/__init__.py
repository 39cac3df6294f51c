"""What the text worlds (household, grid, craft) share.

commands   a command in plain words out of a message; the base class of environments that take one
knobs      knobs checked, splits by hash
search     A*: gold plans and distance to the goal, where no rule gives them
"""
