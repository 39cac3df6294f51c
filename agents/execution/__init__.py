"""How calls of environments and policies are carried out: threads, deadlines, loans, recovery, admission."""
