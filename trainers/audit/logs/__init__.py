"""Audits of an episode log, task by task."""
