"""Execution of the calls of environments and policies: threads, deadlines, loans, recovery, admission."""
