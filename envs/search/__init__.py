"""``turnwise/Search-v0``: find out what a question asks for, in worlds that are made up.

Begin with ``env.py``. ``schema`` → ``graph`` → ``encyclopedia`` is the fictional world and its pages,
``drafts`` the questions about it, ``village`` a world in few words; ``index`` and ``embed`` search, ``library``
keeps passages in memory or on disk, ``remote`` and ``server`` speak Search-R1's protocol; ``answers`` and
``rewards`` judge.
"""
