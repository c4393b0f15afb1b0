"""The masks workspace."""
