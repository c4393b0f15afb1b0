"""The papers whose figures are measured again."""

from __future__ import annotations

from collections.abc import Mapping

from raterscope.app.papers.clicks import CLICKS
from raterscope.app.papers.experiments import Paper
from raterscope.app.papers.labels import LABELS
from raterscope.app.papers.masks import MASKS
from raterscope.app.papers.pairs import PAIRS
from raterscope.app.papers.thesis import THESIS

__all__ = ["PAPERS"]

PAPERS: Mapping[str, Paper] = {one.name: one for one in (CLICKS, PAIRS, LABELS, MASKS, THESIS)}
