"""Nouns of the kinds of annotation, for decisions, messages and reports."""

from __future__ import annotations

from typing import NamedTuple


class Nouns(NamedTuple):
    """Nouns of a kind."""

    item: str  # what the study lists: "image", "case", "question"
    detail: str  # unit of decisions within an item: "detection", "region", "task", "annotator"


NOUNS: dict[str, Nouns] = {
    "clicks": Nouns("image", "detection"),
    "masks": Nouns("case", "region"),
    "labels": Nouns("question", "task"),
    "pairs": Nouns("question", "annotator"),
}
"""By kind; `raterscope.app.kinds.registry` adds those of further kinds."""
