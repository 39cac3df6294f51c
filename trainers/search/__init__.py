"""Searches at evaluation: several tries at one task, a scorer, a budget of sampled tokens, and one episode in the end.

``core`` is the vocabulary: what a search sees of a try (`SearchNode`, without rewards and without a verdict), what scores it
(`NodeScorer`), and what plays, counts and stops it (`Searcher`). ``run`` plays an evaluation's requests by a search. One paper, one file.
"""
