"""Signals: what is measured of turns, tokens, trajectories or groups for the parts that need it."""
