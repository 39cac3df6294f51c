"""Detectors, one file a fault: each proposes explanations of a log. :mod:`turnwise.trainers.mismatch.deciding` finds them here."""
