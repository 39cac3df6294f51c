"""Ways of running a sandbox, one in a file; :mod:`turnwise.tools.sandbox.registry` finds them by name."""
