"""Sections of a report about labels."""
