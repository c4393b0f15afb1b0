"""The report of a study: gathered case by case, then written as one file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from raterscope import __version__
from raterscope.algorithms.clicks.crowd_size import CrowdSizeSettings
from raterscope.algorithms.labels.data import OPEN
from raterscope.algorithms.labels.roc_curves import FoldedSettings
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import InputError, counted, plain
from raterscope.app.formats.records import STUDY_SUFFIX
from raterscope.app.formats.whole import check_place, write_whole
from raterscope.app.page.contents import Contents, Notices, Section
from raterscope.app.provenance import Provenance, provenance_of_report
from raterscope.app.review import ReviewState, fold, read_measures
from raterscope.app.study import ImageEntry, RunEntry, Study
from raterscope.app.study.labels import labels_of
from raterscope.app.study.masks import mask_entries
from raterscope.app.study.pairs import pairs_of
from raterscope.app.study.records import PairQuestion, QuestionEntry

if TYPE_CHECKING:
    from raterscope.app.kinds.masks.report.case_figures import Figures
    from raterscope.app.trust import Trust

__all__ = ["write_report"]

_SUFFIXES = (".html", ".pdf")

Entry = TypeVar("Entry", QuestionEntry, PairQuestion)


def write_report(
    study: Study,
    path: Path,
    watch: Watch = silent,
    *,
    item: int | None = None,
    question: int | None = None,
    crowd_size: CrowdSizeSettings | None = None,
    folds: FoldedSettings | None = None,
    over_time: str | None = None,
    methods: Sequence[str] | None = None,
) -> Path:
    """Write what a study has come to by the runs shown, for people: slices, tables, decisions, methods.

    Parameters
    ----------
    study : Study
    path : Path
        Ends in .html or .pdf; replaced where it exists, whole or not at all.
    watch : Watch
    item : int, optional
        The number of the only image to tell of.
    question : int, optional
        The number of the only question to tell of, of labels or pairs; without either, all is told.
    crowd_size : CrowdSizeSettings, optional
        Measure methods for clicks against the number of annotators too, which takes minutes.
    folds : FoldedSettings, optional
        Measure ROC curves of all methods for labels by cross-validation, of questions with known truths;
        without, those that the study keeps are drawn.
    over_time : str, optional
        Draw the rates of those who gave labels over time, for decisions on this class; "" for the last.
    methods : sequence of str, optional
        Compare these methods for masks on the same cases, all where it is empty, which may take minutes. By
        default the report shows what the study keeps of the last comparison.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        When the name is none of a report, nothing was fused yet, or the file cannot be written.
    """
    path = Path(path)
    ending = path.suffix.casefold()
    if ending not in _SUFFIXES or path.resolve().suffix.casefold() == STUDY_SUFFIX:
        raise InputError("is no name of a report; expected one that ends in .html or .pdf", file=path)
    check_place(path)
    contents = _gather(study, part(watch, 0.0, 0.9), item, question, crowd_size, folds, over_time, methods)
    watch(0.9, "writing the report")
    if ending == ".pdf":
        try:
            from raterscope.app.page.pdf import as_pdf
        except ImportError as error:  # a machine without Qt, or without the libraries that Qt needs
            raise InputError(f"the libraries that write PDF cannot be loaded: {error}", file=path) from error
        data = as_pdf(contents, part(watch, 0.9, 1.0))
    else:
        from raterscope.app.page.rendering import as_html

        data = as_html(contents).encode()
    write_whole(path, data)
    return path


def _gather(
    study: Study,
    watch: Watch = silent,
    item: int | None = None,
    question: int | None = None,
    crowd_size: CrowdSizeSettings | None = None,
    folds: FoldedSettings | None = None,
    over_time: str | None = None,
    methods: Sequence[str] | None = None,
) -> Contents:
    """Read and measure all that a report tells, see `write_report`."""
    from raterscope.app.report.decisions import decisions_section, told_of
    from raterscope.app.report.methods import methods_section
    from raterscope.app.report.trusted import trust_section

    decisions = study.decisions()
    state = fold(decisions)
    whole = item is None and question is None
    entries = [entry for entry in study.images() if whole or entry.id == item]
    questions = [entry for entry in study.questions() if whole or entry.id == question]
    compared = [entry for entry in study.pair_questions() if whole or entry.id == question]
    made = provenance_of_report(study, item, question)
    runs: dict[int, RunEntry] = {}
    sections, figures = _masks(study, entries, state, runs, part(watch, 0.0, 0.6), methods)
    sections += _clicks(study, entries, state, runs, part(watch, 0.6, 0.8), crowd_size)
    sections += _questions(
        study, questions, "labels", partial(_labels, folds, over_time), state, runs, part(watch, 0.8, 0.9)
    )
    sections += _questions(study, compared, "pairs", _pairs, state, runs, part(watch, 0.9, 1.0))
    if not sections:
        if made.outdated:
            raise InputError(made.outdated[0], file=study.path)
        raise InputError("holds nothing that was fused yet; `raterscope run` fuses it", file=study.path)
    trust = _trust(study, entries, questions, compared)
    if trust:
        sections.append(trust_section(trust))
    stale = _stale(study, made)
    if sections[0].breaks:
        sections[0] = replace(sections[0], breaks=False)
    if stale:
        sections.insert(0, Section("", [Notices(stale)]))
    shown = {("labels", one.id) for one in questions} | {("pairs", one.id) for one in compared}
    shown |= {(kind, one.id) for kind in ("clicks", "masks") for one in entries}
    named = {key: name for key, name in study.names().items() if key in shown}
    told = told_of(decisions, named, state)
    views = {image: some for image, some in study.views.by_image().items() if ("clicks", image) in shown}
    sections.append(decisions_section(told, state, views))
    told_runs = [_with_who_had_a_part(study, runs[number]) for number in sorted(runs)]
    sections.append(methods_section(told_runs, figures, decisions, named))
    facts = [("Study", plain(study.path.stem, 200))]
    facts.append(("About", _about(study)) if whole else ("Only", plain(next(iter(named.values())))))
    facts.append(("Runs" if len(made.runs) > 1 else "Run", made.in_words()))
    experts = list(dict.fromkeys(plain(one.who, 40) for one, _ in told if one.who))
    if experts:
        facts.append(("Experts" if len(experts) > 1 else "Expert", ", ".join(experts)))
    now = datetime.now(UTC)
    facts.append(("Written", f"{now:%Y-%m-%d %H:%M} UTC by Raterscope {__version__}"))
    return Contents(f"Report on {plain(study.path.stem, 200)}", facts, sections)


def _trust(
    study: Study, entries: list[ImageEntry], questions: list[QuestionEntry], compared: list[PairQuestion]
) -> dict[str, Trust]:
    """Compare what the results claim with what is known, by the title of each result."""
    from raterscope.app.kinds.registry import KINDS

    images = [entry.id for entry in entries]
    wanted = [("Clicks", "clicks", images), ("Masks", "masks", images)]
    wanted += [(entry.name, "labels", [entry.id]) for entry in questions]
    wanted += [(entry.name, "pairs", [entry.id]) for entry in compared]
    found: dict[str, Trust] = {}
    for title, kind, items in wanted:
        fused = _fused(study, kind)
        here = [item for item in items if item in fused]
        trust = KINDS[kind].trust(study, here, silent) if here else None
        if trust is not None:
            found[title] = trust
    return found


def _with_who_had_a_part(study: Study, run: RunEntry) -> RunEntry:
    """Give a run of whose excluded only those are left who had marked or answered something of it."""
    if not run.excluded:
        return run
    everybody = replace(run, excluded=(), weights={})
    here: set[str | None] = set()
    for item in run.items:
        if run.kind == "masks":
            here.update(one.annotator for one in mask_entries(study, item, everybody))
        elif run.kind == "clicks":
            here.update(study.clicks(item, everybody).annotators)
        elif run.kind == "labels":
            here.update(labels_of(study, item, everybody).annotators)
        else:
            here.update(pairs_of(study, item, everybody).annotators)
    return replace(run, excluded=tuple(name for name in run.excluded if name in here))


def _about(study: Study) -> str:
    """Say what was fused: "24 images of clicks, 1 question of labels; 39 annotators"."""
    nouns = {"clicks": "image", "masks": "case", "labels": "question", "pairs": "question"}
    many = {kind: len(_fused(study, kind)) for kind in nouns}
    here = [f"{counted(number, nouns[kind])} of {kind}" for kind, number in many.items() if number]
    return f"{', '.join(here)}; {counted(len(study.annotators()), 'annotator')}"


def _masks(
    study: Study,
    entries: list[ImageEntry],
    state: ReviewState,
    runs: dict[int, RunEntry],
    watch: Watch,
    methods: Sequence[str] | None,
) -> tuple[list[Section], list[Figures]]:
    """Tell of the cases of masks; fills in the runs."""
    ids = {one.id for one in study.items()["masks"]}
    here = [entry for entry in entries if entry.id in ids & _fused(study, "masks")]
    if not here:
        return [], []
    from raterscope.app.kinds.masks.report.agreement import agreement_section
    from raterscope.app.kinds.masks.report.case_figures import read_figures
    from raterscope.app.kinds.masks.report.cases import case_section, cases_table
    from raterscope.app.kinds.masks.report.methods import compared_methods_section
    from raterscope.app.kinds.masks.report.rater_trees import rater_trees_section
    from raterscope.app.kinds.masks.report.volumes import read_voxels

    sections, cases = [], []
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
    return sections, figures


def _clicks(
    study: Study,
    entries: list[ImageEntry],
    state: ReviewState,
    runs: dict[int, RunEntry],
    watch: Watch,
    crowd_size: CrowdSizeSettings | None,
) -> list[Section]:
    """Tell of the images of clicks; fills in the runs."""
    fused = _fused(study, "clicks")
    if not fused & {entry.id for entry in entries}:
        return []
    from raterscope.app.kinds.clicks.report.counted_image import read_counted
    from raterscope.app.kinds.clicks.report.section import clicks_section

    found = []
    for done, entry in enumerate(entries):
        watch(0.5 * done / len(entries), f"counting on {plain(entry.name)}")
        one = read_counted(study, entry, state.spots(entry.id)) if entry.id in fused else None
        if one is not None:
            found.append(one)
            runs[one.run.id] = one.run
    measures = read_measures(study.decisions(), state)
    last = 1.0 if crowd_size is None else 0.6
    sections = [clicks_section(study, found, measures, state.excluded, part(watch, 0.5, last))]
    if not found:
        return sections
    from raterscope.app.kinds.clicks.report.crowd_size import crowd_size_section, kept_section

    if crowd_size is None:
        kept = kept_section(study)
        sections += [] if kept is None else [kept]
    else:
        run = max((one.run for one in found), key=lambda run: run.id)
        images = [one.entry.id for one in found]
        sections.append(crowd_size_section(study, images, run, crowd_size, part(watch, last, 1.0)))
    return sections


def _questions(
    study: Study,
    entries: Sequence[Entry],
    kind: str,
    tell: Callable[[Study, Entry, ReviewState, Watch], tuple[RunEntry, Section] | None],
    state: ReviewState,
    runs: dict[int, RunEntry],
    watch: Watch,
) -> list[Section]:
    """Tell of the questions of a kind; fills in the runs."""
    fused = _fused(study, kind)
    here = [entry for entry in entries if entry.id in fused]
    sections = []
    for done, entry in enumerate(here):
        step = part(watch, done / len(here), (done + 1) / len(here), f"{plain(entry.name)}: ")
        told = tell(study, entry, state, step)
        if told is not None:
            run, section = told
            runs[run.id] = run
            sections.append(section)
    return sections


def _labels(
    folds: FoldedSettings | None,
    over_time: str | None,
    study: Study,
    entry: QuestionEntry,
    state: ReviewState,
    watch: Watch,
) -> tuple[RunEntry, Section] | None:
    from raterscope.app.kinds.labels.answers import plan_of
    from raterscope.app.kinds.labels.decision_rates import follow_question
    from raterscope.app.kinds.labels.folded import fold_question, kept_folds
    from raterscope.app.kinds.labels.report.answered_question import read_question
    from raterscope.app.kinds.labels.report.section import question_section

    measured = 0.7 if folds is None else 0.3
    found = read_question(study, entry, state.excluded, part(watch, 0.0, measured))
    if found is None:
        return None
    answered = found.answered
    kept = kept_folds(entry.id, study)
    curves = None if kept is None else kept.curves
    if folds is not None and (answered.question.truth != OPEN).any():
        step = part(watch, measured, 0.9)
        curves = fold_question(answered.question, folds, plan_of(answered.run), step)
    followed = None
    if over_time is not None:
        followed = follow_question(answered.question, over_time or None, part(watch, 0.9, 0.95))
    return answered.run, question_section(found, part(watch, 0.95, 1.0), curves, followed)


def _pairs(
    study: Study, entry: PairQuestion, state: ReviewState, watch: Watch
) -> tuple[RunEntry, Section] | None:
    from raterscope.app.kinds.pairs.report.compared_question import read_compared
    from raterscope.app.kinds.pairs.report.section import compared_section

    judged = state.judged(entry.id)
    found = read_compared(study, entry, judged, state.excluded, part(watch, 0.0, 0.8))
    if found is None:
        return None
    return found.run, compared_section(found, part(watch, 0.8, 1.0))


def _fused(study: Study, kind: str) -> set[int]:
    """Give the items of a kind of which a run is shown."""
    return {one.id for one in study.items()[kind] if study.shown.run(one.id, kind) is not None}


def _stale(study: Study, made: Provenance) -> list[str]:
    """Say in what the runs do not rest on what the expert says now."""
    return [
        *made.outdated,
        *(
            f"Decisions were made after run {run.id}: its figures do not rest on them. Fuse again to have "
            "them held fixed."
            for run in made.runs
            if study.shown.decided_since(run, made.items[run.id])
        ),
    ]
