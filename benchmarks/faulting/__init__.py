"""The fault campaign of ``benchmarks/faults.py``.

``draw`` chooses faults from a seed, ``trial`` carries one out, ``child`` is the process it happens in, ``worlds`` are
the environments that misbehave, ``server`` is the policy server that does, ``power`` takes back what was never synced,
and ``judge`` says what came of it.
"""
