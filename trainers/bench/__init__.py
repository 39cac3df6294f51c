"""Benchmarks of the learner: ``turnwise bench train`` and ``turnwise bench credit``."""
