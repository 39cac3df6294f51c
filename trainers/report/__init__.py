"""A run's report: its records are read from its directory and shown as one HTML page."""
