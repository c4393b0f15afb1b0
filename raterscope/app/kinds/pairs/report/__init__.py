"""Sections of a report about pairs."""
