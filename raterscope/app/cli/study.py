"""Commands on studies: `run`, `export`, `report`, `annotators`, `merge`, `copy` and `decide`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

from raterscope.algorithms.progress import Watch, part
from raterscope.app.annotators.writing import ALL_ANNOTATORS, find_studies, read_studies, write_annotators
from raterscope.app.command_line.output import (
    ProgressLine,
    WriteOutcome,
    one_line,
    print_results,
    raise_failures,
    write_with_fallback,
)
from raterscope.app.command_line.selection import select_items
from raterscope.app.decision_tables import record_decisions
from raterscope.app.errors import InputError, plain
from raterscope.app.exports import (
    Export,
    Request,
    choose_format,
    provenance_of_report,
    write_export,
    write_groups,
)
from raterscope.app.formats.output_files import check_writable, write_table
from raterscope.app.kinds.kind import Kind
from raterscope.app.kinds.registry import KINDS, exports, find_export
from raterscope.app.outcome import Answer
from raterscope.app.report import write_report
from raterscope.app.study import Study
from raterscope.app.study.journal_comparison import Conflict
from raterscope.app.study.merging import merge_studies
from raterscope.app.study.new_study import copy_for_reader, save_elsewhere
from raterscope.app.study.records import ImageEntry, Item
from raterscope.app.study.references import ImageNames
from raterscope.app.workers import Workers, processors
from raterscope.text import counted


def run(options: argparse.Namespace) -> int:
    """Fuse a study's annotations and store the run in it; the algorithm determines the kind."""
    kind = _kind_of(options)
    for option, default in (("detector", "dem"), ("hold_truth", False)):
        if vars(options)[option] != default and option not in kind.run_options:
            raise InputError(f"{_option(option)} has no effect on {kind.name}")
    steps = kind.functions
    plan = steps.make_plan(options.algorithm, steps.plan_texts(options))
    with Study.open(options.study) as study, ProgressLine(sys.stderr) as watch:
        items = [
            entry.id for entry in select_items(study, options.item, kind.name, by_question=kind.by_question)
        ]
        with Workers(processors() if options.jobs is None else options.jobs) as workers:
            steps.start_processes(workers, plan, len(items))
            inputs = steps.gather(items, study, plan, options.hold_truth, part(watch, 0.0, 0.05))
            answer = steps.fuse(inputs, plan, workers, part(watch, 0.05, 0.85))
        saved = _store_run(steps.keep, answer, study, part(watch, 0.85, 0.9))
        summary = steps.summarise(answer, study, options, part(watch, 0.9, 1.0))
        notices, lines = list(summary.notices), list(summary.lines)
    return _report_run(options.study, saved, answer, lines, notices)


def _kind_of(options: argparse.Namespace) -> Kind:
    """Return an algorithm's kind of annotation; if there are several, the one in the study."""
    algorithms = {name: _algorithms(kind, chosen_by_run=True) for name, kind in KINDS.items()}
    named = [kind for kind, names in algorithms.items() if options.algorithm in names]
    if not named:
        listing = "; ".join(f"{', '.join(names)} for {kind}" for kind, names in algorithms.items())
        raise InputError(f"'{plain(options.algorithm)}' is no algorithm; expected one of {listing}")
    if options.kind is not None:
        if options.kind not in named:
            raise InputError(f"{options.algorithm} is for {' and '.join(named)}, not for {options.kind}")
        return KINDS[options.kind]
    if len(named) == 1:
        return KINDS[named[0]]
    with Study.open(options.study) as study:
        present = [kind for kind in named if KINDS[kind].items(study)]
    if len(present) > 1:
        kinds = " and ".join(present)
        message = f"contains {kinds}, and {options.algorithm} is for {kinds}; choose one with --kind"
        raise InputError(message, file=options.study)
    if not present:
        message = f"contains neither {' nor '.join(named)}, which {options.algorithm} is for"
        detects = [
            name
            for name, kind in KINDS.items()
            if options.algorithm in _algorithms(kind, chosen_by_run=False)
        ]
        raise InputError(
            message
            + "".join(f"; for {kind} it is a detector: --detector {options.algorithm}" for kind in detects),
            file=options.study,
        )
    return KINDS[present[0]]


def _algorithms(kind: Kind, *, chosen_by_run: bool) -> list[str]:
    """List the algorithms of a kind that `run` accepts, as its argument or in one of its options."""
    return [
        name
        for catalogue in kind.catalogues
        if catalogue.chosen_by_run == chosen_by_run
        for name in catalogue.algorithms
    ]


def _store_run(keep: Callable[..., int], answer: Any, study: Study, watch: Watch) -> WriteOutcome[int] | None:
    """Store a run in its study, or in a copy elsewhere; store nothing if all items failed."""

    def store(target: Study, watch: Watch) -> int:
        return keep(answer, target, watch)

    if not answer.kept:
        return None
    return write_with_fallback(
        lambda _: store(study, watch),
        study.path,
        lambda path: int(save_elsewhere(study, path, [store], watch)[0]),
    )


def _report_run(
    study: Path,
    saved: WriteOutcome[int] | None,
    answer: Answer[Any, Any, Any],
    lines: Iterable[str],
    notices: Iterable[str],
) -> int:
    """Print the outcome of a run and its location, and return the exit status."""
    print_results(notices, lines)
    if saved is not None:
        print(f"run {saved.answer} is in {saved.path if saved.why else study}")
        saved.check_path("The run is in a copy of the study,")
    raise_failures(answer.outcomes)
    return 0


def export(options: argparse.Namespace) -> int:
    """Export a study's results as tables, masks or maps."""
    if options.group_by is not None and options.groups is None:
        raise InputError("--group-by names a column of the table of --groups; give that too")
    notices: list[str] = []
    with Study.open(options.study, to_read=True) as study, ProgressLine(sys.stderr) as watch:
        with study.shown.only(options.run):  # raises if there is no such run
            kinds = _kinds(study, options.run) if options.kind is None else [options.kind]
        chosen_export = (
            _export_of_all(options.what) if options.kind == "all" else find_export(options.what, kinds)
        )
        present = [kind for kind, of in study.items().items() if of]
        if options.kind is None and present and not {*present} & {*chosen_export.kinds}:
            kinds = [kind for each in exports() if each.what == options.what for kind in each.kinds]
            raise InputError(
                f"has {' and '.join(present)}; {options.what} is exported of {' or '.join(kinds)}",
                file=study.path,
            )
        if options.item and chosen_export.of_study:
            raise InputError(f"--item has no effect on {options.what}, which are of the whole study")
        items = tuple(item.id for item in _named(study, options, chosen_export)) if options.item else ()
        request = Request(
            what=options.what,
            format="",
            path=options.output,
            items=items,
            deidentify=options.deidentify,
            resample=options.resample,
            with_images=options.with_images,
            say=notices.append,
            run=options.run,
            settings=dict(options.settings),
            costs=options.costs,
            groups_from=options.groups,
            group_column=options.group_by,
        )
        request = choose_format(chosen_export, request, _images(study, chosen_export, items), options.format)
        write = write_export if options.groups is None else write_groups
        results = write(chosen_export, study, request, watch)
    print_results((*results.made_from.outdated, *notices), ())
    print(one_line(results.in_words(chosen_export.title)), file=sys.stderr)
    for path in results.files:
        print(path)
    return 0


def _export_of_all(what: str) -> Export:
    if what != ALL_ANNOTATORS.what:
        raise InputError(f"--kind all is for --what {ALL_ANNOTATORS.what}, not for {plain(what)}")
    return ALL_ANNOTATORS


def _images(study: Study, chosen_export: Export, items: Sequence[int]) -> list[ImageEntry]:
    """List the images of an export."""
    of_kind = {item.id for kind in chosen_export.kinds for item in study.items()[kind]}
    return [image for image in study.images() if image.id in (items or of_kind)]


def _named(study: Study, options: argparse.Namespace, items: Export) -> Sequence[Item]:
    """Find the named questions, for an export of labels or pairs, otherwise the images."""
    (first, *more_kinds) = items.kinds
    if more_kinds or not KINDS[first].by_question:
        return select_items(study, options.item)
    return select_items(study, options.item, first, by_question=True)


def _kinds(study: Study, run: int | None) -> list[str]:
    """List the kinds: that of the chosen run, those of the latest runs, then those of the study."""
    fused, items = [run_entry.kind for run_entry in reversed(study.runs.all())], study.items()
    if run is not None:
        return [study.runs.get(run).kind]
    marked = [kind for kind, of in items.items() if of]
    return list(dict.fromkeys([*fused, *marked, *items]))


_MEASURED = {
    "by_crowd_size": "clicks", "compare_methods": "masks", "roc_curves": "labels", "cost": "labels",
    "rates_over_time": "labels",
}  # fmt: skip
"""Options of `report` with further measurements, and their kinds."""


def report(options: argparse.Namespace) -> int:
    """Write the report of a study, or of one image or question of it, or feedback for an annotator."""
    if options.annotator is not None:
        return _feedback(options)
    measured = {
        name: value for kind in KINDS.values() for name, value in kind.report.read_options(options).items()
    }
    if options.variability is not None:
        from raterscope.app.page.variability import Protocol, read_protocol

        named = options.variability != Path()
        measured["variability"] = read_protocol(options.variability) if named else Protocol()
    with Study.open(options.study, to_read=True) as study, ProgressLine(sys.stderr) as watch:
        present = study.items()
        for name in _given(options, _MEASURED):
            if not present[_MEASURED[name]]:
                raise InputError(f"{_option(name)} has no effect: the study holds no {_MEASURED[name]}")
        item = question = None
        if options.item is not None:
            entry = ImageNames(study.images(), study.path.parent).find(options.item)
            questions = {
                entry.name.casefold(): entry.id
                for kind in KINDS.values()
                if kind.by_question
                for entry in kind.items(study)
            }
            item, question = (entry.id, None) if entry else (None, questions.get(options.item.casefold()))
            if item is None and question is None:
                raise InputError(f"contains no image or question {plain(options.item)}", file=study.path)
        with study.shown.only(options.run):
            origin = provenance_of_report(study, item, question)
            print_results(origin.outdated, ())
            path = write_report(
                study,
                options.output,
                watch,
                item=item,
                question=question,
                options=measured,
            )
    print(f"Report of {origin.in_words()} saved to {one_line(str(path))}", file=sys.stderr)
    print(path)
    return 0


def _given(options: argparse.Namespace, names: Iterable[str]) -> list[str]:
    return [name for name in names if vars(options)[name] not in (None, False)]


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _feedback(options: argparse.Namespace) -> int:
    """Write the feedback page of an annotator."""
    from raterscope.app.annotators.writing import write_feedback

    others = _given(options, ("item", "variability", *_MEASURED))
    if others:
        names = " and ".join(map(_option, others))
        raise InputError(f"--annotator writes a page of its own; leave out {names}")
    reading = Study.open(options.study, to_read=True)
    with reading as study, ProgressLine(sys.stderr) as watch, study.shown.only(options.run):
        path = write_feedback(study, options.annotator, options.output, watch)
    print(path)
    return 0


def annotators(options: argparse.Namespace) -> int:
    """Write the annotators of studies as one table."""
    check_writable(options.output)
    skipped: list[str] = []
    with ProgressLine(sys.stderr) as watch:
        tables = read_studies(find_studies(options.studies), skipped.append, watch)
    path = write_annotators(options.output, tables, options.where or "")
    for sentence in skipped:
        print(f"note: {one_line(sentence)}", file=sys.stderr)
    print(path)
    return 0


_LISTED = 20
"""Maximum number of conflicts printed; the table has all."""


def merge(options: argparse.Namespace) -> int:
    """Merge studies, and print conflicts and agreement."""
    if len(options.studies) < 2:
        raise InputError("is the only study; expected two or more", file=options.studies[0])
    if options.conflicts is not None:
        check_writable(options.conflicts)
    with ProgressLine(sys.stderr) as watch:
        merged = merge_studies(options.studies, options.output, watch, incomplete=options.incomplete)
    conflicts = [conflict for study in merged for conflict in study.conflicts]
    for study in merged:
        added = (f"{counted(study.added, 'decision')} added, {counted(len(study.conflicts), 'conflict')}"
                 if study.added else "nothing to add; all its decisions are in the other study")  # fmt: skip
        print(f"{one_line(study.path.name)}: {added}")
        for kind, agreement in study.agreements().items():
            print(f"  {kind}: {agreement.in_words()}")
    for conflict in conflicts[:_LISTED]:
        where = f"{conflict.item}, " if conflict.item else ""
        print(one_line(f"open again: {where}{conflict.subject} ({conflict.reason})"))
    if len(conflicts) > _LISTED:
        print(f"and {len(conflicts) - _LISTED:,} more; --conflicts writes all")
    if options.conflicts is not None:
        header = [field.name for field in fields(Conflict)]
        print(write_table(options.conflicts, header, map(astuple, conflicts)))
    print(options.output)
    return 0


def copy(options: argparse.Namespace) -> int:
    """Copy a study for a second reader."""
    with Study.open(options.study, to_read=True) as study, ProgressLine(sys.stderr) as watch:
        copied = copy_for_reader(study, options.output, blind=options.blind, watch=watch)
    print(f"{options.output}: {copied.in_words()}")
    return 0


def decide(options: argparse.Namespace) -> int:
    """Record the decisions of a table."""
    with Study.open(options.study) as study, ProgressLine(sys.stderr) as watch:
        recorded, known = record_decisions(study, options.decisions, watch)
    print(f"{counted(recorded, 'decision')} recorded" + (f", {known:,} known already" if known else ""))
    return 0
