"""Samplers: which tasks an update plays, from which suite, and how often."""
