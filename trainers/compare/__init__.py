"""``turnwise compare``: runs, checkpoints and evaluations beside each other, like with like."""
