"""What is required of the parts of a trainer: the tests that ``turnwise check KIND/NAME`` and our own suite run."""
