"""Workspace of the annotators of all kinds."""
