"""The teacher parts; one file each."""
