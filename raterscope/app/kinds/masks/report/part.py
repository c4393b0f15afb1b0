"""The part of masks in a report: cases, agreement of raters, compared methods, definitions of measures."""

from __future__ import annotations

import re
from collections.abc import Sequence

from raterscope.algorithms.progress import Watch, part
from raterscope.app.errors import plain
from raterscope.app.kinds.kind import ReportPart, ReportRequest
from raterscope.app.kinds.masks.report.agreement import agreement_section
from raterscope.app.kinds.masks.report.case_figures import Figures, read_figures
from raterscope.app.kinds.masks.report.cases import case_section, cases_table
from raterscope.app.kinds.masks.report.methods import compared_methods_section
from raterscope.app.kinds.masks.report.rater_trees import rater_trees_section
from raterscope.app.kinds.masks.report.volumes import read_voxels
from raterscope.app.page.contents import Section
from raterscope.app.study import RunEntry

__all__ = ["gather_part"]

_TIED = re.compile(r"\btie[sd]?\b", re.IGNORECASE)

_MEASURES = (
    (
        "Dice",
        "2 |A and B| / (|A| + |B|) ([@dice1945]), counted in voxels: 1 where both masks are the same, 0 "
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
        "that the rater leaves out.",
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
        "the voxels about it on which anybody differs.",
    ),
    (
        "Agreement",
        "Dice of every pair of raters; Fleiss' kappa ([@fleiss1971]) and Krippendorff's alpha for "
        "nominal labels ([@krippendorff2018]) over the voxels stated with them.",
    ),
)


def gather_part(request: ReportRequest, watch: Watch) -> ReportPart:
    """Read and measure the cases; with the option `methods`, compare methods on the same cases too."""
    study, state = request.study, request.state
    methods: Sequence[str] | None = request.options.get("methods")
    ids = {one.id for one in request.items}
    here = [entry for entry in study.images() if entry.id in ids]
    sections: list[Section] = []
    cases: list[list[Figures]] = []
    runs: dict[int, RunEntry] = {}
    most = 1.0 if methods is None else 0.5
    for done, entry in enumerate(here):
        step = part(watch, most * done / len(here), most * (done + 1) / len(here), f"{plain(entry.name)}: ")
        found = read_figures(study, entry, state.regions(entry.id), part(step, 0.0, 0.3))
        runs.update((one.run.id, one.run) for one in found)
        voxels = read_voxels(study, entry, part(step, 0.3, 0.7))
        sections.append(case_section(study, found, voxels, state.excluded, part(step, 0.7, 1.0)))
        cases.append([one.without_maps() for one in found])
    numbers = {name: number for number, name in enumerate(study.annotators())}
    figures = [one for found in cases for one in found]
    sections.append(agreement_section(cases, numbers))
    trees = rater_trees_section([run for run in study.runs() if run.kind == "masks"], numbers)
    if trees is not None:
        sections.append(trees)
    compared = compared_methods_section(study, [entry.id for entry in here], methods, part(watch, most, 1.0))
    if compared is not None:
        sections.append(compared)
    if len(figures) > 1:
        sections.insert(0, Section("", [cases_table(cases)]))
    ties = {run: _ties([one for one in figures if one.run.id == run]) for run in runs}
    return ReportPart(
        sections, runs, _MEASURES, {run: [("Ties", words)] for run, words in ties.items() if words}
    )


def _ties(figures: Sequence[Figures]) -> str:
    """Say how ties went: what the method says itself, else the rule and how many voxels it decided."""
    told = dict.fromkeys(
        sentence for one in figures for sentence in one.fusion.notices if _TIED.search(sentence)
    )
    if told or not figures:
        return " ".join(plain(sentence, 300) for sentence in told)
    even = sum(one.even for one in figures)
    return (
        f"{even:,} voxel{' has' if even == 1 else 's have'} a probability of just one half."
        if even
        else "There were none: no voxel has a probability of just one half."
    )
