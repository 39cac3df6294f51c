"""Sinks, to which a run's figures go beside its own records, one file each."""
