"""The judge parts; one file each: what someone else says of the turns, before they are rewarded."""
