"""The papers whose figures are measured again."""

from __future__ import annotations

from collections.abc import Mapping

from raterscope.app.papers import clicks, masks, smears, volumes
from raterscope.app.papers.experiments import Paper
from raterscope.app.papers.labels import LABELS
from raterscope.app.papers.pairs import PAIRS
from raterscope.app.papers.thesis import THESIS

__all__ = ["PAPERS"]

CLICKS = Paper(
    name="clicks",
    title="Clicks: the OEM-DEM paper",
    reference="pages2019",
    experiments=(*clicks.EXPERIMENTS, smears.SIZES, smears.STREAMED),
    unpublished=clicks.UNPUBLISHED,
)

MASKS = Paper(
    name="masks",
    title="Masks: the robust fusion paper",
    reference="audelan2022",
    experiments=(
        *masks.EXPERIMENTS,
        volumes.NODULES,
        volumes.LARGE_PROSTATES,
        volumes.PROSTATE_RATERS,
    ),
    unpublished=masks.UNPUBLISHED,
)

PAPERS: Mapping[str, Paper] = {one.name: one for one in (CLICKS, PAIRS, LABELS, MASKS, THESIS)}
