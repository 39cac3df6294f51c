"""The loss parts; one file each."""
