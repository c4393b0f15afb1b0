"""Annotators, beside each other and over many cases."""
