"""Text-mode web shopping with WebShop's rules and procedural catalogues."""
