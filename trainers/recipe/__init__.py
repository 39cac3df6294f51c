"""A recipe: every choice of a training run, read, checked and explained before anything starts."""
