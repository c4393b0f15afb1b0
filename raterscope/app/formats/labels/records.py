"""Records of the label readers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["LabelTable", "TrueLabels"]


@dataclass(frozen=True, eq=False)
class LabelTable:
    """The votes of many annotators on many tasks, V in all, by column.

    Attributes
    ----------
    path : Path
        The file they come from.
    question : str
        What was asked, where the file asks several things or names it; else empty.
    annotators, tasks, outputs : tuple of names
        Each once: annotators and tasks in the order of first appearance; outputs in the file's own order
        where it has one, else by value where all are numbers, else by the alphabet.
    annotator, task : (V,) int32
    label : (V,) int16
    time : (V,) float64, optional
        Seconds from any origin, NaN where it is not known.
    pictures : mapping of task index to a file name or path
        Where the file says which picture a task is of; else a task's own name is looked for.
    missing : int
        Rows without a label, which are left out.
    notices : tuple of str
        What the person should know of how the file was read, a sentence each.
    """

    path: Path
    question: str
    annotators: tuple[str, ...]
    tasks: tuple[str, ...]
    outputs: tuple[str, ...]
    annotator: NDArray[np.int32]
    task: NDArray[np.int32]
    label: NDArray[np.int16]
    time: NDArray[np.float64] | None = None
    pictures: Mapping[int, str] = field(default_factory=dict)
    missing: int = 0
    notices: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.task)


@dataclass(frozen=True, eq=False)
class TrueLabels:
    """The true classes of some tasks, N in all.

    Attributes
    ----------
    path : Path
    question : str
    tasks : tuple of N names, each once
    classes : tuple of names
        As `LabelTable.outputs`.
    label : (N,) int16
        Index into `classes`.
    notices : tuple of str
    """

    path: Path
    question: str
    tasks: tuple[str, ...]
    classes: tuple[str, ...]
    label: NDArray[np.int16]
    notices: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.tasks)
