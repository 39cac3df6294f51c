"""Programs that run inside of a sandbox, handed over as text."""
