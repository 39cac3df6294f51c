"""The reward parts; one file each."""
