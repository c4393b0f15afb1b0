"""Report of a study as HTML or PDF, gathered case by case, with the sections that all kinds share."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from raterscope import __version__
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.algorithms.settings import SettingsError
from raterscope.app.assessment import Trust, bin_intervals
from raterscope.app.errors import InputError, missing_package, plain
from raterscope.app.exports import provenance_of_report
from raterscope.app.formats.output_files import check_writable, write_bytes
from raterscope.app.kinds.kind import Kind, Paragraph, ReportPart, ReportRequest
from raterscope.app.kinds.registry import KINDS
from raterscope.app.page.contents import (
    NONE,
    Block,
    Contents,
    Gallery,
    Notices,
    Prose,
    Section,
    Table,
    as_html,
    draw_lines,
    flat,
)
from raterscope.app.program_files import STUDY_SUFFIX
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
from raterscope.app.study.expert_agreement import (
    PAUSE,
    ExpertAgreement,
    Interval,
    read_agreement,
    read_sessions,
)
from raterscope.app.study.records import CohortCase, Item, ReaderStudy
from raterscope.figures.drawing import LINES, paper_line
from raterscope.resources.bibliography import cite, cited_keys, references_text
from raterscope.text import counted, estimate, part_of_one, percent

if TYPE_CHECKING:
    from raterscope.app.assessment import Trust


_SUFFIXES = (".html", ".pdf")

_MOST = 200
"""Maximum number of decisions listed, as an afternoon yields thousands; also of failed cases."""


def write_report(
    study: Study,
    path: Path,
    watch: Watch = silent,
    *,
    item: int | None = None,
    question: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> Path:
    """Write a report of the runs shown: slices, tables, decisions, methods.

    Raises `InputError` if the file's name is not that of a report, nothing was fused yet, or the file cannot
    be written.

    `path`: ends in .html or .pdf. An existing file is replaced completely or not at all.
    `item`: number of the only image to report.
    `question`: number of the only question of labels or pairs to report. By default everything is reported.
    `options`: further measurements of the kinds by name, see `Report.read_options` of each. For clicks:
        `crowd_size`, settings for measuring against the number of annotators. For labels: `folds`, settings
        for ROC curves by cross-validation, and `over_time`, the class for rates over time ("" for the last).
        For masks: `methods`, names of methods to compare, all if empty.
    """
    path = Path(path)
    check_report_name(path)
    contents = _gather(study, part(watch, 0.0, 0.9), item, question, options or {})
    return write_page(contents, path, part(watch, 0.9, 1.0))


def check_report_name(path: Path) -> None:
    """Raise `InputError` when a report cannot be written under a name."""
    ending = path.suffix.casefold()
    if ending not in _SUFFIXES or path.resolve().suffix.casefold() == STUDY_SUFFIX:
        raise InputError("is no name of a report; expected one that ends in .html or .pdf", file=path)
    check_writable(path)


def write_page(contents: Contents, path: Path, watch: Watch = silent) -> Path:
    """Write contents as HTML or PDF, by the name of the file."""
    watch(0.0, "writing the report")
    if path.suffix.casefold() == ".pdf":
        try:
            from raterscope.app.page.pdf import as_pdf
        except ImportError as error:  # a machine without Qt, or without the libraries that Qt needs
            reason = missing_package(error) or f"the libraries cannot be loaded: {error}"
            raise InputError(f"cannot be written as PDF: {reason}", file=path) from error
        data = as_pdf(contents, watch)
    else:
        data = as_html(contents).encode()
    write_bytes(path, data)
    return path


def _gather(
    study: Study, watch: Watch, item: int | None, question: int | None, options: Mapping[str, Any]
) -> Contents:
    """Gather the contents of a report; see `write_report`."""
    decisions, state = study.decisions(), study.review_state()
    is_complete = item is None and question is None
    scope = {
        kind.name: [
            entry
            for entry in (kind.items(study) if kind.by_question else study.images())
            if is_complete or entry.id == (question if kind.by_question else item)
        ]
        for kind in KINDS.values()
    }
    fused = {name: _fused(study, KINDS[name], entries) for name, entries in scope.items()}
    origin = provenance_of_report(study, item, question)
    kinds_present = [name for name, entries in fused.items() if entries]
    parts = [
        KINDS[name].report.gather(ReportRequest(study, state, fused[name], options), step)
        for name, step in steps_of(watch, kinds_present)
    ]
    sections = [section for kind_part in parts for section in kind_part.sections]
    runs = {number: run for kind_part in parts for number, run in kind_part.runs.items()}
    if not sections:
        if origin.outdated:
            raise InputError(origin.outdated[0], file=study.path)
        raise InputError("contains no results yet; `raterscope run` fuses its annotations", file=study.path)
    trust = _trust(study, fused)
    if trust:
        sections.append(_trust_section(trust))
    cohort = study.settings.cohort
    if cohort and is_complete:
        sections.insert(0, _cohort_section(cohort))
    readers = study.settings.reader_study
    if readers is not None and is_complete:
        sections.insert(0, _reading_section(readers))
    stale = [
        *origin.outdated,
        *(
            f"Decisions were made after run {run.id} and are not included. Fuse again to hold them fixed."
            for run in origin.runs
            if study.shown.decided_since(run, origin.items[run.id])
        ),
    ]
    if sections[0].breaks:
        sections[0] = replace(sections[0], breaks=False)
    if stale:
        sections.insert(0, Section("", [Notices(stale)]))
    items_shown = {(name, entry.id) for name, entries in scope.items() for entry in entries}
    named = {key: name for key, name in study.names().items() if key in items_shown}
    decisions_shown = _decisions_on(decisions, named, state)
    views = {image: image_views for kind_part in parts for image, image_views in kind_part.views.items()}
    experts = experts_section(study) if is_complete else None
    sections += [] if experts is None else [experts]
    sections.append(_decisions_section(decisions_shown, state, views))
    runs_shown = [_limit_excluded(study, runs[number]) for number in sorted(runs)]
    sections.append(methods_section(runs_shown, parts, study, named))
    facts = [("Study", plain(study.path.stem, 200))]
    facts.append(("About", _about(study)) if is_complete else ("Only", plain(next(iter(named.values())))))
    facts.append(("Runs" if len(origin.runs) > 1 else "Run", origin.in_words()))
    deciding = list(dict.fromkeys(plain(decision.who, 40) for decision, _ in decisions_shown if decision.who))
    if deciding:
        facts.append(("Experts" if len(deciding) > 1 else "Expert", ", ".join(deciding)))
    now = datetime.now(UTC)
    facts.append(("Written", f"{now:%Y-%m-%d %H:%M} UTC by Raterscope {__version__}"))
    return Contents(f"Report on {plain(study.path.stem, 200)}", facts, sections)


def _trust(study: Study, fused: Mapping[str, Sequence[Item]]) -> dict[str, Trust]:
    """Compare the probabilities of results with known answers, by the title of each result."""
    trusts: dict[str, Trust] = {}
    for name, entries in fused.items():
        kind = KINDS[name]
        results = (
            [(entry.name, [entry.id]) for entry in entries]
            if kind.by_question
            else [(kind.title, [entry.id for entry in entries])]
        )
        for title, items in results:
            trust = kind.functions.trust(study, items, silent) if items else None
            if trust is not None:
                trusts[title] = trust
    return trusts


def _limit_excluded(study: Study, run: RunEntry) -> RunEntry:
    """Return a run with excluded annotators and programs limited to those with annotations on its items."""
    if not run.excluded and not run.programs:
        return run
    complete = replace(run, excluded=(), programs=(), weights={})
    annotators_of = KINDS[run.kind].functions.annotators_of
    involved = {name for item in run.items for name in annotators_of(study, item, complete)}
    excluded, programs = (
        tuple(name for name in names if name in involved) for names in (run.excluded, run.programs)
    )
    return replace(run, excluded=excluded, programs=programs)


def _about(study: Study) -> str:
    """Describe the input: "24 images of clicks, 1 question of labels; 39 annotators"."""
    counts = {kind: len(_fused(study, kind, kind.items(study))) for kind in KINDS.values()}
    phrases = [
        f"{counted(number, kind.nouns.item)} of {kind.name}" for kind, number in counts.items() if number
    ]
    number = len(study.annotators()) - len(study.review_state().aliases)
    return f"{', '.join(phrases)}; {counted(number, 'annotator')}"


def _fused(study: Study, kind: Kind, entries: Sequence[Item]) -> list[Item]:
    """Return the items of a kind that have a run shown."""
    present = {entry.id for entry in kind.items(study)}
    return [
        entry for entry in entries if entry.id in present and study.shown.run(entry.id, kind.name) is not None
    ]


_COLUMNS = (
    "Kind", "First", "Second", "Decided by both", "Alike", "Kappa (95 % interval)", "Alpha (95 % interval)",
    "Dice (95 % interval)",
)  # fmt: skip
_ABOUT = (
    "Of each expert the last verdict counts, before differences were settled. Cohen's kappa and "
    "Krippendorff's alpha are of subjects, Dice is of the voxels that both settled. Intervals are of the "
    "bootstrap, of Dice by the jackknife over the structures of all cases, with Student's t on the logit."
)


def experts_section(study: Study) -> Section | None:
    """Describe the merged reads and the agreement of the experts; None for a study with one expert."""
    reads, agreements = study.settings.reads, list(read_agreement(study))
    if not (reads or agreements):
        return None
    blocks: list[Block] = [Prose([("Merged", f"{plain(read.in_words(), 300)}.") for read in reads])]
    if agreements:
        rows = [
            (kind.capitalize(), plain(first, 40), plain(second, 40), *_cells(agreement))
            for kind, first, second, agreement in agreements
        ]
        used = [at for at in range(len(_COLUMNS)) if at < 5 or any(row[at] for row in rows)]
        blocks.append(
            Table(
                "Agreement between experts", [_COLUMNS[at] for at in used],
                [[row[at] for at in used] for row in rows], _ABOUT, frozenset({0, 1, 2}),
            )
        )  # fmt: skip
    return Section("Several experts", blocks)


def _cells(agreement: ExpertAgreement) -> tuple[str, ...]:
    voxels = "" if agreement.kappa.in_words() or not agreement.dice.in_words() else " voxels"
    return (
        f"{agreement.count:,}{voxels}", percent(agreement.alike), _brief(agreement.kappa),
        _brief(agreement.alpha), _brief(agreement.dice),
    )  # fmt: skip


def _brief(value: Interval) -> str:
    return value.in_words().replace("95 % interval ", "")


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
    text = " ".join(sample.in_words() for sample in read_last_samples(state))
    return [Prose([("Acceptance sampling", text)])] if text else []


def _viewed(views: Mapping[int, Sequence[View]], state: ReviewState) -> list[Block]:
    """Describe the number of spots viewed and left without a decision."""
    viewed = {
        image: len(viewed_places(image_views, state.spots(image))) for image, image_views in views.items()
    }
    spot_count, images = sum(viewed.values()), sum(number > 0 for number in viewed.values())
    if not spot_count:
        return []
    text = (
        f"{counted(spot_count, 'spot')} on {counted(images, 'image')} {'was' if spot_count == 1 else 'were'} "
        f"in sight for {LONG_ENOUGH:g} s or longer and left without a decision: selected, or in the grid of "
        "spots while others were decided. Skipped spots are not counted."
    )
    return [Prose([("Viewed and left undecided", text)])]


def _controls(entries: Sequence[tuple[Decision, str]], state: ReviewState) -> list[Block]:
    """Name the control images, and the marks that an accepted spot contradicts."""
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
        text = f"{mark.in_words().capitalize()}s" if counts else "Not used, as a spot on them is accepted"
        marks.setdefault(text, []).append(plain(name, 40))
    text = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in sorted(marks.items()))
    return [Prose([("Control images", f"{text}.")])] if text else []


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
    return Table("Decisions by expert", columns, rows, text_columns=frozenset({3, 4, 5}))


def _row(decision: Decision, items: str, state: ReviewState) -> Sequence[str]:
    return (
        str(decision.id),
        NONE if decision.at is None else decision.at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S"),
        plain(decision.who, 40),
        plain(items),
        plain(getattr(_target(decision, state).subject, "structure", "")),
        plain(state.in_words(decision), 160),
        "" if decision.annotators else plain(decision.reason, 160),  # the description contains the reason
        "" if decision.verb == "undo" else state.status(decision.id),
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
    """Describe the methods of all results in the report.

    `runs`: all runs of the report. `parts`: sections of the kinds. `items`: names by kind and number.
    """
    paragraphs: list[Paragraph] = []
    for run in runs:
        paragraphs.append((f"Run {run.id}", plan_in_words(run)))
        paragraphs += _about_item(
            run, [paragraph for part in parts for paragraph in part.of_runs.get(run.id, ())], study, items
        )
    paragraphs += [measure for about in parts for measure in about.measures]
    keys = cited_keys(words for _, words in paragraphs)
    references = [Prose([("", line) for line in references_text(keys)])]
    return Section(
        "Methods", [Prose([(name, cite(words)) for name, words in paragraphs])],
        [Section("References", references)] if keys else [],
    )  # fmt: skip


def plan_in_words(run: RunEntry) -> str:
    """Describe the algorithms and settings; those of another version as stored."""
    try:
        return KINDS[run.kind].functions.read_plan(run.settings).in_words()
    except SettingsError:
        stored = ", ".join(f"{name} {value}" for name, value in flat(run.settings))
        return f"{plain(run.algorithm)}, by another version of Raterscope, with {plain(stored, 2000)}."


def _about_item(
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
    text = f"Decisions of the expert were held fixed: {', '.join(fixed)}." if fixed else nothing
    text += more
    if run.excluded:
        text += f" Excluded: {', '.join(plain(name, 40) for name in run.excluded)}."
    if run.programs:
        text += f" Programs: {', '.join(plain(name, 40) for name in run.programs)} ([@raykar2010])."
    for names in groups(run.aliases).values():
        text += f" Counted as one annotator: {', '.join(plain(name, 40) for name in names)}."
    if run.weights:
        text += f" {_weights(run, previous)}"
    seeds = [value for name, value in flat(run.settings) if name == "seed"]
    seed = run.seed if run.seed is not None else (seeds[0] if seeds else None)
    chance = ("Deterministic", "No random numbers.")
    if seed is not None:
        chance = ("Random numbers", f"Seed {plain(seed)}.")
    versions = ", ".join(f"{plain(name)} {plain(version)}" for name, version in run.versions.items())
    paragraphs = [("Held fixed", text), chance, ("Versions", f"{versions}. Input {plain(run.digest, 90)}.")]
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


def _cohort_section(cases: Sequence[CohortCase]) -> Section:
    """Count the cases of a gathered cohort, and list those without results with the reasons."""
    failed = [case for case in cases if not case.is_done]
    text = (
        f"{counted(len(cases), 'case')}, each fused by itself: {len(cases) - len(failed):,} are in this "
        f"study, {len(failed):,} failed or were not processed."
    )
    blocks: list[Block] = [Prose([("", text)])]
    if failed:
        rows = [
            (plain(case.case), plain(case.kind), plain(case.status), plain(case.reason, 300))
            for case in failed[:_MOST]
        ]
        note = f"The first {_MOST:,} of {len(failed):,}." if len(failed) > _MOST else ""
        columns = ("Case", "Kind", "Status", "Reason")
        blocks.append(Table("Cases without results", columns, rows, note, frozenset(range(len(columns)))))
    return Section("Cohort", blocks)


def _decisions_on(
    decisions: Sequence[Decision], items: Mapping[tuple[str, int], str], state: ReviewState
) -> list[tuple[Decision, str]]:
    """Select the decisions on some items, and on annotators, each with the names of its items.

    `decisions`: the whole journal. `items`: names by kind and number of the item. `state`: state derived from
    the journal.
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


def _decisions_section(
    entries: Sequence[tuple[Decision, str]],
    state: ReviewState,
    views: Mapping[int, Sequence[View]],
) -> Section:
    """Summarise decisions by expert, and list them in order.

    `entries`: decisions and names of their items, see `_decisions_on`. `views`: views of spots of clicks, by
    image of the report.
    """
    title = "The expert's decisions"
    viewed = [*_controls(entries, state), *_viewed(views, state)]
    if not entries:
        none: list[Block] = [Prose([("", "No decision has been made.")])]
        return Section(title, none + viewed)
    own = [decision for decision, _ in entries]
    blocks: list[Block] = [_authors_in_words(own, state), *_pace(own), *_samples(state), *viewed]
    is_plain = [not (decision.reason or decision.annotators) for decision, _ in entries]
    shown = sorted(range(len(entries)), key=is_plain.__getitem__)[:_MOST]
    listed = [entries[index] for index in sorted(shown)]
    rows = [_row(decision, items, state) for decision, items in listed]
    columns = ("No.", "When (UTC)", "Who", "Case", "Structure", "What", "Why", "Status")
    used = [
        index for index in range(len(columns)) if index not in (3, 4, 6) or any(row[index] for row in rows)
    ]
    note = ""
    if len(listed) < len(entries):
        note = (
            f"Of {len(entries):,} decisions {len(listed):,} are listed, first those with a reason and those "
            "on annotators; raterscope export --what decisions writes all."
        )
    blocks.append(
        Table(
            "One by one", [columns[index] for index in used],
            [[row[index] for index in used] for row in rows], note, frozenset(range(len(used))),
        )
    )  # fmt: skip
    return Section(title, blocks)


def _reading_section(study: ReaderStudy) -> Section:
    """Describe the reads of a reader study: cases, marks and times of each reader, and missing reads."""
    readers = {progress.reader for progress in study.progress}
    reads = max((progress.read for progress in study.progress), default=1)
    text = f"{counted(len(readers), 'reader')} read the cases" + (
        f" up to {reads} times" if reads > 1 else ""
    )
    text += ", blinded to each other's marks and to results." if study.blinding else "."
    text += " Times count only while the reader's window was active."
    if study.unblinded:
        text += f" The study was opened before every reader had finished: {plain(study.unblinded, 300)}."
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
    blocks: list[Block] = [Prose([("", text)]), Table("Reads", columns, rows)]
    if study.unfinished:
        listed = "; ".join(plain(progress.in_words()) for progress in study.unfinished)
        blocks.append(Prose([("Not finished", f"{listed}.")]))
    return Section("Reader study", blocks)


def _trust_section(trusts: Mapping[str, Trust]) -> Section:
    """Compare each result's probabilities with ground truth, by title."""
    blocks: list[Block] = []
    for title, trust in trusts.items():
        text = trust.in_words()
        blocks.append(
            Notices([f"{plain(title)}: {text}"]) if trust.contradicted else Prose([(plain(title), text)])
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
