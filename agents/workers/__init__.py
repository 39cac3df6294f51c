"""Worker processes that environments run in, so that a hang, a crash or a flood costs its episode alone.

``pool`` lends environments, ``remote`` is one as an episode sees it, ``worker`` is a process as its parent sees it,
``child`` is what runs in it, ``keeper`` stands over it, and ``wire`` is what they say to each other.
"""
