"""What became of fusing one item, whatever was fused, and the versions that it depends on."""

from __future__ import annotations

import platform
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Generic, TypeVar

from raterscope import __version__
from raterscope.algorithms.clicks.data import ClicksError
from raterscope.algorithms.labels.data import LabelsError
from raterscope.algorithms.masks.data import MasksError
from raterscope.algorithms.progress import Cancelled

__all__ = ["Outcome", "attempt", "versions"]

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Outcome(Generic[Result]):
    """What became of one item: an image, a question.

    Attributes
    ----------
    item : str
    fusion : result or None
        None where it failed.
    problem : str
        Why it failed, in a sentence; empty where it did not.
    details : str
        The program's own account of a failure that is its fault.
    seconds : float
    """

    item: str
    fusion: Result | None
    problem: str
    details: str
    seconds: float


def attempt(work: Callable[[], Result]) -> tuple[Result | None, str, str]:
    """Give what the work came to, or the problem in a sentence and the program's own account of it."""
    try:
        return work(), "", ""
    except Cancelled:
        raise
    except (ClicksError, LabelsError, MasksError) as error:
        return None, str(error), ""
    except MemoryError:
        return None, "there is not enough memory to fuse it.", ""
    except Exception as error:
        return None, f"internal error ({type(error).__name__}: {error}).", traceback.format_exc()


def versions() -> dict[str, str]:
    """Name the versions that a result depends on."""
    found = {"raterscope": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "numba", "scikit-learn"):
        found[name] = metadata.version(name)
    return found
