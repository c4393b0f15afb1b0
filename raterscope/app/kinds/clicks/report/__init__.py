"""Sections of a report about clicks."""
