"""The guide parts; one file each."""
