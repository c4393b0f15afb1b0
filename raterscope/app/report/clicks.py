"""The images of clicks in a report: counts with their intervals, the annotators, a picture of each image."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from raterscope.algorithms.clicks.counting import expected_count
from raterscope.algorithms.clicks.data import FloatArray, Fusion
from raterscope.algorithms.clicks.fusion import pool_rates
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.clicks.deciding import Decided, decided_on
from raterscope.app.clicks.parasitaemia import SOURCE, field_of, note_of, tell
from raterscope.app.clicks.running import counted_in
from raterscope.app.errors import InputError, plain
from raterscope.app.report.contents import Block, Facts, Gallery, Picture, Section, Swatch, Table
from raterscope.app.report.runs import run_in_words
from raterscope.app.report.units import NONE, significant
from raterscope.app.review import Measures, Spot, Weighed
from raterscope.app.study import ImageEntry, RunEntry, Study
from raterscope.app.study.places import digest_of_file
from raterscope.widgets.figures import estimate, part_of_one
from raterscope.widgets.tokens import DARK

__all__ = ["CountedImage", "clicks_section", "read_counted"]

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
    spots : Decided
    judged : tuple of Spot
        What the expert decided.
    """

    entry: ImageEntry
    run: RunEntry
    fusion: Fusion
    annotators: tuple[str, ...]
    spots: Decided
    judged: tuple[Spot, ...]


def read_counted(study: Study, entry: ImageEntry, spots: Sequence[Spot]) -> CountedImage | None:
    """Read the latest fusion of an image and lay the expert's decisions over it; None without one."""
    latest = study.latest_result(entry.id)
    if latest is None:
        return None
    run, fusion = latest
    names = study.clicks(entry.id, run).annotators
    return CountedImage(entry, run, fusion, names, decided_on(fusion, spots), tuple(spots))


def clicks_section(
    study: Study, found: Sequence[CountedImage], measures: Measures, watch: Watch = silent
) -> Section:
    """Tell of all images of clicks that were fused."""
    runs = {one.run.id: one.run for one in found}
    facts = Facts([("Run", run_in_words(run)) for run in runs.values()])
    counted = counted_in(runs[max(runs)], study.decisions())
    people = _annotators(found, counted)
    blocks: list[Block] = [facts, _counts(found), _parasitaemia(found, measures), people]
    blocks += _measurements(found, measures)
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
        spots = one.spots
        mean, low, high = expected_count(spots.posterior, spots.low, spots.high)
        low_doubt, high_doubt = _DOUBTFUL
        disputed = ~spots.decided & (spots.posterior > low_doubt) & (spots.posterior < high_doubt)
        rows.append(
            (
                plain(one.entry.name),
                f"{len(one.annotators):,}",
                f"{int(one.fusion.rates.clicks.sum()):,}",
                f"{int(spots.present.sum()):,}",
                f"{mean:,.1f} ({low:,.0f} to {high:,.0f})",
                f"{int(disputed.sum()):,}",
                f"{int(spots.decided.sum()):,}",
            )
        )
    if len(found) > 1:
        together = [
            np.concatenate([getattr(one.spots, name) for one in found])
            for name in ("posterior", "low", "high")
        ]
        mean, low, high = expected_count(*together)
        whole = f"{sum(int(one.spots.present.sum()) for one in found):,}"
        rows.append(("all images", "", "", whole, f"{mean:,.1f} ({low:,.0f} to {high:,.0f})", "", ""))
    note = (
        "Found: spots that count as structures, the expert's decisions included. Expected: the sum of the "
        "probabilities that a spot is a structure, with the interval that holds the number with 95 %; errors "
        "of the probabilities are taken to go all the same way, since the same annotators are behind them. "
        "It knows nothing of structures that nobody clicked on."
    )
    columns = ("Image", "Annotators", "Clicks", "Found", "Expected (95 %)", "In dispute", "Decided")
    return Table("Counts", columns, rows, note)


def _parasitaemia(found: Sequence[CountedImage], measures: Measures) -> Table:
    fields = [
        field for one in found if (field := field_of(one.entry, one.fusion, one.judged, measures)) is not None
    ]
    rows = []
    for told in tell(fields, measures):
        interval = told.interval() or NONE
        rows.append((told.title, told.in_words() or NONE, interval, told.formula))
    note = f"All images together, as fields of one film. {note_of(fields, measures)} Source: {SOURCE}."
    columns = ("Parasitaemia", "Value", "95 % interval", "Formula, or what it needs")
    return Table("Parasitaemia", columns, rows, note, words=frozenset({3}))


def _measurements(found: Sequence[CountedImage], measures: Measures) -> list[Block]:
    """List what was drawn on the images, where something was."""
    rows = []
    for one in found:
        size = measures.pixel_size(one.entry.id, one.entry.pixel_size)
        for shape in measures.shapes.get(one.entry.id, ()):
            pixels = f"{shape.length:,.1f} px" if shape.area is None else f"{shape.area:,.0f} px²"
            known = NONE
            if size is not None:
                length, area = shape.length * size, (shape.area or 0.0) * size**2
                known = f"{significant(length)} µm" if shape.area is None else f"{significant(area)} µm²"
            name = f"{shape.subject.shape} {shape.subject.number}"
            scale = NONE if size is None else f"{size:.4g}"
            rows.append((plain(one.entry.name), name, pixels, known, scale, plain(shape.made.who, 40)))
    columns = ("Image", "What", "Pixels", "Micrometres", "µm a pixel", "By")
    return [Table("Measurements", columns, rows, words=frozenset({1, 5}))] if rows else []


def _annotators(found: Sequence[CountedImage], counted: Mapping[str, Weighed]) -> Table:
    """List who clicked most, and whoever did not count fully in the last run."""
    names, rates = pool_rates([one.fusion for one in found], [one.annotators for one in found])
    order = np.argsort(-rates.clicks, kind="stable").tolist()
    shown = [r for place, r in enumerate(order) if place < _MOST_ANNOTATORS or names[r] in counted]
    rows = [
        (
            plain(names[r], 40),
            f"{int(rates.clicks[r]):,}",
            *(_rate(each[r]) for each in (rates.reliability, rates.sensitivity, rates.specificity)),
            _weight(counted.get(names[r])),
        )
        for r in shown
    ]
    left_out = [name for name in counted if name not in set(names)]
    rows += [(plain(name, 40), *[NONE] * 4, _weight(counted[name])) for name in left_out]
    note = "Over all images, with 95 % intervals. Reliability: share of clicks that are no outliers."
    if len(names) > _MOST_ANNOTATORS:
        note += (
            f" Shown are the {_MOST_ANNOTATORS} who clicked most, of {len(names):,}; "
            "`raterscope export --what annotators` writes all."
        )
    columns = ("Annotator", "Clicks", "Reliability", "Sensitivity", "Specificity", "Weight")
    if not counted:
        return Table("Annotators", columns[:-1], [row[:-1] for row in rows], note)
    note += " Weight: as how much of an annotator one counted in the last run."
    return Table("Annotators", columns, rows, note, words=frozenset({5}))


def _weight(one: Weighed | None) -> str:
    if one is None:
        return "1"
    how = part_of_one(one.weight) if one.weight else "left out"
    return f"{how}: {plain(one.reason) or 'no reason given'}"


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
        one.spots.x * scale,
        one.spots.y * scale,
        one.spots.present,
        one.spots.posterior,
        one.spots.decided,
        strict=True,
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
    words = f"{int(one.spots.present.sum())} found"
    if scale < 1:
        words += f"; shown at {significant(100 * scale, 2)} % of its size"
    return Picture(file.getvalue(), image.width, image.height, plain(one.entry.name), words)
