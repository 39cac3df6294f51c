"""Code that runs inside a sandbox. It is handed over as source, so it imports nothing but the standard library."""
