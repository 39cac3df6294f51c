"""Decoding of the torch engine: the running batch, the slots of its cache, the drawing of tokens."""
