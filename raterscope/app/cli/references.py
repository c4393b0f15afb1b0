"""`raterscope references`: the works that the methods are taken from, as a list or as BibTeX."""

from __future__ import annotations

import argparse

from raterscope.app.errors import InputError, plain
from raterscope.resources.bibliography import bibliography, references_text

__all__ = ["references"]


def references(options: argparse.Namespace) -> int:
    """List all works, or those of the keys that are named."""
    every = bibliography()
    unknown = [key for key in options.keys if key not in every]
    if unknown:
        raise InputError(f"there is no reference {plain(unknown[0], 40)}; `raterscope references` lists all")
    keys = options.keys or list(every)
    if options.bibtex:
        print("\n\n".join(every[key].source for key in keys))
    else:
        for key, line in zip(keys, references_text(keys), strict=True):
            print(f"{key}\t{line}")
    return 0
