"""A model behind an OpenAI-compatible server: what is sent to it, and how its answers are read."""
