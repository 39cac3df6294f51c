"""Engines sample tokens: vLLM, plain PyTorch, recorded answers."""
