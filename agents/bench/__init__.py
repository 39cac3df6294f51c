"""Benchmarks of episodes: ``turnwise bench rollout`` and ``turnwise bench env-workers``."""
