"""The images of clicks in a report: counts with their intervals, the annotators, a picture of each image."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from raterscope.algorithms.clicks.data import FloatArray, Fusion
from raterscope.algorithms.clicks.fusion import pool_rates
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.report.contents import Block, Facts, Gallery, Picture, Section, Swatch, Table
from raterscope.app.report.masks import run_in_words
from raterscope.app.report.units import NONE, significant
from raterscope.app.review import Spot, match
from raterscope.app.study import ImageEntry, RunEntry, Study
from raterscope.app.study.places import digest_of_file
from raterscope.widgets.figures import estimate
from raterscope.widgets.tokens import DARK

__all__ = ["CountedImage", "clicks_section", "count_interval", "read_counted"]

_SIDE = 560  # pixels of a picture's longer side
_MOST_ANNOTATORS = 60
_DOUBTFUL = (0.1, 0.9)
"""Posteriors between which a spot that nobody decided is in dispute."""


@dataclass(frozen=True, eq=False)
class CountedImage:
    """What is found on one image: the fusion's clusters with the expert's word in place of the posterior.

    Attributes
    ----------
    entry : ImageEntry
    run : RunEntry
    fusion : Fusion
    annotators : tuple of str
        Who looked.
    x, y : (M,) float64
        Clusters, moved where the expert moved them, then the spots that the expert added.
    present : (M,) bool
    posterior : (M,) float64
        0 or 1 where the expert decided.
    decided : (M,) bool
    """

    entry: ImageEntry
    run: RunEntry
    fusion: Fusion
    annotators: tuple[str, ...]
    x: FloatArray
    y: FloatArray
    present: np.ndarray
    posterior: FloatArray
    decided: np.ndarray


def read_counted(study: Study, entry: ImageEntry, spots: Sequence[Spot]) -> CountedImage | None:
    """Read the latest fusion of an image and lay the expert's decisions over it; None without one."""
    latest = study.latest_result(entry.id)
    if latest is None:
        return None
    run, fusion = latest
    clusters, detection = fusion.clustering, fusion.detection
    x, y = clusters.mean[:, 0].copy(), clusters.mean[:, 1].copy()
    present, posterior = detection.detected.copy(), detection.posterior.copy()
    decided = np.zeros(len(x), dtype=bool)
    added = []
    for spot, cluster in zip(spots, match(spots, clusters.mean, clusters.covariance), strict=True):
        if spot.verdict == "skipped":
            continue
        yes = spot.verdict != "rejected"
        if cluster is not None:
            x[cluster], y[cluster], present[cluster] = spot.x, spot.y, yes
            posterior[cluster], decided[cluster] = float(yes), True
        else:
            added.append((spot.x, spot.y, yes))
    extra = np.array(added, dtype=float).reshape(-1, 3)
    return CountedImage(
        entry=entry,
        run=run,
        fusion=fusion,
        annotators=study.clicks(entry.id, run).annotators,
        x=np.concatenate([x, extra[:, 0]]),
        y=np.concatenate([y, extra[:, 1]]),
        present=np.concatenate([present, extra[:, 2] > 0]),
        posterior=np.concatenate([posterior, extra[:, 2]]),
        decided=np.concatenate([decided, np.ones(len(extra), dtype=bool)]),
    )


def count_interval(posterior: FloatArray, covered: float = 0.95) -> tuple[float, int, int]:
    """Give the expected number of structures and the interval that covers it.

    The number is a sum of independent draws, one a spot with its own probability (Poisson's binomial).

    Parameters
    ----------
    posterior : (M,) float64
    covered : float

    Returns
    -------
    mean : float
    low, high : int
        The least number with at most (1 - covered) / 2 of the probability below it, and likewise above.
    """
    chances = np.ones(1)
    for p in posterior[(posterior > 1e-9) & (posterior < 1 - 1e-9)]:
        chances = np.convolve(chances, (1 - p, p))
    sure = int(np.count_nonzero(posterior >= 1 - 1e-9))
    below = np.cumsum(chances)
    tail = (1 - covered) / 2
    low = int(np.searchsorted(below, tail, side="right"))
    high = int(np.searchsorted(below, 1 - tail - 1e-12))
    return float(posterior.sum()), sure + min(low, len(chances) - 1), sure + min(high, len(chances) - 1)


def clicks_section(study: Study, found: Sequence[CountedImage], watch: Watch = silent) -> Section:
    """Tell of all images of clicks that were fused."""
    runs = {one.run.id: one.run for one in found}
    facts = Facts([("Run", run_in_words(run)) for run in runs.values()])
    blocks: list[Block] = [facts, _counts(found), _annotators(found)]
    pictures = []
    for done, one in enumerate(found):
        step = part(watch, done / len(found), (done + 1) / len(found))
        step(0.0, f"drawing {plain(one.entry.name)}")
        picture = _picture(study, one)
        if picture is not None:
            pictures.append(picture)
    if pictures:
        legend = (Swatch(DARK.accent, "present"), Swatch(DARK.disputed, "in dispute, present or not"))
        blocks.append(Gallery("Images with what was found", pictures, legend))
    return Section("Clicks", blocks, breaks=True)


def _counts(found: Sequence[CountedImage]) -> Table:
    rows = []
    for one in found:
        mean, low, high = count_interval(one.posterior)
        low_doubt, high_doubt = _DOUBTFUL
        disputed = ~one.decided & (one.posterior > low_doubt) & (one.posterior < high_doubt)
        rows.append(
            (
                plain(one.entry.name),
                f"{len(one.annotators):,}",
                f"{int(one.fusion.rates.clicks.sum()):,}",
                f"{int(one.present.sum()):,}",
                f"{mean:.1f} ({low} to {high})",
                f"{int(disputed.sum()):,}",
                f"{int(one.decided.sum()):,}",
            )
        )
    if len(found) > 1:
        mean, low, high = count_interval(np.concatenate([one.posterior for one in found]))
        whole = f"{sum(int(one.present.sum()) for one in found):,}"
        rows.append(("all images", "", "", whole, f"{mean:.1f} ({low} to {high})", "", ""))
    note = (
        "Found: spots that count as structures, the expert's decisions included. Expected: the sum of the "
        "probabilities that a spot is a structure, with the interval that holds the number with 95 % if the "
        "spots are independent; it knows nothing of structures that nobody clicked on."
    )
    columns = ("Image", "Annotators", "Clicks", "Found", "Expected (95 %)", "In dispute", "Decided")
    return Table("Counts", columns, rows, note)


def _annotators(found: Sequence[CountedImage]) -> Table:
    names, rates = pool_rates([one.fusion for one in found], [one.annotators for one in found])
    order = np.argsort(-rates.clicks, kind="stable")[:_MOST_ANNOTATORS]
    rows = [
        (
            plain(names[r], 40),
            f"{int(rates.clicks[r]):,}",
            *(_rate(each[r]) for each in (rates.reliability, rates.sensitivity, rates.specificity)),
        )
        for r in order
    ]
    note = "Over all images, with 95 % intervals. Reliability: share of clicks that are no outliers."
    if len(names) > _MOST_ANNOTATORS:
        note += (
            f" Shown are the {_MOST_ANNOTATORS} who clicked most, of {len(names):,}; "
            "`raterscope export --what annotators` writes all."
        )
    columns = ("Annotator", "Clicks", "Reliability", "Sensitivity", "Specificity")
    return Table("Annotators", columns, rows, note)


def _rate(three: FloatArray) -> str:
    return estimate(*map(float, three)) if math.isfinite(three[0]) else NONE


def _picture(study: Study, one: CountedImage) -> Picture | None:
    """Draw an image with what was found; None where its file is not at hand."""
    from raterscope.app.formats.pyramids import is_large, load_overview

    place = study.locate(one.entry)
    if place is None or place.is_dir():
        return None
    try:
        large = is_large(one.entry.width, one.entry.height)  # kept by its content, as the window does
        pixels = load_overview(place, _SIDE, digest_of_file(place) if large else None)
    except (InputError, MemoryError):
        return None
    image = Image.fromarray(pixels).convert("RGB")
    width, height = one.entry.width, one.entry.height
    scale = min(1.0, _SIDE / max(width, height))
    image = image.resize((max(1, round(width * scale)), max(1, round(height * scale))), Image.Resampling.BOX)
    brush = ImageDraw.Draw(image)
    radius = 6
    low, high = _DOUBTFUL
    for x, y, present, p, decided in zip(
        one.x * scale, one.y * scale, one.present, one.posterior, one.decided, strict=True
    ):
        disputed = not decided and low < p < high
        if present or disputed:
            colour = DARK.disputed if disputed else DARK.accent
            box = (x - radius, y - radius, x + radius, y + radius)
            brush.ellipse(
                [edge + shift for edge, shift in zip(box, (-1, -1, 1, 1), strict=True)], outline="#000000"
            )
            brush.ellipse(box, outline=colour, width=2)
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    words = f"{int(one.present.sum())} found"
    if scale < 1:
        words += f"; shown at {significant(100 * scale, 2)} % of its size"
    return Picture(file.getvalue(), image.width, image.height, plain(one.entry.name), words)
