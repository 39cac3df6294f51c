"""Audits of an environment's own reward: what it pays that is no solution."""
