"""The hack meter: a sequential test of what a run pays for against what it is to pay for."""
