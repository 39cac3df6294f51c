"""The credit parts; one file each."""
