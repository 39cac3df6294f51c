"""``turnwise check``: does an environment keep its contract?"""
