"""The pairs workspace."""
