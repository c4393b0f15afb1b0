"""Cancel at the k-th progress call of every long operation: nothing half-written remains, and it works again.

Usage: python -m tests.campaigns.cancel [--seed N] [--seconds N] [--operation WORDS]

Operations are the fusion with every algorithm of every kind, import, export in every format, HTML and PDF
reports, a copy of the study, and a watched source. After a cancellation the study holds what it held, no file
was left, and the same operation succeeds.
"""

from __future__ import annotations

import shutil
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from raterscope.algorithms.progress import Cancelled, Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.exports import FORMATS, Export, Request, write_export
from raterscope.app.kinds.clicks.live_source import LiveSource, WatchRequest
from raterscope.app.kinds.clicks.live_watching import WatchPlan
from raterscope.app.kinds.registry import exports
from raterscope.app.report import write_report
from raterscope.app.study import Study
from tests.campaigns.harness import Outcome, Summary, cases, error_outcome, parser, random_of
from tests.campaigns.studies import KINDS, StudyKind, dump_of, import_files, make_study

__all__ = ["main"]

ALL_CALLS = 1 << 60


@dataclass(frozen=True)
class Operation:
    """A long operation that can be cancelled.

    Attributes
    ----------
    name : str
    kind : str
        Of the study that it is done with.
    act : callable
        Called with the study, the folder of the files that were imported, a folder to write to, and a watch.
    """

    name: str
    kind: str
    act: Callable[[Study, Path, Path, Watch], object]


class Canceller:
    """A watch that counts its calls and cancels at one of them."""

    def __init__(self, at: int = ALL_CALLS) -> None:
        self.calls = 0
        self._at = at

    def __call__(self, fraction: float, words: str, **more: object) -> None:
        self.calls += 1
        if self.calls == self._at:
            raise Cancelled


def operations() -> list[Operation]:
    """List the operations."""
    results = []
    for kind in KINDS.values():
        results += [_fusion(kind, algorithm) for algorithm in kind.algorithms]
        results.append(Operation(f"import {kind.name}", kind.name, _import))
        results += [
            Operation(f"report {kind.name} {form}", kind.name, _report(form)) for form in ("html", "pdf")
        ]
        results.append(
            Operation(f"copy {kind.name}", kind.name, lambda study, _f, _o, watch: study.copy(watch).close())
        )
    for export in exports():
        for form in export.formats:
            if FORMATS[form].suffix != ".dcm":  # which needs a DICOM series
                results.append(_export(export, form))
    results.append(Operation("watch clicks", "clicks", _watch))
    return results


def _fusion(kind: StudyKind, algorithm: str) -> Operation:
    return Operation(
        f"fuse {kind.name} {algorithm}",
        kind.name,
        lambda study, _f, _o, watch: kind.fuse(study, algorithm, watch),
    )


def _import(study: Study, files: Path, out: Path, watch: Watch) -> None:
    import_files(study, sorted(path for path in files.iterdir() if path.is_file()), watch)


def _report(form: str) -> Callable[[Study, Path, Path, Watch], object]:
    return lambda study, _files, out, watch: write_report(study, out / f"report.{form}", watch)


def _export(export: Export, form: str) -> Operation:
    def act(study: Study, _files: Path, out: Path, watch: Watch) -> None:
        write_export(export, study, Request(export.what, form, out / f"out{FORMATS[form].suffix}"), watch)

    return Operation(f"export {export.kinds[0]} {export.what} {form}", export.kinds[0], act)


def _watch(study: Study, files: Path, _out: Path, watch: Watch) -> None:
    following = LiveSource(study, WatchRequest(files / "clicks.csv", WatchPlan.make({}), {}))
    while True:
        growth = following.look(watch, ended=True)
        following.store(study, growth, watch)
        images = following.gather(study, watch)
        for _ in following.advance(images, watch):
            pass
        following.keep(study, images)
        if not growth.more:
            break
    following.keep_run(study)


class Campaign:
    """The studies, made once, and how often each operation calls its watch."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[str, Path] = {}
        self._calls: dict[str, int | None] = {}

    def try_case(self, operation: Operation, random: Random) -> Outcome:
        """Cancel an operation at one of its calls."""
        calls = self._count(operation)
        if calls is None:
            return Outcome(operation.name, "no result")
        if calls == 0:
            return Outcome(operation.name, "no calls")
        at = 1 + random.randrange(calls)
        with TemporaryDirectory(dir=self._folder) as folder:
            return self._cancel(operation, Path(folder), at, calls)

    def _cancel(self, operation: Operation, folder: Path, at: int, calls: int) -> Outcome:
        path, files, out = self._copy(operation, folder)
        before = dump_of(path)
        where = f"cancelled at call {at} of {calls}"
        column = "cancelled"
        try:
            with Study.open(path) as study:
                operation.act(study, files, out, Canceller(at))
            column = "finished"  # it called fewer times than when it was counted
        except Cancelled:
            pass
        except Exception as error:
            outcome = error_outcome(operation.name, error)
            return Outcome(operation.name, "raised", f"{where}: {outcome.defect or error}")
        if column == "cancelled":
            left = sorted(
                file_path.name
                for file_path in (*out.iterdir(), *folder.iterdir())
                if file_path not in (path, files, out)
            )
            if left:
                return Outcome(operation.name, column, f"{where}: left {', '.join(left)}")
            # What a watched source brought before stays, step by step.
            if operation.act is not _watch and dump_of(path) != before:
                return Outcome(operation.name, column, f"{where}: the study has changed")
        try:
            with Study.open(path) as study:
                operation.act(study, files, out, silent)
        except Exception as error:
            outcome = error_outcome(operation.name, error)
            return Outcome(operation.name, column, f"{where}, then again: {outcome.defect or error}")
        return Outcome(operation.name, column)

    def _count(self, operation: Operation) -> int | None:
        """Count an operation's calls; None where a study of this kind does not have what it needs."""
        if operation.name not in self._calls:
            with TemporaryDirectory(dir=self._folder) as folder:
                path, files, out = self._copy(operation, Path(folder))
                watch = Canceller()
                try:
                    with Study.open(path) as study:
                        operation.act(study, files, out, watch)
                    self._calls[operation.name] = watch.calls
                except InputError:
                    self._calls[operation.name] = None
        return self._calls[operation.name]

    def _copy(self, operation: Operation, folder: Path) -> tuple[Path, Path, Path]:
        """Copy the study, with its files and an empty folder to write to."""
        if operation.kind not in self._made:
            self._made[operation.kind] = make_study(self._folder / operation.kind, operation.kind)
        created = self._made[operation.kind]
        path = Path(shutil.copy(created, folder / created.name))
        files = folder / "files"
        shutil.copytree(created.parent / "files", files)
        out = folder / "out"
        out.mkdir()
        return path, files, out


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign, and return the exit status."""
    options_parser = parser("cancel", __doc__)
    options_parser.add_argument("--operation", default="", help="only operations whose name has these words")
    options = options_parser.parse_args(arguments)
    chosen = [one for one in operations() if options.operation in one.name]
    summary = Summary("Cancelled operations", options.seed)
    with TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        campaign = Campaign(Path(name))
        for case in cases(options):
            operation = chosen[case % len(chosen)]
            summary.add(case, campaign.try_case(operation, random_of("cancel", options.seed, case)))
    return summary.end()


if __name__ == "__main__":
    sys.exit(main())
