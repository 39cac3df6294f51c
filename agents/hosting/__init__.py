"""Sessions that others open: a gateway that serves a policy, on tasks of a suite or in worlds of the user's own."""
