"""Sections on masks in a report: each case with slices, tables and decisions; all cases; variability."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from raterscope.algorithms.masks.catalogue import FUSERS
from raterscope.algorithms.masks.data import slices_of, volumes_of
from raterscope.algorithms.masks.grid import describe_slices
from raterscope.algorithms.masks.voting import with_margin
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.app.errors import plain
from raterscope.app.kinds.kind import Report, ReportPart, ReportRequest
from raterscope.app.kinds.masks.methods import (
    BASELINE,
    FIGURES,
    REFERENCES,
    ComparedMethods,
    MethodBox,
    compare_cases,
    compared_title,
    load_methods,
    method_boxes,
    methods_plans,
)
from raterscope.app.kinds.masks.report.agreement import (
    agreement_section,
    rater_trees_section,
    variability_section,
)
from raterscope.app.kinds.masks.report.slices import (
    CONSENSUS,
    DOUBT,
    TRUTH,
    Layer,
    SliceScene,
    StructureFigures,
    Voxels,
    colour_of,
    draw_slice,
    most_disputed,
    read_figures,
    read_voxels,
    window_of,
)
from raterscope.app.kinds.masks.report.tables import (
    alternatives_table,
    band_table,
    dice_table,
    disputes_table,
    model_table,
    raters_table,
)
from raterscope.app.kinds.masks.runs import explain_not_converged, gather
from raterscope.app.page.contents import (
    MAX_ROWS,
    NONE,
    Block,
    Facts,
    Gallery,
    Notices,
    Picture,
    Section,
    Swatch,
    Table,
    Units,
    draw_paper,
    run_in_words,
    shortened,
    significant,
    units_of,
)
from raterscope.app.page.variability import READERS
from raterscope.app.study import ImageEntry, RunEntry, Study
from raterscope.app.study.masks import read_masks
from raterscope.figures.drawing import PaperChart
from raterscope.figures.evaluation import BoxView, box_chart
from raterscope.text import counted, duration, small_figure

_ROOM = 8.0
"""Margin in mm around a structure whose tissue determines the window."""


MAX_SHOWN = 50
"""Maximum number of cases shown with slices, the most disputed first."""


def case_section(
    study: Study,
    structures_shown: Sequence[StructureFigures],
    voxels: Voxels,
    excluded: Mapping[str, str],
    watch: Watch,
) -> Section:
    """Report on one case.

    `structures_shown`: structures of the case, at least one. `excluded`: reasons of the present exclusions.
    """
    entry, run = structures_shown[0].entry, structures_shown[0].run
    numbers = {name: number for number, name in enumerate(study.annotators())}
    inner = []
    for figures, step in steps_of(watch, structures_shown):
        inner.append(_structure(study, figures, voxels, numbers, excluded, step))
    facts = [("Grid", grid_in_words(entry))]
    if entry.modality:
        facts.append(("Modality", plain(entry.modality)))
    raters = dict.fromkeys(name for figures in structures_shown for name in figures.fusion.annotators)
    facts += [
        ("Raters", f"{len(raters)}: {', '.join(plain(name, 40) for name in raters)}"),
        ("Structures", ", ".join(plain(figures.structure) for figures in structures_shown)),
        ("Run", run_in_words(run)),
    ]
    slice_sentences = describe_slices(entry.lattice)
    other_notices = [
        notice
        for notice in voxels.notices
        if not any(sentence.rstrip(".") in notice for sentence in slice_sentences)
    ]
    blocks: list[Block] = (
        [Notices([*slice_sentences, *other_notices])] if slice_sentences or other_notices else []
    )
    if len(structures_shown) == 1:
        own_block, *others = inner[0].blocks
        assert isinstance(own_block, Facts)
        blocks += [Facts([*facts, *own_block.rows]), *others]
        inner = []
    else:
        blocks.append(Facts(facts))
    return Section(plain(entry.name), blocks, inner, breaks=True)


def cases_table(cases: Sequence[Sequence[StructureFigures]]) -> Table:
    """List all cases and structures: size, disputed part, undecided regions."""
    rows = []
    listed = [figures for case in cases for figures in case]
    cut = len(listed) > MAX_ROWS
    if cut:
        listed.sort(key=lambda figures: -figures.report.doubt_ml)
    largest = max((figures.final_ml for figures in listed), default=0.0)
    most_doubt = max((figures.report.doubt_ml for figures in listed), default=0.0)
    for figures in listed:
        units = units_of(figures.entry.lattice)
        verdicts = figures.latest_verdicts()
        settled = sum(verdict.verb not in ("skip", "reopen") for verdict in verdicts.values())
        regions = len(figures.report.disputes)
        dice = figures.report.pair_dice[np.triu_indices(len(figures.fusion.annotators), 1)]
        dice = dice[np.isfinite(dice)]
        rows.append(
            (
                plain(figures.entry.name),
                plain(figures.structure),
                str(len(figures.fusion.annotators)),
                units.amount(figures.final_ml, largest),
                f"{dice.mean():.3f}" if len(dice) else "",
                str(regions),
                units.amount(figures.report.doubt_ml, most_doubt) if regions else "",
                f"{settled} of {regions}" if regions else "nothing to settle",
            )
        )
    columns = (
        "Case", "Structure", "Raters", "Consensus", "Mean Dice of pairs", "Disputed regions", "Doubt in them",
        "Settled",
    )  # fmt: skip
    note = f"The {MAX_SHOWN} most disputed cases follow one by one." if len(cases) > MAX_SHOWN else ""
    if cut:
        note = f"The most disputed come first; raterscope export --what agreement writes all. {note}"
    return Table("Cases", columns, shortened(rows), note, text_columns=frozenset({1}))


def grid_in_words(entry: ImageEntry) -> str:
    """Describe an image's grid."""
    grid = entry.lattice
    text = grid.in_words() + ("" if grid.flat else " (slices x rows x columns)")
    return text if grid.calibrated else f"{text}; the pixel size is unknown: lengths are in pixels"


def _structure(
    study: Study,
    figures: StructureFigures,
    voxels: Voxels,
    numbers: Mapping[str, int],
    excluded: Mapping[str, str],
    watch: Watch,
) -> Section:
    fusion, report = figures.fusion, figures.report
    units = units_of(figures.entry.lattice)
    facts = [("Consensus", units.amount(report.volume_ml))]
    if figures.differs:
        facts.append(("With the expert's later decisions", units.amount(figures.final_ml)))
    regions = len(report.disputes)
    facts.append(
        (
            "Disputed",
            f"{counted(regions, 'region')} with {units.amount(report.doubt_ml)} of doubt"
            if regions
            else "no region beyond the tolerance",
        )
    )
    if figures.truth is not None:
        consensus = figures.truth.consensus
        text = f"Dice {consensus.dice:.3f}, HD95 {units.mm(consensus.hausdorff_95)} {units.length}"
        facts.append(("Consensus against the known truth", text))
    facts.append(("Fit", _fit(figures)))
    facts += [("Note", plain(sentence, 1000)) for sentence in fusion.notices]
    unsettled = explain_not_converged(fusion, figures.run.settings)
    blocks: list[Block] = [Facts(facts), *([Notices([unsettled])] if unsettled else [])]
    blocks += [_gallery(study, figures, voxels, numbers, units, watch)]
    if regions:
        blocks.append(disputes_table(figures, units))
    blocks.append(raters_table(figures, units, numbers, excluded))
    for table in (
        band_table(figures, units),
        model_table(figures, units, numbers),
        alternatives_table(figures, units),
    ):
        if table is not None:
            blocks.append(table)
    if len(fusion.annotators) > 1:
        blocks.append(dice_table(figures, numbers))
    return Section(plain(figures.structure), blocks)


def _fit(figures: StructureFigures) -> str:
    words = []
    for trace in figures.fusion.traces:
        if not len(trace.objective):
            words.append("no iterations")
            continue
        count = len(trace.objective)
        end = "converged" if trace.converged else "did not converge"
        last = significant(float(trace.objective[-1]), 6)
        words.append(f"{counted(count, 'iteration')}, {trace.name} {last}, {end}")
    return "; ".join(dict.fromkeys(words))


def _gallery(
    study: Study,
    figures: StructureFigures,
    voxels: Voxels,
    numbers: Mapping[str, int],
    units: Units,
    watch: Watch,
) -> Gallery:
    fusion, grid = figures.fusion, figures.entry.lattice
    window, window_words = (127.5, 255.0), ""
    volume = voxels.volume
    if volume is not None:
        inside, origin = _with_margin(figures)
        window, window_words = window_of(volume, volume.modality or figures.entry.modality, inside, origin)
    records = read_masks(study, figures.entry.id, figures.structure, figures.run)
    raters = [
        Layer(record.origin, record.values, colour_of(numbers[name]))
        for name, record in records.items()
        if name in fusion.annotators and record.values.size
    ]
    truth = figures.truth.truth if figures.truth is not None else None
    scene = SliceScene(
        grid=grid,
        raters=raters,
        consensus=Layer(figures.final.origin, figures.final.values),
        doubt=Layer(figures.masks.origin, figures.doubt),
        regions=[Layer(dispute.origin, dispute.voxels()) for dispute in figures.report.disputes],
        truth=None if truth is None or not truth.values.size else Layer(truth.origin, truth.values),
        voxels=None if volume is None else volume.values,
        window=window,
    )
    chosen = most_disputed(figures.report, scene.doubt, scene.consensus)
    pictures = []
    for done, index in enumerate(chosen):
        watch(done / len(chosen), f"drawing slices of {plain(figures.entry.name)}")
        pictures.append(_slice(scene, figures, units, index))
    legend = [Swatch(colour_of(numbers[name]), plain(name, 40)) for name in fusion.annotators]
    legend.append(
        Swatch(CONSENSUS, "consensus with the expert's decisions" if figures.differs else "consensus")
    )
    legend.append(Swatch(DOUBT, "doubt"))
    if scene.truth is not None:
        legend.append(Swatch(TRUTH, "known truth"))
    title = "The image" if grid.flat else "The most disputed slices" if figures.report.disputes else "Slices"
    return Gallery(
        title,
        pictures,
        legend,
        " ".join(word for word in (voxels.why, f"Window: {window_words}." if window_words else "") if word),
    )


def _slice(scene: SliceScene, figures: StructureFigures, units: Units, index: int) -> Picture:
    grid = scene.grid
    regions = [
        str(number)
        for number, dispute in enumerate(figures.report.disputes, start=1)
        if dispute.origin[0] <= index < dispute.origin[0] + dispute.shape[0]
    ]
    at = index - figures.masks.origin[0]
    masks, ml = figures.masks, 0.0
    if 0 <= at < len(figures.doubt):
        slice_doubt = figures.doubt[at : at + 1]
        ml = float(volumes_of(slice_doubt, masks.spacing, masks.slice_positions, index)) / 1000.0
    words = [f"{units.amount(ml)} of doubt in the whole {'image' if grid.flat else 'slice'}"]
    if regions:
        words.append(f"region{'' if len(regions) == 1 else 's'} {', '.join(regions)}")
    plane = scene.plane().name if grid.calibrated else ""
    title = "" if grid.flat else f"Slice {index + 1} of {grid.shape[0]}" + (f", {plane}" if plane else "")
    return draw_slice(scene, index, title, ", ".join(words))


def _with_margin(figures: StructureFigures) -> tuple[np.ndarray, tuple[int, int, int]]:
    """Return the consensus in a box with a margin, and the box's origin."""
    grid, piece = figures.entry.lattice, figures.final
    past = [at + n for at, n in zip(piece.origin, piece.values.shape, strict=True)]
    low, high = with_margin(piece.origin, past, grid.spacing, _ROOM, grid.shape, grid.uneven_positions)
    inside = np.zeros(np.subtract(high, low), dtype=bool)
    inside[slices_of(piece.origin, piece.values.shape, low)] = piece.values
    return inside, (low[0], low[1], low[2])


_TIED = re.compile(r"\btie[sd]?\b", re.IGNORECASE)

_VARIABILITY = (
    "Observer variability of masks",
    "Surface Dice: the share of both surfaces within the tolerance of the other ([@nikolov2021]). Added "
    "path length: [@vaassen2020], the mean of both directions. Conformity index: [@kouwenhoven2009]. "
    f"{READERS}",
)

_MEASURES = (
    (
        "Dice",
        "2 |A and B| / (|A| + |B|) ([@dice1945]) of volumes: 1 where both masks are the same, 0 "
        "where they have nothing in common.",
    ),
    (
        "HD, HD95",
        "A mask's surface is made of its voxels that share a face with one outside. The Hausdorff "
        "distance HD is the largest distance from a surface voxel of one mask to the nearest of the other, "
        "either way, between centres of voxels; HD95 is the larger of the 95th percentiles each way.",
    ),
    (
        "Sensitivity, specificity",
        "The share of the consensus that the rater marks, and the share of the rest of the fused box "
        "that the rater does not mark.",
    ),
    (
        "Doubt",
        "Of a voxel 1 \N{MINUS SIGN} |2 p \N{MINUS SIGN} 1|, for the probability p that it belongs to the "
        "structure or, where that gives more, the share of raters who mark it; of a region the sum over its "
        "voxels.",
    ),
    (
        "Disputed region",
        "Where some rater's outline is farther from the consensus's than 1.5 mm, 1.5 times a voxel's side "
        "in the plane, or 8 % of the radius of a ball as large as the consensus, whichever is most; with "
        "the surrounding voxels on which raters differ.",
    ),
    (
        "Agreement",
        "Dice of every pair of raters; Fleiss' kappa ([@fleiss1971]) and Krippendorff's alpha for "
        "nominal labels ([@krippendorff2018]) over the voxels stated with them.",
    ),
)


def gather_part(request: ReportRequest, watch: Watch) -> ReportPart:
    """Report on the cases; with the option `methods`, compare methods on them too."""
    study, state = request.study, request.state
    methods: Sequence[str] | None = request.options.get("methods")
    ids = {item.id for item in request.items}
    entries_shown = [entry for entry in study.images() if entry.id in ids]
    sections: list[Section] = []
    cases: list[list[StructureFigures]] = []
    runs: dict[int, RunEntry] = {}
    last = 1.0 if methods is None else 0.5
    shows_all = len(entries_shown) <= MAX_SHOWN
    for entry, entry_watch in steps_of(part(watch, 0.0, last * (1.0 if shows_all else 0.8)), entries_shown):
        step = part(entry_watch, 0.0, 1.0, f"{plain(entry.name)}: ")
        case_figures = read_figures(study, entry, state.regions(entry.id), part(step, 0.0, 0.3))
        runs.update((each.run.id, each.run) for each in case_figures)
        if shows_all:
            sections.append(_shown_case(request, case_figures, part(step, 0.3, 1.0)))
        cases.append([structure_figures.without_maps() for structure_figures in case_figures])
    if not shows_all:
        doubt = {case[0].entry.id: sum(figures.report.doubt_ml for figures in case) for case in cases}
        chosen = set(sorted(doubt, key=lambda image: (-doubt[image], image))[:MAX_SHOWN])
        shown = [entry for entry in entries_shown if entry.id in chosen]
        for entry, step in steps_of(part(watch, last * 0.8, last), shown):
            case_figures = read_figures(study, entry, state.regions(entry.id), part(step, 0.0, 0.3))
            sections.append(_shown_case(request, case_figures, part(step, 0.3, 1.0)))
    numbers = {name: number for number, name in enumerate(study.annotators())}
    figures = [structure_figures for case_list in cases for structure_figures in case_list]
    protocol = request.options.get("variability")
    sections.append(agreement_section(cases, numbers, volumes=protocol is None))
    if protocol is not None:
        sections.append(
            variability_section(
                study, [entry.id for entry in entries_shown], protocol, part(watch, last, last)
            )
        )
    trees = rater_trees_section([run for run in study.runs.all() if run.kind == "masks"], numbers)
    if trees is not None:
        sections.append(trees)
    compared = compared_methods_section(
        study, [entry.id for entry in entries_shown], methods, part(watch, last, 1.0)
    )
    if compared is not None:
        sections.append(compared)
    if len(figures) > 1:
        sections.insert(0, Section("", [cases_table(cases)]))
    ties = {
        run: _ties([structure_figures for structure_figures in figures if structure_figures.run.id == run])
        for run in runs
    }
    measures = _MEASURES if protocol is None else (*_MEASURES, _VARIABILITY)
    return ReportPart(
        sections, runs, measures, {run: [("Ties", words)] for run, words in ties.items() if words}
    )


def _shown_case(request: ReportRequest, figures: Sequence[StructureFigures], watch: Watch) -> Section:
    voxels = read_voxels(request.study, figures[0].entry, part(watch, 0.0, 0.6))
    return case_section(request.study, figures, voxels, request.state.excluded, part(watch, 0.6, 1.0))


def _ties(figures: Sequence[StructureFigures]) -> str:
    """Describe how ties were decided: as the method describes it, otherwise by rule and number of voxels."""
    tie_notices = dict.fromkeys(
        sentence
        for structure_figures in figures
        for sentence in structure_figures.fusion.notices
        if _TIED.search(sentence)
    )
    if tie_notices or not figures:
        return " ".join(plain(sentence, 300) for sentence in tie_notices)
    even = sum(structure_figures.even for structure_figures in figures)
    return (
        f"{even:,} voxel{' has' if even == 1 else 's have'} a probability of just one half."
        if even
        else "There were none: no voxel has a probability of just one half."
    )


REPORT = Report(gather_part, lambda options: {"methods": options.compare_methods})


_TITLE = "Methods compared"


def compared_methods_section(
    study: Study, images: Sequence[int], methods: Sequence[str] | None, watch: Watch = silent
) -> Section | None:
    """Compare methods on cases, or show the stored comparison; None if there is nothing to show.

    `methods`: methods to run now, all if it is empty; None for the comparison that the study stores.
    """
    if methods is None:
        comparison = load_methods(study, watch)
        names = {study.image(image).name for image in images}
        cases = () if comparison is None else tuple(case for case in comparison.cases if case.name in names)
        if comparison is None or not cases:
            return None
        return _section(replace(comparison, cases=cases))
    inputs = gather(images, study, part(watch, 0.0, 0.1))
    comparison = compare_cases(inputs, methods_plans(methods or tuple(FUSERS)), part(watch, 0.1, 1.0))
    return _section(comparison) if comparison.cases else Section(_TITLE, [Notices(comparison.problems)])


def _section(comparison: ComparedMethods) -> Section:
    reference = "truth" if comparison.truth else "raters"
    boxes_of = {figure: method_boxes(comparison, figure, reference) for figure in FIGURES}
    names = list(
        dict.fromkeys((box.name, box.rater) for figure_boxes in boxes_of.values() for box in figure_boxes)
    )
    pictures = [
        _picture(figure_boxes, figure, comparison, reference, names)
        for figure, figure_boxes in boxes_of.items()
        if figure_boxes
    ]
    numbered = ", ".join(f"{at} {plain(compared_title(*key), 30)}" for at, key in enumerate(names, start=1))
    among = "" if comparison.truth else " Every rater is part of every consensus."
    note = f"{numbered}. Boxes: quartiles with the median, and every value as a dot.{among}"
    table = _table(comparison, boxes_of, names, reference)
    return Section(_TITLE, [table, Gallery("Methods side by side", pictures, (), note)])


def _table(
    comparison: ComparedMethods,
    boxes_of: dict[str, list[MethodBox]],
    names: list[tuple[str, bool]],
    reference: str,
) -> Table:
    unit = f", {comparison.unit}" if comparison.unit else ""
    heads = {
        "dice": "Dice", "hausdorff_95": f"HD95{unit}", "hausdorff": f"HD{unit}",
        "mean_surface_distance": f"Surface{unit}", "bound": "Bound, nats", "seconds": "Time",
    }  # fmt: skip
    rows = []
    for at, key in enumerate(names, start=1):
        cells = []
        for figure in heads:
            box = next(
                (method_box for method_box in boxes_of[figure] if (method_box.name, method_box.rater) == key),
                None,
            )
            cells.append(NONE if box is None else _cell(box, figure))
        judged = next((box.p_value for box in boxes_of["dice"] if (box.name, box.rater) == key), math.nan)
        p_value = "" if math.isnan(judged) else "< 0.001" if judged < 0.001 else f"{judged:.3f}"
        rows.append((f"{at} {plain(compared_title(*key), 40)}", *cells, p_value))
    note = (
        f"{REFERENCES[reference].capitalize()}: medians, quartiles in brackets. Bound: lower bound less the "
        "highest on that case, of the models whose bounds can be compared. Time of the fusion alone. "
        f"p: Wilcoxon signed-rank test of Dice against {FUSERS[BASELINE].title} over the cases, two-sided, "
        f"not corrected for the number of methods. {plain(comparison.facts, 4000)}"
    )
    return Table("Methods on the same masks", ("Method", *heads.values(), "p"), rows, note)


def _cell(box: MethodBox, figure: str) -> str:
    low, middle, high = np.percentile(box.values, (25, 50, 75)).tolist()
    write: Callable[[float], str] = {"bound": "{:,.0f}".format, "dice": "{:.3f}".format}.get(
        figure, duration if figure == "seconds" else small_figure
    )
    text = write(middle)
    if len(box.values) > 1 and figure != "seconds":
        text += f" ({write(low)} to {write(high)})"
    return text


def _picture(
    figure_boxes: Sequence[MethodBox],
    figure: str,
    comparison: ComparedMethods,
    reference: str,
    names: Sequence[tuple[str, bool]],
) -> Picture:
    single = figure in ("bound", "seconds")
    unit = {"dice": "", "bound": "nats", "seconds": "s"}.get(figure, comparison.unit)
    title = FIGURES[figure] if single else f"{FIGURES[figure]} {REFERENCES[reference]}"
    numbers_of = [str(names.index((box.name, box.rater)) + 1) for box in figure_boxes]
    views = [
        BoxView(number, box.values, box.rater) for number, box in zip(numbers_of, figure_boxes, strict=True)
    ]
    chart = box_chart(views, title, unit or FIGURES[figure], across="method", logarithmic=figure == "seconds")
    return draw_paper(PaperChart(chart), title[:1].upper() + title[1:])
