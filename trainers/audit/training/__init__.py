"""Audits of a training run by its records."""
