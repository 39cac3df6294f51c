"""Contest problems: the largest tests pass only with an algorithm of the right order, and each problem has a slow one too."""
