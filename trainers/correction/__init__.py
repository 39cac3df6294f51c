"""The correction parts; one file each."""
