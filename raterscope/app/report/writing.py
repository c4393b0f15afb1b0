"""The report of a study: gathered case by case, then written as one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raterscope import __version__
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.app.errors import InputError, missing_package, plain
from raterscope.app.exports import Provenance, provenance_of_report
from raterscope.app.formats.output_files import check_writable, write_bytes
from raterscope.app.kinds.kind import Kind, ReportRequest
from raterscope.app.kinds.registry import KINDS
from raterscope.app.page.contents import Block, Contents, Notices, Prose, Section, Table, as_html
from raterscope.app.program_files import STUDY_SUFFIX
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.expert_agreement import ExpertAgreement, Interval, read_agreement
from raterscope.app.study.records import Item
from raterscope.text import counted, percent

if TYPE_CHECKING:
    from raterscope.app.assessment import Trust

_SUFFIXES = (".html", ".pdf")


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
        for ROC curves by cross-validation, and `over_time`, the class for whose decisions rates are followed
        ("" for the last). For masks: `methods`, names of methods to compare, all if empty.
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
    from raterscope.app.report.sections import (
        cohort_section,
        decisions_on,
        decisions_section,
        methods_section,
        reading_section,
        trust_section,
    )

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
        raise InputError("holds nothing that was fused yet; `raterscope run` fuses it", file=study.path)
    trust = _trust(study, fused)
    if trust:
        sections.append(trust_section(trust))
    cohort = study.settings.cohort
    if cohort and is_complete:
        sections.insert(0, cohort_section(cohort))
    readers = study.settings.reader_study
    if readers is not None and is_complete:
        sections.insert(0, reading_section(readers))
    stale = _stale(study, origin)
    if sections[0].breaks:
        sections[0] = replace(sections[0], breaks=False)
    if stale:
        sections.insert(0, Section("", [Notices(stale)]))
    items_shown = {(name, entry.id) for name, entries in scope.items() for entry in entries}
    named = {key: name for key, name in study.names().items() if key in items_shown}
    decisions_shown = decisions_on(decisions, named, state)
    views = {image: image_views for kind_part in parts for image, image_views in kind_part.views.items()}
    experts = experts_section(study) if is_complete else None
    sections += [] if experts is None else [experts]
    sections.append(decisions_section(decisions_shown, state, views))
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
    """Compare what the results claim with what is known, by the title of each result."""
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
    """Describe what was fused: "24 images of clicks, 1 question of labels; 39 annotators"."""
    counts = {kind: len(_fused(study, kind, kind.items(study))) for kind in KINDS.values()}
    phrases = [f"{counted(number, kind.item)} of {kind.name}" for kind, number in counts.items() if number]
    number = len(study.annotators()) - len(study.review_state().aliases)
    return f"{', '.join(phrases)}; {counted(number, 'annotator')}"


def _fused(study: Study, kind: Kind, entries: Sequence[Item]) -> list[Item]:
    """Return the items of a kind for which a run is shown."""
    present = {entry.id for entry in kind.items(study)}
    return [
        entry for entry in entries if entry.id in present and study.shown.run(entry.id, kind.name) is not None
    ]


def _stale(study: Study, origin: Provenance) -> list[str]:
    """Describe decisions and annotations that the runs do not include."""
    return [
        *origin.outdated,
        *(
            f"Decisions were made after run {run.id} and are not included. Fuse again to hold them fixed."
            for run in origin.runs
            if study.shown.decided_since(run, origin.items[run.id])
        ),
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
    """Describe the merged reads and the agreement of the experts; None for a study of one expert."""
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
