"""Errors of decoders on untrusted files, as one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from raterscope.algorithms.progress import Cancelled
from raterscope.app.errors import InputError

__all__ = ["in_a_sentence"]


@contextmanager
def in_a_sentence(path: Path, expected: str) -> Iterator[None]:
    """Turn whatever a reader says of a damaged file into a sentence; expected is "an image", "a file"."""
    try:
        yield
    except (InputError, Cancelled):
        raise
    except FileNotFoundError as error:
        raise InputError("is not there", file=path) from error
    except IsADirectoryError as error:
        raise InputError(f"is a folder; expected {expected}", file=path) from error
    except PermissionError as error:
        raise InputError("cannot be read: you lack the permission", file=path) from error
    except MemoryError as error:
        raise InputError("does not fit into this computer's memory", file=path) from error
    except Exception as error:  # readers of strangers' files raise anything
        noun = expected.split()[-1]
        raise InputError(f"cannot be read: the {noun} is damaged or cut short", file=path) from error
