"""Sections of a report about masks."""
