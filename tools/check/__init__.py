"""Requirements of dialects and sandboxes: the tests that `turnwise check` and our own suite run."""
