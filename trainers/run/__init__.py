"""A training run from its first check to its report: the loop, its session, its directory on disk."""
