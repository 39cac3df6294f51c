"""Requirements for the parts of a trainer: the tests that ``turnwise check KIND/NAME`` and our own suite run."""
