"""The shape parts; one file each."""
