"""Language models: small ones made from scratch, and finding published ones."""
