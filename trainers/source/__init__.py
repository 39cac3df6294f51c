"""The source parts; one file each."""
