"""Ways in which models write tool calls, one file each; :mod:`turnwise.tools.dialects.registry` lists them."""
