"""What the torch engine decodes with: the running batch, the slots of its cache, the drawing of tokens."""
