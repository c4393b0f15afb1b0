"""The files of a simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Drawn:
    """Data, truth, and what is beside them.

    Attributes
    ----------
    data : tuple of Path
        The annotations, and what they were made on.
    truth : tuple of Path
        The truth that can be imported, and compared with by `fuse --truth`.
    beside : tuple of Path
        Other ground truth: of annotators, of components, of the order of items.
    radius : float, optional
        How far a detection may lie from a true place, pixels.
    classes : mapping of output to class
        Classes of the outputs, where they differ from the outputs.
    structure : str, optional
        Structure that the masks show.
    """

    data: tuple[Path, ...]
    truth: tuple[Path, ...] = ()
    beside: tuple[Path, ...] = ()
    radius: float | None = None
    classes: Mapping[str, str] = field(default_factory=dict)
    structure: str | None = None
