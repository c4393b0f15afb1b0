"""Functions and results for notebooks and scripts, which `import raterscope` offers."""

from raterscope.app.library.fusion import Labels, Pairs, fuse_clicks, fuse_labels, fuse_masks, fuse_pairs
from raterscope.app.library.inputs import DataError
from raterscope.app.library.results import ClickResult, Figure, LabelResult, MaskResult, PairResult, Result
from raterscope.app.library.studies import OpenReading, OpenStudy, ReadingTask, open_reading, open_study

__all__ = [
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
]
