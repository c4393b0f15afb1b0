"""The command line."""

from raterscope.app.cli.program import main

__all__ = ["main"]
