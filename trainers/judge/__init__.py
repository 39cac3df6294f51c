"""The judges, one file each: they label single turns before rewards are computed."""
