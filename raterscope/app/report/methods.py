"""The methods section: every algorithm with source and settings, what was held fixed, what figures mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from raterscope.algorithms.settings import SettingsError
from raterscope.app.errors import plain
from raterscope.app.kinds.kind import Paragraph, ReportPart
from raterscope.app.kinds.registry import KINDS
from raterscope.app.page.contents import Prose, Section
from raterscope.app.page.units import flat
from raterscope.app.review import Decision, ReviewState, fold
from raterscope.app.study import RunEntry
from raterscope.resources.bibliography import cite, cited_keys, references_text
from raterscope.text.numbers import part_of_one


def methods_section(
    runs: Sequence[RunEntry],
    parts: Sequence[ReportPart],
    decisions: Sequence[Decision],
    items: Mapping[tuple[str, int], str],
) -> Section:
    """Describe the methods behind all results of the report.

    Parameters
    ----------
    runs : sequence of RunEntry
        All that the report tells of.
    parts : sequence of ReportPart
        What the kinds contribute.
    decisions : sequence of Decision
        The whole journal.
    items : mapping of kind and number to name
    """
    paragraphs: list[Paragraph] = []
    for run in runs:
        paragraphs.append((f"Run {run.id}", plan_in_words(run)))
        paragraphs += _about(
            run, [paragraph for part in parts for paragraph in part.of_runs.get(run.id, ())], decisions, items
        )
    for part in parts:
        paragraphs += part.measures
    return Section(
        "Methods", [Prose([(name, cite(words)) for name, words in paragraphs])], _references(paragraphs)
    )


def plan_in_words(run: RunEntry) -> str:
    """Describe the algorithms and settings; those of another version as they are stored."""
    try:
        return KINDS[run.kind].functions.read_plan(run.settings).in_words()
    except SettingsError:
        stored = ", ".join(f"{name} {value}" for name, value in flat(run.settings))
        return f"{plain(run.algorithm)}, by another version of Raterscope, with {plain(stored, 2000)}."


def _references(paragraphs: Sequence[Paragraph]) -> list[Section]:
    """List the works that the paragraphs cite."""
    keys = cited_keys(words for _, words in paragraphs)
    return [Section("References", [Prose([("", line) for line in references_text(keys)])])] if keys else []


def _about(
    run: RunEntry,
    of_run: Sequence[Paragraph],
    decisions: Sequence[Decision],
    items: Mapping[tuple[str, int], str],
) -> list[Paragraph]:
    previous = fold([decision for decision in decisions if decision.id <= run.known])
    fixed = []
    for number in run.items:
        settled = previous.settled(run.kind, number)
        if settled and (run.kind, number) in items:
            fixed.append(f"{settled} of {plain(items[run.kind, number])}")
    nothing, more = KINDS[run.kind].report.held_fixed(run, previous, items, bool(fixed))
    words = f"What the expert had settled was held fixed: {', '.join(fixed)}." if fixed else nothing
    words += more
    if run.excluded:
        words += f" Left out: {', '.join(plain(name, 40) for name in run.excluded)}."
    if run.weights:
        words += f" {_weights(run, previous)}"
    seeds = [value for name, value in flat(run.settings) if name == "seed"]
    seed = run.seed if run.seed is not None else (seeds[0] if seeds else None)
    chance = (
        "No random numbers are used." if seed is None else f"Random numbers come from the seed {plain(seed)}."
    )
    versions = ", ".join(f"{plain(name)} {plain(version)}" for name, version in run.versions.items())
    paragraphs = [
        ("Held fixed", words),
        ("Chance", chance),
        ("Versions", f"{versions}. Input {plain(run.digest, 90)}."),
    ]
    return [paragraphs[0], *of_run, *paragraphs[1:]]


def _weights(run: RunEntry, previous: ReviewState) -> str:
    """Describe the down-weighted annotators and the reasons."""
    weighed = []
    for name, weight in run.weights.items():
        known = previous.weighed.get(name)
        because = f" ({plain(known.reason)})" if known is not None and known.reason else ""
        weighed.append(f"{plain(name, 40)} as {part_of_one(weight)}{because}")
    return (
        f"Counted as a part of an annotator: {', '.join(weighed)}. An annotator counts as so many who do the "
        "same: the likelihood of what was done is raised to the power of the weight ([@ibrahim2000]; "
        "[@hu2002])."
    )
