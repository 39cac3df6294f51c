"""Proposers: further tasks of an update, made of what was just played."""
