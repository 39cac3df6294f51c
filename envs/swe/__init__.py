"""Bug fixing in repositories: turnwise/SWE-v0 (docs/swe.md)."""
