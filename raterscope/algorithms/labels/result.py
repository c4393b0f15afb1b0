"""What a run says of one question, as it is kept."""

from __future__ import annotations

from dataclasses import dataclass

from raterscope.algorithms.annotators.communities import Communities
from raterscope.algorithms.labels.data import LabelFusion

__all__ = ["LabelResult"]


@dataclass(frozen=True, eq=False)
class LabelResult:
    """What a run says of one question.

    Attributes
    ----------
    fusion : LabelFusion
    truths : str
        What known truths were for, a key of `fusion.TRUTHS`.
    communities : Communities or None
        Annotators by how they answer; None where that was not asked for.
    """

    fusion: LabelFusion
    truths: str
    communities: Communities | None = None
