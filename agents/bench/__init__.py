"""Benchmarks of episodes: ``turnwise bench rollout``, ``turnwise bench gateway`` and ``turnwise bench env-workers``."""
