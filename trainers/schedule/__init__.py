"""The schedule parts; one file each."""
