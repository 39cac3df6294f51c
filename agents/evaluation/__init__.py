"""Evaluating a policy: figures with intervals, comparisons, and the folder that holds them."""
