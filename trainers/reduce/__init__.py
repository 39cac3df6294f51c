"""The reduce parts; one file each."""
