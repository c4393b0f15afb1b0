"""The labels workspace."""
