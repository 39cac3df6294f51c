"""Benchmarks of episodes: ``turnwise bench rollout``, ``bench client``, ``bench gateway`` and ``bench env-workers``."""
