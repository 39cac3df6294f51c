"""Messages ⇄ tokens: text encoding, chat templates, the renderer."""
