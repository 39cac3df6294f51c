"""Rollout strategies: independent episodes, branching trees, or forks that estimate values."""
