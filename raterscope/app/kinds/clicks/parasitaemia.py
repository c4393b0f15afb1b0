"""Parasitaemia of a study: detections and decisions on each image, per field, volume of blood and cells."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from raterscope.algorithms.click_classes import sort_classes
from raterscope.algorithms.clicks.counting import (
    LEUKOCYTES_PER_MICROLITRE,
    RED_CELLS_PER_MICROLITRE,
    Rate,
    count_distribution,
    dispersion,
    infected_share,
    per_field,
    per_leukocyte,
    per_volume,
    volume_of,
)
from raterscope.algorithms.clicks.data import BoolArray, FloatArray
from raterscope.algorithms.clicks.result import LEVEL_ERROR, Fusion
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.exports import Request
from raterscope.app.formats.output_files import write_table
from raterscope.app.kinds.clicks.evaluation import apply_decisions
from raterscope.app.review import CountingSubject, Measures, Spot, read_measures
from raterscope.app.review.subjects import PARASITES, STRUCTURES
from raterscope.app.study import ImageEntry, Study
from raterscope.resources.bibliography import bibliography
from raterscope.text import counted, figure, natural

SOURCE = "; ".join(bibliography()[key].full for key in ("who2010", "who2016"))
NEEDED = {
    "leukocytes": "enter the number of leukocytes counted",
    "red_cells": "enter the number of red cells counted",
    "thickness": "enter the thickness of the film",
    "scale": "set the scale of the images",
}
FEW, MANY = 200, 500
"""Number of leukocytes to count parasites against: the usual one, and the one for few parasites."""
ENOUGH = 100
"""Number of parasites below which they are few."""

_CELLS: Mapping[str, tuple[str, ...]] = {
    "leukocytes": ("leukocyte", "leucocyte", "white blood", "white cell", "wbc"),
    "red_cells": ("erythrocyte", "red blood", "red cell", "rbc"),
    "others": ("platelet", "thrombocyte", "artefact", "artifact", "debris"),
}
"""Parts of the class names of other cells than parasites."""

_COLUMNS = ("image", "quantity", "value", "low", "high", "unit", "formula")


@dataclass(frozen=True, eq=False)
class Field:
    """An image with M spots, each a parasite with some probability."""

    image: int  # the image's number in the study
    name: str
    area: float | None  # square micrometres; None if the pixel size is unknown
    present: BoolArray  # (M,): spots that count as structures
    # posterior, low, high: (M,): 0 or 1 where the expert decided; low and high are NaN where there is no
    # interval
    posterior: FloatArray
    low: FloatArray
    high: FloatArray
    # by class: probability of each class, given a structure; NaN for an added spot without class
    shares: Mapping[str, FloatArray] = dataclasses.field(default_factory=dict)
    level_error: float = LEVEL_ERROR  # of the posteriors, see `Detection`

    @property
    def detected(self) -> int:
        """Number of spots that count as structures."""
        return int(self.present.sum())

    def weighed(self, share: FloatArray, present: BoolArray) -> Field:
        """Return the field with posteriors multiplied by a share of each spot, and without classes."""
        ends = (self.posterior * share, self.low * share, self.high * share)
        present = self.present & present
        return Field(self.image, self.name, self.area, present, *ends, level_error=self.level_error)

    def of_class(self, name: str) -> Field:
        """Return the spots of one class."""
        share = np.nan_to_num(self.shares.get(name, np.zeros(len(self.posterior))))
        top = np.max([np.nan_to_num(shares) for shares in self.shares.values()], axis=0, initial=1e-9)
        return self.weighed(share, share >= top)

    def parasites(self) -> Field:
        """Return the field without the spots of other cells, such as leukocytes."""
        others = [name for name in self.shares if kind_of_cell(name)]
        if not others:
            return self
        fields = [self.of_class(name) for name in others]
        share = np.sum([np.nan_to_num(self.shares[name]) for name in others], axis=0)
        return self.weighed(1.0 - share, ~np.any([each.present for each in fields], axis=0))

    @property
    def expected(self) -> float:
        """Expected number of parasites."""
        return float(self.posterior.sum())


@dataclass(frozen=True)
class Quantity:
    """One figure with its formula, or with the missing input."""

    title: str
    unit: str
    rate: Rate | None  # None if an input is missing
    formula: str  # "312 × 8,000 /µl / 200 leukocytes"; or the missing input

    def in_words(self) -> str:
        """Return the figure with its interval and its unit."""
        if self.rate is None:
            return ""
        value, low, high = self.rate.value, self.rate.low, self.rate.high
        return f"{figure(value, low, high)} {self.unit}".rstrip()

    def interval(self) -> str:
        """Return the interval alone: "280 to 350"."""
        if self.rate is None:
            return ""
        low, high = self.rate.low, self.rate.high
        return f"{figure(low, low, high)} to {figure(high, low, high)}"


def kind_of_cell(name: str) -> str:
    """Return which cells a class stands for: leukocytes, red_cells, others; empty for parasites.

    Examples
    --------
    >>> kind_of_cell("White blood cells"), kind_of_cell("ring"), kind_of_cell("infected red cell")
    ('leukocytes', '', '')
    """
    text = name.casefold()
    if "infected" in text.replace("uninfected", "") or "parasit" in text:
        return ""
    return next((cells for cells, stems in _CELLS.items() if any(stem in text for stem in stems)), "")


def counted_noun(fields: Sequence[Field], measures: Measures) -> str:
    """Return the plural noun of the counted structures: as set, or parasites beside blood cells."""
    cells = {kind_of_cell(name) for field in fields for name in field.shares}
    of_blood = measures.of_blood or not cells.isdisjoint(("leukocytes", "red_cells"))
    return measures.noun or (PARASITES if of_blood else STRUCTURES)


def count_field(
    entry: ImageEntry, fusion: Fusion | None, spots: Sequence[Spot], measures: Measures
) -> Field | None:
    """Count the parasites of an image, decisions applied; None without a fusion or decisions."""
    if fusion is None and not spots:
        return None
    spots_now, pixel = apply_decisions(fusion, spots), measures.pixel_size(entry.id, entry.pixel_size)
    return Field(
        image=entry.id,
        name=entry.name,
        area=None if pixel is None else entry.width * entry.height * pixel**2,
        present=spots_now.present,
        posterior=spots_now.posterior,
        low=spots_now.low,
        high=spots_now.high,
        shares=spots_now.shares,
        level_error=spots_now.level_error,
    )


def compute_quantities(
    fields: Sequence[Field], measures: Measures, image: int | None = None
) -> tuple[Quantity, ...]:
    """Compute the parasitaemia of an image, or of all images together as fields of one film.

    `fields`: all images that were fused or decided on. `image`: the only image to count.
    """
    noun = counted_noun(fields, measures)
    if image is not None:
        fields = [field for field in fields if field.image == image]
    if not fields:
        return ()
    cells = _cells_by_class(fields)
    title = noun[0].upper() + noun[1:]
    quantities = _quantities_of([field.parasites() for field in fields], measures, image, cells, title)
    for name in sort_classes({name for field in fields for name in field.shares}):
        own = _quantities_of([field.of_class(name) for field in fields], measures, image, cells, name)
        reported = own[:1] if kind_of_cell(name) else own
        quantities += [
            replace(quantity, title=quantity.title if at == 0 else f"{name}: {_lower(quantity.title)}")
            for at, quantity in enumerate(reported)
            if quantity.rate is not None
        ]
    return tuple(quantities)


def _lower(title: str) -> str:
    return title[0].lower() + title[1:]


def _cells_by_class(fields: Sequence[Field]) -> dict[str, float]:
    """Return the expected numbers of leukocytes and red cells, where classes stand for them.

    The red cells include those that hold a parasite of any class.
    """
    counts: dict[str, float] = {}
    for field in fields:
        for name in field.shares:
            cells = kind_of_cell(name)
            counts[cells] = counts.get(cells, 0.0) + field.of_class(name).expected
    counts = {cells: count for cells, count in counts.items() if cells in NEEDED and count >= 1}
    if "red_cells" in counts:
        counts["red_cells"] += sum(field.parasites().expected for field in fields)
    return counts


def _quantities_of(
    fields: Sequence[Field],
    measures: Measures,
    image: int | None,
    cells: Mapping[str, float],
    title: str,
) -> list[Quantity]:
    """Compute the figures of one class of spots, or of all parasites."""
    study = measures.counting.get(None, CountingSubject())
    chance, number = _sum_of(fields)
    spread = dispersion(np.array([field.expected for field in fields]))
    quantities = [_parasites(title, fields, chance, number)]
    if image is None and len(fields) > 1:
        rate = per_field(chance, len(fields), spread)
        quantities.append(
            _quantity(
                "Per field",
                "",
                rate,
                number / len(fields),
                f"{_format_number(number)} / {len(fields):,} fields",
            )
        )
    quantities += _by_leukocytes(*_counted(fields, measures, "leukocytes", image, cells), study)
    quantities.append(_by_volume(fields, chance, number, spread, study.thickness))
    quantities += _by_red_cells(*_counted(fields, measures, "red_cells", image, cells), study)
    return quantities


def describe_intervals(fields: Sequence[Field], measures: Measures, image: int | None = None) -> str:
    """Describe the sources of uncertainty in the intervals, and the assumptions; see `compute_quantities`."""
    noun = plain(counted_noun(fields, measures))
    if image is not None:
        fields = [field for field in fields if field.image == image]
    sentences = ["95 % intervals include the uncertainty of the detections and of counting"]
    others = sort_classes({name for field in fields for name in field.shares if kind_of_cell(name)})
    if others:
        sentences.append(f"not counted as {noun}: {', '.join(others)}")
    cells, fields = _cells_by_class(fields), [field.parasites() for field in fields]
    spread = dispersion(np.array([field.expected for field in fields]))
    if spread > 1:
        sentences.append(
            f"counts vary {spread:.1f} times as much between fields as by chance, which widens them"
        )
    study = measures.counting.get(None, CountingSubject())
    on, leukocytes = _counted(fields, measures, "leukocytes", image, cells)
    if leukocytes is not None and study.leukocytes_per_microlitre is None:
        sentences.append(f"{_format_number(LEUKOCYTES_PER_MICROLITRE)} leukocytes/µl are assumed")
    if study.red_cells_per_microlitre is None and _counted(fields, measures, "red_cells", image, cells)[1]:
        sentences.append(f"{_format_number(RED_CELLS_PER_MICROLITRE)} red cells/µl are assumed")
    note = "; ".join(sentences) + ". Structures that fewer than two annotators marked are not included."
    if leukocytes is not None and leukocytes < MANY and sum(field.expected for field in on) < ENOUGH:
        note += f" Below {ENOUGH} {noun}, count {MANY} leukocytes."
    return note


def export_counts(study: Study, request: Request, watch: Watch = silent) -> list[Path]:
    """Write the counts of a study and of its images as a table. See `exports.Writer`.

    Raises `InputError` when nothing was fused or decided yet.
    """
    state = study.review_state()
    measures = read_measures(study.decisions(), state)
    entries = [entry for entry in study.images() if not request.items or entry.id in request.items]
    fields = []
    for step, entry in enumerate(entries):
        watch(step / len(entries), f"counting on {plain(entry.name)}")
        result = study.shown.result(entry.id, "clicks")
        field = count_field(entry, None if result is None else result[1], state.spots(entry.id), measures)
        fields += [] if field is None else [field]
    if not fields:
        raise InputError("contains no detections yet; `raterscope run` fuses its clicks", file=study.path)
    if not request.groups:
        return [write_table(request.path, _COLUMNS, _rows(fields, measures))]
    rows = _rows_by_group(fields, measures, request.groups)
    return [write_table(request.path, ("group", "images", *_COLUMNS[1:]), rows)]


def _rows_by_group(
    fields: Sequence[Field], measures: Measures, groups: Mapping[str, tuple[int, ...]]
) -> Iterator[Sequence[object]]:
    """Yield the figures of each group; see `measures_of_groups`."""
    of_groups = measures_of_groups(measures, counted_noun(fields, measures))
    for name, images in groups.items():
        members = [field for field in fields if field.image in images]
        if members:
            for _, *cells in _rows(members, of_groups, summary=True):
                yield name, len(members), *cells


def measures_of_groups(measures: Measures, noun: str) -> Measures:
    """Omit cell counts of all images together, because they are not of one group.

    `noun`: `counted_noun` of all images.
    """
    together = measures.counting.get(None, CountingSubject())
    own = replace(together, leukocytes=None, red_cells=None, noun=noun)
    return replace(measures, counting={**measures.counting, None: own})


def count_groups(
    fields: Sequence[Field], measures: Measures, group_of: Mapping[int, str]
) -> Iterator[tuple[str, int, Sequence[Quantity]]]:
    """Yield each group of images, the number of its images that were counted, and its known figures."""
    of_groups = measures_of_groups(measures, counted_noun(fields, measures))
    members: dict[str, list[Field]] = {}
    for field in fields:
        if field.image in group_of:
            members.setdefault(group_of[field.image], []).append(field)
    for name in sorted(members, key=natural):
        known = [each for each in compute_quantities(members[name], of_groups) if each.rate is not None]
        yield name, len(members[name]), known


def _rows(
    fields: Sequence[Field], measures: Measures, *, summary: bool = False
) -> Iterator[Sequence[object]]:
    """Yield the figures of all images together, if there are several, and of each unless `summary`."""
    all_images = (None,) if summary or len(fields) > 1 else ()
    for image in (*all_images, *(() if summary else (field.image for field in fields))):
        image_fields = [field for field in fields if image in (None, field.image)]
        name = "" if image is None else image_fields[0].name
        detected = sum(field.parasites().detected for field in image_fields)
        yield name, "Found", detected, None, None, "", ""
        for quantity in compute_quantities(fields, measures, image):
            if quantity.rate is not None:
                yield (
                    name,
                    quantity.title,
                    quantity.rate.value,
                    quantity.rate.low,
                    quantity.rate.high,
                    quantity.unit,
                    quantity.formula,
                )


def _sum_of(fields: Sequence[Field]) -> tuple[FloatArray, float]:
    """Return the distribution of the number of parasites on several fields, and its mean."""
    posterior, low, high = (
        np.concatenate([getattr(field, name) for field in fields]) for name in ("posterior", "low", "high")
    )
    error = max(field.level_error for field in fields)
    return count_distribution(posterior, low, high, error), float(posterior.sum())


def _parasites(title: str, fields: Sequence[Field], chance: FloatArray, number: float) -> Quantity:
    below = np.cumsum(chance)
    low, high = (float(np.count_nonzero(below < share)) for share in (0.025, 0.975))
    spot_count = sum(field.detected for field in fields)
    on = f" on {counted(len(fields), 'field')}" if len(fields) > 1 else ""
    return Quantity(title, "expected", Rate(number, low, high), f"{spot_count:,} found{on}")


def _counted(
    fields: Sequence[Field],
    measures: Measures,
    cells: str,
    image: int | None,
    by_class: Mapping[str, float],
) -> tuple[Sequence[Field], float | None]:
    """Return the fields on which cells were counted, and their number.

    A count for all images together comes first, then the images with their own counts, then the spots whose
    class stands for the cells.
    """
    together: float | None = getattr(measures.counting.get(None), cells, None)
    if image is None and together is not None:
        return fields, together
    counts_of: Mapping[int | None, float | None] = {
        key: getattr(counting, cells) for key, counting in measures.counting.items() if key is not None
    }
    counted_fields = [field for field in fields if counts_of.get(field.image) is not None]
    if not counted_fields and cells in by_class:
        return fields, by_class[cells]
    return counted_fields, sum(
        counts_of[field.image] or 0.0 for field in counted_fields
    ) if counted_fields else None


def _by_leukocytes(
    fields: Sequence[Field], leukocytes: float | None, study: CountingSubject
) -> Iterator[Quantity]:
    against = MANY if leukocytes is not None and leukocytes >= MANY else FEW
    titles = (f"Per {against} leukocytes", "Per microlitre, by leukocytes")
    if leukocytes is None:
        yield from (Quantity(title, "", None, NEEDED["leukocytes"]) for title in titles)
        return
    density = study.leukocytes_per_microlitre or LEUKOCYTES_PER_MICROLITRE
    chance, number = _sum_of(fields)
    spread = dispersion(np.array([field.expected for field in fields]))
    cells = f"{_format_number(leukocytes)} leukocytes"
    for title, times, unit, factor in (
        (titles[0], against, "", f"{against}"),
        (titles[1], density, "/µl", f"{_format_number(density)} /µl"),
    ):
        rate = per_leukocyte(chance, leukocytes, times, spread)
        formula = f"{_format_number(number)} × {factor} / {cells}"
        yield _quantity(title, unit, rate, number * times / leukocytes, formula)


def _by_volume(
    fields: Sequence[Field], chance: FloatArray, number: float, spread: float, thickness: float | None
) -> Quantity:
    title = "Per microlitre, by volume"
    areas = [field.area for field in fields if field.area is not None]
    if thickness is None or len(areas) < len(fields):
        missing = NEEDED["thickness" if thickness is None else "scale"]
        return Quantity(title, "/µl", None, missing)
    volume = volume_of(sum(areas), thickness)
    formula = f"{_format_number(number)} / ({sum(areas) / 1e6:.4g} mm² × {thickness:g} µm = {volume:.3g} µl)"
    return _quantity(title, "/µl", per_volume(chance, volume, spread), number / volume, formula)


def _by_red_cells(
    fields: Sequence[Field], red_cells: float | None, study: CountingSubject
) -> Iterator[Quantity]:
    titles = (("Infected red cells, thin film", "%"), ("Per microlitre, by red cells", "/µl"))
    number, missing = 0.0, NEEDED["red_cells"]
    if red_cells is not None:
        chance, number = _sum_of(fields)
        missing = f"{_format_number(red_cells)} red cells are fewer than the parasites"
    if red_cells is None or red_cells < max(number, 1.0):
        yield from (Quantity(title, unit, None, missing) for title, unit in titles)
        return
    spread = dispersion(np.array([field.expected for field in fields]))
    share, cells = infected_share(chance, red_cells, spread), f"{_format_number(red_cells)} red cells"
    density = study.red_cells_per_microlitre or RED_CELLS_PER_MICROLITRE
    formulas = (
        f"{_format_number(number)} infected / {cells}",
        f"{_format_number(number)} × {_format_number(density)} /µl / {cells}",
    )
    for (title, unit), times, formula in zip(titles, (100.0, density), formulas, strict=True):
        rate = Rate(number / red_cells * times, share.low * times, share.high * times)
        yield Quantity(title, unit, rate, formula)


def _quantity(title: str, unit: str, rate: Rate, value: float, formula: str) -> Quantity:
    return Quantity(title, unit, Rate(value, rate.low, rate.high), formula)


def _format_number(number: float) -> str:
    """Format a number for a formula."""
    return f"{number:,.0f}" if math.isclose(number, round(number), abs_tol=0.005) else f"{number:,.1f}"
