"""Page of the papers' figures beside ours: experiments, charts and HTML file."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from raterscope import __version__
from raterscope.algorithms.progress import Watch
from raterscope.app.errors import InputError
from raterscope.app.formats.output_files import write_bytes
from raterscope.app.page.contents import (
    Block,
    Cell,
    Contents,
    Gallery,
    Notices,
    Picture,
    Prose,
    Section,
    Swatch,
    Table,
    as_html,
    draw_lines,
)
from raterscope.app.papers.clicks import CLICKS
from raterscope.app.papers.experiments import (
    Chart,
    Estimate,
    Experiment,
    Paper,
    Results,
    Row,
    check_folder,
    estimate,
    has_data,
    measure,
    paired_difference,
    read_results,
)
from raterscope.app.papers.labels import LABELS
from raterscope.app.papers.masks import MASKS
from raterscope.app.papers.pairs import PAIRS
from raterscope.app.papers.thesis import THESIS
from raterscope.figures.drawing import LINES, paper_line
from raterscope.resources.bibliography import references_text
from raterscope.text import counted


def draw_charts(experiment: Experiment, results: Results) -> Gallery:
    """Draw the charts of an experiment, which have common curves; unmeasured points are omitted."""
    names = [name for name, _ in experiment.charts[0].curves]
    colours = {name: LINES[index % len(LINES)] for index, name in enumerate(names)}
    pictures = [_drawn(chart, colours, results) for chart in experiment.charts]
    legend = [Swatch(colour, name) for name, colour in colours.items()]
    return Gallery("", pictures, legend)


def _drawn(chart: Chart, colours: dict[str, str], results: Results) -> Picture:
    lines, limit = [], 1.0
    for name, points in chart.curves:
        result = [(x, estimate(results, cell, measure)) for x, cell, measure in points]
        measured_points = [
            (x, mean.mean, np.nan_to_num(mean.error)) for x, mean in result if mean is not None
        ]
        if not measured_points:
            continue
        x, mean, error = (np.array(values, dtype=np.float64) for values in zip(*measured_points, strict=True))
        low, high = np.clip(mean - error, 0, 1), np.clip(mean + error, 0, 1)
        lines.append(paper_line(x, np.clip(mean, 0, 1), colours[name], True, low, high))
        limit = max(limit, float(x.max()))
    return draw_lines(lines, chart.across, chart.up, chart.title, limit=limit)


PAGE = "papers.html"

_COLUMNS = (
    "", "the paper", "as published", "difference from the paper", "this program's default",
    "gain of the default",
)  # fmt: skip
_LEGEND = (
    "Every table has the paper's figure; ours with the method as the paper prints it; the difference of the "
    "two; this program's default; and the gain of the default, positive where it is better. The gain is over "
    "the paper's figure where there is one for the same data, else over the method as published in the same "
    "runs. After \N{PLUS-MINUS SIGN} is the standard error. Errors of the papers are not published: their "
    "runs are taken to scatter as ours do. A difference that chance does not explain (95 %, t test) is "
    "marked *; of 20 differences one is so by chance."
)
_MARKED = ("#fff1c9", "#15181c")
"""Background and text colour of a difference that chance does not explain."""

_RULE_OF_THREE = 3.0
"""Upper 95 % limit of the expected number of events in n runs that showed none."""

Verdict = Literal["better", "equal", "worse"]


@dataclass(frozen=True)
class _Line:
    """Row as shown, and comparison of the default."""

    cells: tuple[Cell | str, ...]
    verdict: Verdict | None


def write_page(papers: Sequence[Paper], folder: Path, *, data: Path | None = None) -> Path:
    """Write the page of all measurements so far; return the file."""
    path = folder / PAGE
    write_bytes(path, as_html(contents_of(papers, folder, data=data)).encode("utf-8"))
    return path


def contents_of(papers: Sequence[Paper], folder: Path, *, data: Path | None = None) -> Contents:
    """Collect the page's content from the measured values.

    `folder`: folder with the values of the runs. `data`: the folder of open data; the page names missing
    data.
    """
    sections, verdicts = [], {}
    for paper in papers:
        section, result = _paper(paper, folder, data)
        sections.append(section)
        verdicts[paper.title] = result
    rows = [
        (name, *(str(result.count(verdict)) for verdict in ("better", "equal", "worse")))
        for name, result in verdicts.items()
    ]
    summary = Table(
        "The defaults against the papers' methods, figure by figure",
        ("", "better", "no difference", "worse"),
        rows,
        "Better or worse: by more than chance explains (95 %).",
    )
    facts = (
        ("Written by", f"Raterscope {__version__}"),
        ("Reproduce", "raterscope papers -o FOLDER (minutes); --full (hours; continues where it stopped)"),
        ("Open data", "raterscope papers -o FOLDER --data DATA" if data is None else str(data)),
    )
    return Contents("The papers", facts, (Section("", (Prose((("", _LEGEND),)), summary)), *sections))


def _paper(paper: Paper, folder: Path, data: Path | None) -> tuple[Section, list[Verdict]]:
    parts, verdicts = [], []
    for experiment in paper.experiments:
        blocks, result = _experiment(experiment, read_results(experiment, folder), data)
        parts.append(Section(experiment.title, blocks))
        verdicts += result
    if paper.unpublished:
        table = Table("", ("In the paper", "Here"), paper.unpublished, text_columns=frozenset((1,)))
        parts.append(Section("What depends on unpublished data", (table,)))
    return Section(
        paper.title,
        (Prose([("", words) for words in references_text([paper.reference])]),),
        parts,
        breaks=True,
    ), verdicts


def _experiment(
    experiment: Experiment, results: Results, data: Path | None
) -> tuple[list[Block], list[Verdict]]:
    blocks: list[Block] = []
    paragraphs = [("Measured", experiment.method)]
    if experiment.instead:
        paragraphs.append(("In place of unpublished data", experiment.instead))
    paragraphs.append(("Command", experiment.command))
    blocks.append(Prose(paragraphs))
    counts = [len(runs) for runs in results.values()]
    if not any(counts):
        reason = "Not measured yet." if experiment.quick else "Measured in the full form alone: add --full."
        if not has_data(experiment, data):
            reason = f"Not measured: it needs {experiment.needs} in the folder that --data names."
        return [*blocks, Notices((reason,))], []
    lines = list(_lines(experiment, results))
    runs = counted(max(counts), "run")
    runs = runs if min(counts) == max(counts) else f"{min(counts)} to {runs}"
    note = f"{runs} of each cell; in full {experiment.runs:,}."
    blocks.append(Table("", _COLUMNS, [line.cells for line in lines], note, frozenset((1,))))
    if experiment.charts:
        blocks.append(draw_charts(experiment, results))
    if experiment.remark:
        blocks.append(Prose((("Where they differ", experiment.remark),)))
    return blocks, [line.verdict for line in lines if line.verdict is not None]


def _lines(experiment: Experiment, results: Results) -> Iterator[_Line]:
    for row in experiment.rows:
        printed = estimate(results, row.cell, row.printed)
        if printed is None:
            yield _Line((row.label, _published(row), *["-"] * 4), None)
            continue
        comparable = row.paper is not None and not experiment.instead
        difference: Cell | str = "-"
        if comparable and row.paper is not None:
            gap = Estimate(
                printed.mean - row.paper, _error(printed, experiment.paper_runs), printed.deviation,
                printed.runs,
            )  # fmt: skip
            difference = _marked(gap, row.digits)
        elif row.paper is not None:
            difference = "other data"
        default = estimate(results, row.cell, row.default) if row.default else None
        if default is None:
            yield _Line((row.label, _published(row), _shown(printed, row.digits), difference, "-", "-"), None)
            continue
        gain = _gain(row, results, default, experiment.paper_runs if comparable else None, comparable)
        verdict: Verdict | None = None
        if gain is not None:
            verdict = "equal" if not _is_sure(gain) else "better" if gain.mean > 0 else "worse"
        yield _Line(
            (
                row.label, _published(row), _shown(printed, row.digits), difference,
                _shown(default, row.digits), "-" if gain is None else _shown(gain, row.digits, signed=True),
            ),
            verdict,
        )  # fmt: skip


def _gain(
    row: Row, results: Results, default: Estimate, paper_runs: int | None, comparable: bool
) -> Estimate | None:
    """Return the gain of the default over the paper's figure, or over the method as published."""
    if not row.better:
        return None
    if comparable and row.paper is not None:
        if row.better == "nearer":
            mean = abs(row.paper - row.aim) - abs(default.mean - row.aim)
        else:
            mean = (default.mean - row.paper) * (1 if row.better == "higher" else -1)
        return Estimate(mean, _error(default, paper_runs), default.deviation, default.runs)
    paired = paired_difference(results, row.cell, row.default, row.printed)
    if paired is None:
        return None
    if row.better == "nearer":
        printed = default.mean - paired.mean
        mean = abs(printed - row.aim) - abs(default.mean - row.aim)
    else:
        mean = paired.mean * (1 if row.better == "higher" else -1)
    return Estimate(mean, paired.error, paired.deviation, paired.runs)


def _error(ours: Estimate, paper_runs: int | None) -> float:
    """Return the standard error of the difference from a mean over the paper's runs."""
    if math.isnan(ours.error):
        return math.nan
    return math.hypot(ours.error, ours.deviation / math.sqrt(paper_runs) if paper_runs else 0.0)


def _is_sure(gap: Estimate) -> bool:
    """Return whether a difference is significant (95 %); single runs never are."""
    if gap.runs < 2:
        return False
    if gap.deviation == 0:  # as where all runs find everything: in more runs one might not
        return abs(gap.mean) > _RULE_OF_THREE / gap.runs
    return bool(abs(gap.mean) > stdtrit(gap.runs - 1, 0.975) * gap.error + 1e-12)


def _published(row: Row) -> str:
    return row.text if row.paper is None else f"{row.paper:.{row.digits}f}"


def _shown(estimated: Estimate, digits: int, *, signed: bool = False) -> str:
    mean = round(estimated.mean, digits) + 0.0  # no minus before 0
    text = f"{mean:+.{digits}f}" if signed else f"{mean:.{digits}f}"
    text = text.replace("-", "\N{MINUS SIGN}")
    return text if math.isnan(estimated.error) else f"{text} ± {estimated.error:.{digits}f}"


def _marked(gap: Estimate, digits: int) -> Cell:
    text = _shown(gap, digits, signed=True)
    if _is_sure(gap) and abs(gap.mean) > 0.5 * 10**-digits:
        return Cell(f"{text} *", *_MARKED)
    return Cell(text)


PAPERS: Mapping[str, Paper] = {paper.name: paper for paper in (CLICKS, PAIRS, LABELS, MASKS, THESIS)}


def make_page(
    folder: Path,
    watch: Watch,
    *,
    names: Collection[str] = tuple(PAPERS),
    full: bool = False,
    data: Path | None = None,
    measuring: bool = True,
) -> Path:
    """Measure missing figures and write the page; if interrupted, the page shows the figures measured so far.

    Raises `InputError` if the folders cannot be used.

    `folder`: new folder, or folder of an earlier page. `names`: papers to measure; the page shows all.
    `full`: whether to make the number of runs of the papers. `data`: the folder of open data. `measuring`:
    whether to measure, or only to write the page.
    """
    if data is not None and not data.is_dir():
        raise InputError("is not a folder; expected the folder of open data", file=data)
    check_folder(folder)
    try:
        if measuring:
            measure(
                [paper for paper in PAPERS.values() if paper.name in names],
                folder,
                watch,
                full=full,
                data=data,
            )
    finally:
        page = write_page(list(PAPERS.values()), folder, data=data)
    return page
