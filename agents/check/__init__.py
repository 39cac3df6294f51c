"""Requirements of engines and policies: the tests that `turnwise check` and our own suite run."""
