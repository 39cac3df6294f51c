"""What pyright takes transformers for: its own __init__ names every model, and binding those took most of pyright's time."""

from typing import Any

def __getattr__(name: str) -> Any: ...
