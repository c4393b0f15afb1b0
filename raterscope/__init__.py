"""Raterscope: an expert's review of what many annotators marked.

The functions for notebooks and scripts are imported when they are first used.
"""

from importlib import import_module

_LIBRARY = (
    "ClickResult",
    "DataError",
    "Figure",
    "LabelResult",
    "Labels",
    "MaskResult",
    "OpenReading",
    "OpenStudy",
    "PairResult",
    "Pairs",
    "ReadingTask",
    "Result",
    "fuse_clicks",
    "fuse_labels",
    "fuse_masks",
    "fuse_pairs",
    "open_reading",
    "open_study",
)

__all__ = [*_LIBRARY, "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name in _LIBRARY:
        return getattr(import_module("raterscope.app.library"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LIBRARY})
