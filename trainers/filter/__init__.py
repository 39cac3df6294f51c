"""The filter parts; one file each."""
