"""Sections of a report that all kinds share: decisions, trust and methods."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from statistics import median

from raterscope.algorithms.settings import SettingsError
from raterscope.app.assessment import Trust, bin_intervals
from raterscope.app.errors import plain
from raterscope.app.kinds.kind import Paragraph, ReportPart
from raterscope.app.kinds.registry import KINDS
from raterscope.app.page.contents import (
    NONE,
    Block,
    Gallery,
    Notices,
    Prose,
    Section,
    Table,
    draw_lines,
    flat,
)
from raterscope.app.review import (
    LONG_ENOUGH,
    Decision,
    ImageSubject,
    ReviewState,
    View,
    groups,
    read_last_samples,
    viewed_places,
)
from raterscope.app.review.decision import target_of
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.expert_agreement import PAUSE, read_sessions
from raterscope.app.study.records import CohortCase, ReaderStudy
from raterscope.figures.drawing import LINES, paper_line
from raterscope.resources.bibliography import cite, cited_keys, references_text
from raterscope.text import counted, estimate, part_of_one

_MOST = 200
"""Decisions that are listed one by one: of an afternoon there are thousands. Also of failed cases."""


def cohort_section(cases: Sequence[CohortCase]) -> Section:
    """Count the cases of a gathered cohort, and list those without results with the reasons."""
    failed = [case for case in cases if not case.is_done]
    words = (
        f"{counted(len(cases), 'case')}, each fused by itself: {len(cases) - len(failed):,} are in this "
        f"study, {len(failed):,} failed or were not processed."
    )
    blocks: list[Block] = [Prose([("", words)])]
    if failed:
        rows = [
            (plain(case.case), plain(case.kind), plain(case.status), plain(case.reason, 300))
            for case in failed[:_MOST]
        ]
        note = f"The first {_MOST:,} of {len(failed):,}." if len(failed) > _MOST else ""
        columns = ("Case", "Kind", "Status", "Reason")
        blocks.append(Table("Cases without results", columns, rows, note, frozenset(range(len(columns)))))
    return Section("Cohort", blocks)


def reading_section(study: ReaderStudy) -> Section:
    """Describe the reads of a reader study: cases, marks and times of each reader, and what is missing."""
    readers = {progress.reader for progress in study.progress}
    reads = max((progress.read for progress in study.progress), default=1)
    words = f"{counted(len(readers), 'reader')} read the cases" + (
        f" up to {reads} times" if reads > 1 else ""
    )
    words += ", blinded to each other's marks and to results." if study.blinding else "."
    words += " Times count only while the reader's window was active."
    if study.unblinded:
        words += f" The study was opened before every reader had finished: {plain(study.unblinded, 300)}."
    rows = []
    for read in study.reads:
        seconds = [case.seconds for case in read.cases]
        rows.append(
            (
                plain(read.reader), str(read.read), f"{len(read.cases):,}",
                f"{sum(case.marks for case in read.cases):,}",
                f"{median(seconds):.0f}" if seconds else NONE, f"{sum(seconds) / 60:.1f}",
                read.begun[:10], read.finished[:10],
            )
        )  # fmt: skip
    columns = ("Reader", "Read", "Cases", "Marks", "Median time (s)", "Total time (min)", "Begun", "Finished")
    blocks: list[Block] = [Prose([("", words)]), Table("Reads", columns, rows)]
    if study.unfinished:
        listed = "; ".join(plain(progress.in_words()) for progress in study.unfinished)
        blocks.append(Prose([("Not finished", f"{listed}.")]))
    return Section("Reader study", blocks)


def decisions_on(
    decisions: Sequence[Decision], items: Mapping[tuple[str, int], str], state: ReviewState
) -> list[tuple[Decision, str]]:
    """Select the decisions on some items, and on annotators, each with the names of its items.

    `decisions`: the whole journal. `items`: names by kind and number of the item. `state`: state that follows
    from the journal.
    """
    selected = []
    for decision in decisions:
        target = _target(decision, state)
        names = []
        if target.subject is not None and target.items:
            names = [items.get((target.subject.kind, number), "") for number in target.items]
            if not any(names):
                continue
        selected.append((decision, ", ".join(filter(None, names))))
    return selected


def decisions_section(
    entries: Sequence[tuple[Decision, str]],
    state: ReviewState,
    views: Mapping[int, Sequence[View]] | None = None,
) -> Section:
    """Summarise decisions by expert, and list them in their order.

    `entries`: decisions and names of their items, see `decisions_on`. `views`: views of spots of clicks, by
    image of the report.
    """
    title = "The expert's decisions"
    viewed = [*_controls(entries, state), *_viewed(views or {}, state)]
    if not entries:
        none: list[Block] = [Prose([("", "No decision has been made.")])]
        return Section(title, none + viewed)
    own = [decision for decision, _ in entries]
    blocks: list[Block] = [_authors_in_words(own, state), *_pace(own), *_samples(state), *viewed]
    is_plain = [not (decision.reason or decision.annotators) for decision, _ in entries]
    notable = sorted(range(len(entries)), key=is_plain.__getitem__)[:_MOST]
    listed = [entries[index] for index in sorted(notable)]
    rows = [_row(decision, items, state) for decision, items in listed]
    columns = ("No.", "When (UTC)", "Who", "Case", "Structure", "What", "Why", "Status")
    used = [
        index for index in range(len(columns)) if index not in (3, 4, 6) or any(row[index] for row in rows)
    ]
    note = ""
    if len(listed) < len(entries):
        note = (
            f"Of {len(entries):,} decisions {len(listed):,} are listed, first those with a reason and those "
            "on annotators; `raterscope export --what decisions` writes all."
        )
    blocks.append(
        Table(
            "One by one", [columns[index] for index in used],
            [[row[index] for index in used] for row in rows], note, frozenset(range(len(used))),
        )
    )  # fmt: skip
    return Section(title, blocks)


def _pace(decisions: Sequence[Decision]) -> list[Block]:
    """Tabulate the sessions, speed and self-agreement of each expert."""
    paces = read_sessions(decisions)
    if not paces:
        return []
    rows = []
    for pace in paces:
        whole, (share, low, high) = pace.whole, pace.alike
        rows.append((
            plain(pace.expert, 40) or NONE, f"{len(pace.sessions):,}", f"{whole.seconds / 3600:.1f}",
            NONE if math.isnan(whole.per_hour) else f"{whole.per_hour:,.0f}",
            NONE if math.isnan(whole.median_seconds) else f"{whole.median_seconds:.1f}",
            f"{pace.repeated:,}", estimate(share, low, high) if pace.repeated else NONE,
        ))  # fmt: skip
    columns = ("Expert", "Sessions", "Hours", "Per hour", "Median time (s)", "Repeated", "Decided alike")
    note = (
        f"A pause of more than {PAUSE.total_seconds() / 60:.0f} minutes ends a session. Repeated items were "
        "decided again in a later session or in an acceptance sample."
    )
    return [Table("Review sessions", columns, rows, note, frozenset({6}))]


def _samples(state: ReviewState) -> list[Block]:
    """Describe the last acceptance sample of each kind: plan, items re-read, errors, verdict."""
    words = " ".join(sample.in_words() for sample in read_last_samples(state))
    return [Prose([("Acceptance sampling", words)])] if words else []


def _viewed(views: Mapping[int, Sequence[View]], state: ReviewState) -> list[Block]:
    """Describe the number of spots viewed and left without a decision."""
    viewed = {
        image: len(viewed_places(image_views, state.spots(image))) for image, image_views in views.items()
    }
    spot_count, images = sum(viewed.values()), sum(number > 0 for number in viewed.values())
    if not spot_count:
        return []
    words = (
        f"{counted(spot_count, 'spot')} on {counted(images, 'image')} {'was' if spot_count == 1 else 'were'} "
        f"in sight for {LONG_ENOUGH:g} s or longer and left without a decision: selected, or in the grid of "
        "spots while others were decided. Skipped spots are not counted."
    )
    return [Prose([("Viewed and left undecided", words)])]


def _controls(entries: Sequence[tuple[Decision, str]], state: ReviewState) -> list[Block]:
    """Name the control images, and those whose mark an accepted spot contradicts."""
    marks: dict[str, list[str]] = {}
    for decision, name in entries:
        mark = (
            state.control_mark(decision.item)
            if isinstance(decision.subject, ImageSubject) and decision.item
            else None
        )
        if mark is None or mark.decision != decision.id or decision.item is None:
            continue
        counts = state.control(decision.item) is not None
        words = f"{mark.in_words().capitalize()}s" if counts else "Not used, as a spot on them is accepted"
        marks.setdefault(words, []).append(plain(name, 40))
    words = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in sorted(marks.items()))
    return [Prose([("Control images", f"{words}.")])] if words else []


def _authors_in_words(decisions: Sequence[Decision], state: ReviewState) -> Table:
    rows = []
    for expert in dict.fromkeys(decision.who for decision in decisions):
        recorded = [decision for decision in decisions if decision.who == expert]
        verbs = Counter(decision.verb for decision in recorded)
        times = [decision.at for decision in recorded if decision.at is not None]
        rows.append(
            (
                plain(expert, 40) or NONE,
                f"{len(recorded):,}",
                f"{sum(decision.verb != 'undo' and state.in_effect(decision.id) for decision in recorded):,}",
                _minute(min(times, default=None)),
                _minute(max(times, default=None)),
                ", ".join(f"{verb} {count:,}" for verb, count in verbs.most_common()),
            )
        )
    columns = ("Expert", "Decisions", "In effect", "First (UTC)", "Last (UTC)", "Kinds")
    return Table("Decisions by expert", columns, rows, words=frozenset({3, 4, 5}))


def _row(decision: Decision, items: str, state: ReviewState) -> Sequence[str]:
    return (
        str(decision.id),
        NONE if decision.at is None else decision.at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S"),
        plain(decision.who, 40),
        plain(items),
        plain(getattr(_target(decision, state).subject, "structure", "")),
        plain(state.in_words(decision), 160),
        "" if decision.annotators else plain(decision.reason, 160),  # the words have it
        "" if decision.verb == "undo" else state.standing(decision.id),
    )


def _target(decision: Decision, state: ReviewState) -> Decision:
    """Return the target of a chain of undos."""
    return target_of(decision, state.decision)[0] or decision


def _minute(time: datetime | None) -> str:
    return NONE if time is None else time.astimezone(UTC).strftime("%Y-%m-%d %H:%M")


def methods_section(
    runs: Sequence[RunEntry],
    parts: Sequence[ReportPart],
    study: Study,
    items: Mapping[tuple[str, int], str],
) -> Section:
    """Describe the methods behind all results of the report.

    `runs`: all runs of the report. `parts`: sections of the kinds. `items`: names by kind and number.
    """
    paragraphs: list[Paragraph] = []
    for run in runs:
        paragraphs.append((f"Run {run.id}", plan_in_words(run)))
        paragraphs += _about(
            run, [paragraph for part in parts for paragraph in part.of_runs.get(run.id, ())], study, items
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
    study: Study,
    items: Mapping[tuple[str, int], str],
) -> list[Paragraph]:
    previous = study.review_state(run.known)
    fixed = []
    for number in run.items:
        settled = previous.settled(run.kind, number)
        if settled and (run.kind, number) in items:
            fixed.append(f"{settled} of {plain(items[run.kind, number])}")
    nothing, more = KINDS[run.kind].report.held_fixed(run, previous, items, bool(fixed))
    words = f"Decisions of the expert were held fixed: {', '.join(fixed)}." if fixed else nothing
    words += more
    if run.excluded:
        words += f" Excluded: {', '.join(plain(name, 40) for name in run.excluded)}."
    if run.programs:
        words += f" Programs: {', '.join(plain(name, 40) for name in run.programs)} ([@raykar2010])."
    for names in groups(run.aliases).values():
        words += f" Counted as one annotator: {', '.join(plain(name, 40) for name in names)}."
    if run.weights:
        words += f" {_weights(run, previous)}"
    seeds = [value for name, value in flat(run.settings) if name == "seed"]
    seed = run.seed if run.seed is not None else (seeds[0] if seeds else None)
    chance = ("Deterministic", "No random numbers.")
    if seed is not None:
        chance = ("Random numbers", f"Seed {plain(seed)}.")
    versions = ", ".join(f"{plain(name)} {plain(version)}" for name, version in run.versions.items())
    paragraphs = [("Held fixed", words), chance, ("Versions", f"{versions}. Input {plain(run.digest, 90)}.")]
    return [paragraphs[0], *of_run, *paragraphs[1:]]


def _weights(run: RunEntry, previous: ReviewState) -> str:
    """Describe the down-weighted annotators and the reasons."""
    weighed = []
    for name, weight in run.weights.items():
        known = previous.weighed.get(name)
        because = f" ({plain(known.reason)})" if known is not None and known.reason else ""
        weighed.append(f"{plain(name, 40)} as {part_of_one(weight)}{because}")
    return (
        f"Down-weighted annotators: {', '.join(weighed)}. The likelihood of an annotator's marks is "
        "raised to the power of the weight ([@ibrahim2000]; [@hu2002])."
    )


def trust_section(trusts: Mapping[str, Trust]) -> Section:
    """Compare each result's probabilities with ground truth, by title."""
    blocks: list[Block] = []
    for title, trust in trusts.items():
        words = trust.in_words()
        blocks.append(
            Notices([f"{plain(title)}: {words}"]) if trust.contradicted else Prose([(plain(title), words)])
        )
        if trust.judged:
            sure = trust.calibration
            filled = sure.count > 0
            low, high = bin_intervals(sure)[:, filled] if trust.independent else (None, None)
            line = paper_line(sure.posterior[filled], sure.share[filled], LINES[0], True, low, high)
            shaded = "; shaded: 95 % interval" if trust.independent else ""
            blocks.append(
                Gallery(
                    "",
                    [
                        draw_lines(
                            [line], *trust.axes, "Calibration",
                            f"calibrated probabilities lie on the diagonal{shaded}",
                            diagonal=True,
                        )
                    ],
                )
            )  # fmt: skip
    return Section("How far to trust this", blocks)
