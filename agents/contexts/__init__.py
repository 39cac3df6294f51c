"""Context managers: what of a long conversation a policy is shown, and what it writes down for its own later contexts."""
