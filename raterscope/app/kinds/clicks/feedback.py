"""The clearest mistakes of one annotator of clicks, for their feedback page."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from PIL import Image

from raterscope.algorithms.progress import Watch, part, steps_of
from raterscope.app.errors import InputError, plain
from raterscope.app.page.contents import Gallery, Picture, Section, Table
from raterscope.app.page.pictures import photograph
from raterscope.app.review import fold, match
from raterscope.app.study import Study
from raterscope.figures.canvas import Pen, PixelCanvas
from raterscope.figures.colours import DARK

MISTAKES = 5
CLEAR = 0.9
_SIDE, _SHOWN = 96, 288
"""Width of a picture in pixels of the image and of the page."""


class _Mistake(NamedTuple):
    """A spot that the annotator missed, or marked though there is nothing."""

    certain: float
    name: str
    image: int
    x: float
    y: float
    missed: bool
    why: str


def mistakes(study: Study, names: Collection[str], watch: Watch) -> list[Section]:
    """List up to five spots that an annotator clearly missed, or clearly marked in error."""
    state = fold(study.decisions())
    listed: list[_Mistake] = []
    marked_any = False
    for entry, _ in steps_of(part(watch, 0.0, 0.7), study.items()["clicks"]):
        result = study.shown.result(entry.id)
        if result is None:
            continue
        run, fusion = result
        rows = [row for row, name in enumerate(study.clicks(entry.id, run).annotators) if name in names]
        if not rows:
            continue
        marked_any = True
        posterior = fusion.detection.posterior.astype(np.float64)
        verdict = np.full(len(posterior), np.nan)
        spots = [spot for spot in state.spots(entry.id) if spot.verdict != "skipped"]
        clusters = match(spots, fusion.clustering.mean, fusion.clustering.covariance)
        for spot, cluster in zip(spots, clusters, strict=True):
            if cluster is not None:
                verdict[cluster] = spot.verdict != "rejected"
        present = np.where(np.isfinite(verdict), verdict == 1, posterior >= 0.5)
        certain = np.where(np.isfinite(verdict), 2.0, np.maximum(posterior, 1 - posterior))
        marked = fusion.marked[rows].any(axis=0)
        for at in np.flatnonzero((marked != present) & (certain >= CLEAR)).tolist():
            why = "decided by the expert" if certain[at] > 1 else f"probability {posterior[at]:.2f}"
            x, y = fusion.clustering.mean[at].tolist()
            listed.append(_Mistake(float(certain[at]), entry.name, entry.id, x, y, bool(present[at]), why))
    if not marked_any:
        return []
    title = "Your clearest mistakes"
    if not listed:
        return [Section(title, [Table("", ("",), [("No clear mistake among your clicks.",)])])]
    listed.sort(key=lambda mistake: -mistake.certain)
    rows_of_table = [
        (
            plain(mistake.name, 80), f"{mistake.x:.0f}, {mistake.y:.0f}",
            "missed" if mistake.missed else "marked, no structure", mistake.why,
        )
        for mistake in listed[:MISTAKES]
    ]  # fmt: skip
    note = f"The clearest of {len(listed):,} spots that the expert decided or whose probability is clear."
    heads = ("Image", "Position, px", "Mistake", "Known from")
    table = Table("", heads, rows_of_table, note, frozenset({2, 3}))
    pictures = [
        picture
        for mistake, step in steps_of(part(watch, 0.7, 1.0), listed[:MISTAKES])
        if (picture := _crop(study, mistake, step)) is not None
    ]
    return [Section(title, [table, Gallery("", pictures)] if pictures else [table])]


def _crop(study: Study, mistake: _Mistake, watch: Watch) -> Picture | None:
    """Cut the surroundings of a spot; None where the image is missing or too large for that."""
    from raterscope.app.formats.images import load_image
    from raterscope.app.formats.pyramids import is_large

    watch(0.0, "cutting pictures")
    entry = study.image(mistake.image)
    path = study.locate(entry)
    if path is None or path.is_dir() or is_large(entry.width, entry.height):
        return None
    try:
        image = Image.fromarray(load_image(path)).convert("RGB")
    except (InputError, OSError, MemoryError):
        return None
    left, top = round(mistake.x - _SIDE / 2), round(mistake.y - _SIDE / 2)
    cut = image.crop((left, top, left + _SIDE, top + _SIDE))
    cut = cut.resize((_SHOWN, _SHOWN), Image.Resampling.BICUBIC)
    canvas = PixelCanvas.over(cut)
    ink = DARK.accent if mistake.missed else DARK.rejected
    centre = np.array([[_SHOWN / 2, _SHOWN / 2]])
    for radius, pen in ((37.0, Pen("#000000", 1.0)), (36.0, Pen(ink, 2.0))):
        canvas.symbols(centre, "disc", np.array([2 * radius]), pen, "")
    caption = "missed" if mistake.missed else "marked, no structure"
    return photograph(canvas.pixels(), plain(entry.name, 60), f"{caption} ({mistake.why})")
