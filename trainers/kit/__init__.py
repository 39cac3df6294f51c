"""Arithmetic that parts share: groups, tokens, token-level credit, rewards; toy batches to try them on."""
