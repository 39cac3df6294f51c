"""Models with a short name, one in a file: each gives the folder, the GGUF file or the id of its weights."""
