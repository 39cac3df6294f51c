"""Audits of evaluations: the first is where the others started from."""
