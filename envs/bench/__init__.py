"""Benchmarks of environments: ``turnwise bench env``."""
