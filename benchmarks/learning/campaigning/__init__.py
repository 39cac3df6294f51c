"""The parts of ``benchmarks/learning/campaign.py``."""
