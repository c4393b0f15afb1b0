"""Exports of a study: formats, requests, and writing with a record of the runs.

Each kind lists its exports, see `raterscope.app.kinds.registry.exports`. A record names the runs shown, and
states whether they used the current decisions.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from raterscope import __version__
from raterscope.algorithms.progress import Cancelled, Watch, silent, steps_of
from raterscope.app.errors import InputError, plain

if TYPE_CHECKING:  # the records of kinds import this module for help texts, which numpy would delay
    from raterscope.app.study import ImageEntry, RunEntry, Study


@dataclass(frozen=True)
class FileFormat:
    """A file format: its suffix, and its name in dialogs.

    `tag` is the part of file names that distinguishes formats with the same suffix. A format that `is_folder`
    is always several files.
    """

    suffix: str
    text: str
    tag: str = ""
    is_folder: bool = False


FORMATS = {
    "csv": FileFormat(".csv", "Tables (*.csv)"),
    "geojson": FileFormat(".geojson", "GeoJSON of QuPath (*.geojson)"),
    "coco": FileFormat(".json", "Keypoints of COCO (*.json)"),
    "cvat": FileFormat(".xml", "CVAT for images (*.xml)"),
    "panoptes": FileFormat(".csv", "Reductions of Zooniverse (*.csv)", "_reductions"),
    "napari": FileFormat(".csv", "Layers of points of napari (*.csv)"),
    "nifti": FileFormat(".nii.gz", "NIfTI (*.nii.gz *.nii)"),
    "seg.nrrd": FileFormat(".seg.nrrd", "Segmentations of 3D Slicer (*.seg.nrrd)"),
    "dicom-seg": FileFormat(".dcm", "DICOM segmentations (*.dcm)", "_seg"),
    "rtstruct": FileFormat(".dcm", "DICOM structure sets (*.dcm)", "_rtstruct"),
    "dicom-sr": FileFormat(".dcm", "DICOM structured reports (*.dcm)", "_sr"),
    "crowd-kit": FileFormat(".csv", "Tables of crowd-kit (*.csv)"),
    "svg": FileFormat(".svg", "Drawings (*.svg)"),
    "label-studio": FileFormat(".json", "Tasks of Label Studio (*.json)"),
    "nnunet": FileFormat(".json", "Dataset of nnU-Net", is_folder=True),
    "crops": FileFormat(".csv", "Crops of spots with a table", is_folder=True),
    "coco-boxes": FileFormat(".json", "Images and boxes of COCO", is_folder=True),
    "yolo": FileFormat(".yaml", "Images and boxes of YOLO", is_folder=True),
}

REPORTS = "Web page (*.html);;PDF (*.pdf)"
"""Formats of reports, in a dialog."""

READING = ("reader", "read", "case", "position", "seconds", "marks", "session_begun", "session_finished")
"""Columns of the export of a reader study's reads."""

SESSIONS = (
    "expert", "session", "begun", "ended", "minutes", "decisions", "items", "per_hour", "median_seconds",
    "repeated", "alike", "alike_low", "alike_high",
)  # fmt: skip
"""Columns of the export of review sessions."""

SAMPLE = (
    "kind", "position", "item", "name", "number", "x", "y", "answer", "decision", "right", "count", "verdict"
)  # fmt: skip
"""Columns of the export of acceptance samples."""

Item = TypeVar("Item")

_ALSO = {"nifti": (".nii",), "seg.nrrd": (".nrrd",)}
"""Alternative suffixes of a format."""


@dataclass(frozen=True)
class Request:
    """Request for an export: contents and destination."""

    what: str
    format: str
    path: Path  # a file; a folder if it exists or several files are written
    items: tuple[int, ...] = ()  # numbers of images or questions; empty for all
    deidentify: bool = False  # remove everything that could identify the patient or the raters
    resample: bool = False  # resample uneven or tilted slices to a regular grid if the format requires one
    with_images: bool = False  # write the images too, de-identified; everything then goes into a folder
    say: Callable[[str], object] = lambda _sentence: None  # called with every message for the user
    # run whose results are written; None for the run shown of each item
    run: int | None = None
    # settings of the export as text, see `Export.budgeted`; by default those kept with the study
    settings: Mapping[str, str] = field(default_factory=dict)
    costs: Path | None = None  # table of the costs of annotators
    # name of a group to numbers of its images, for an export that is `Export.grouped`
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    # task to group, for an export of questions that is `Export.grouped`
    task_groups: Mapping[str, str] = field(default_factory=dict)
    formats: Mapping[int, str] = field(default_factory=dict)  # by image, instead of `format`
    groups_from: Path | None = None  # table of the groups, or the word folders; `write_groups` reads it
    group_column: str | None = None  # column of the groups in the table


@dataclass(frozen=True)
class Written:
    """Files written by an export."""

    files: tuple[Path, ...]
    made_from: Provenance  # the runs; empty if the export needs none

    def in_words(self, title: str) -> str:
        """Describe it: "Exported consensus of run 3 (laplace, 2026-01-02 14:02) to /there/c.nii.gz."."""
        of = f" of {self.made_from.in_words()}" if self.made_from.runs else ""
        more = f" and {len(self.files) - 1:,} more" if len(self.files) > 1 else ""
        return f"Exported {title.lower()}{of} to {self.files[0]}{more}."


class Writer(Protocol):
    """Function that writes a requested export of a study."""

    def __call__(self, study: Study, request: Request, watch: Watch) -> list[Path]:
        """Write the export and return the files."""


@dataclass(frozen=True)
class Export:
    """One kind of export of a study."""

    what: str  # name on the command line
    title: str  # in the menu
    formats: tuple[str, ...] = ("csv",)  # keys of `FORMATS`, the usual one first
    by_case: bool = False  # whether the window writes it only for the image on screen
    deidentifies: bool = False  # whether it can be de-identified
    of_run: bool = True  # whether it is made from the results of runs
    by_question: bool = False  # whether several questions are written as several files, into a folder
    of_study: bool = False  # whether it is of the whole study, whatever the images
    of_readers: bool = False  # whether only a collected reader study has it
    budgeted: bool = False  # whether it distributes a budget, and so has settings and costs
    # whether groups of images become rows; other exports are split into one file per group
    grouped: bool = False
    # the kinds of annotation with this export; the registry of kinds fills in this field and `write`
    kinds: tuple[str, ...] = ()
    write: Writer | None = field(default=None, compare=False)  # imports what it needs when it is called


def usual_format(export: Export, images: Iterable[ImageEntry]) -> str:
    """Choose the default format of an export: DICOM for DICOM series."""
    series = [bool(image.identifier) for image in images]
    dicom = next((name for name in export.formats if FORMATS[name].suffix == ".dcm"), None)
    return dicom if dicom is not None and series and all(series) else export.formats[0]


def choose_format(
    export: Export, request: Request, images: Sequence[ImageEntry], given: str | None
) -> Request:
    """Choose the format: as requested, else by the file's name, else the default of each image.

    Raises `InputError` if the export does not support the format.
    """
    form = _format_of(export, request.path, given)
    if form is not None:
        return replace(request, format=form)
    form, usual = usual_format(export, images), {image.id: usual_format(export, [image]) for image in images}
    return replace(request, format=form, formats={} if set(usual.values()) <= {form} else usual)


def _format_of(export: Export, path: Path, given: str | None) -> str | None:
    if given is not None:
        if given not in export.formats:
            expected = ", ".join(export.formats)
            raise InputError(
                f"{export.what} cannot be exported as {plain(given)}; expected one of {expected}"
            )
        return given
    name = path.name.casefold()
    endings = {key: (form.suffix, *_ALSO.get(key, ())) for key, form in FORMATS.items()}
    fitting = [key for key in export.formats if name.endswith(endings[key])]
    if not fitting and any(name.endswith(those) for those in endings.values()):
        expected = " or ".join(dict.fromkeys(FORMATS[key].suffix for key in export.formats))
        raise InputError(
            f"{export.what} cannot be exported in this format; expected a name that ends in {expected}",
            file=path,
        )
    return fitting[0] if fitting else None


def files_for(
    request: Request,
    items: Sequence[tuple[Item, str]],
    watch: Watch = silent,
    formats: Mapping[Item, str] | None = None,
) -> Iterator[tuple[Item, Path, Watch]]:
    """Yield each item with the file to write.

    Several files are written into a folder and named after the items. A single file is too, if the folder
    exists or images are also written. `formats`: the format of each item, if not the request's. Raises
    `InputError` when the folder cannot be made.
    """
    from raterscope.app.formats.output_files import file_name_part, make_folder, unique_name

    folder = folder_of(request)
    alone = len(items) == 1 and not request.path.is_dir() and not request.with_images
    if not alone:
        make_folder(folder)
    used: set[str] = set()
    for (item, name), step in steps_of(watch, items):
        step(0.0, f"writing {request.what} of {plain(name)}")
        form = FORMATS[request.format if formats is None else formats[item]]
        title = unique_name(f"{file_name_part(name)}_{request.what}{form.tag}", used)
        path = request.path if alone else folder / f"{title}{form.suffix}"
        yield item, path, step


def folder_of(request: Request) -> Path:
    """Return the folder for several files: the requested path without a file's suffix."""
    path, suffix = request.path, FORMATS[request.format].suffix
    named_as_file = path.name.casefold().endswith(suffix) and not path.is_dir()
    return path.with_name(path.name[: -len(suffix)]) if named_as_file else path


def provenance(export: Export, study: Study, request: Request) -> Provenance:
    """Find the runs of an export before it is written, and in what they are outdated.

    Raises `InputError` when there is no such run, or every run held decisions fixed that were undone since.
    """
    if not export.of_run:
        if request.run is not None:
            raise InputError(f"--run selects a run of results; {export.what} do not belong to a run")
        return Provenance()
    with study.shown.only(request.run):
        if request.run is not None and study.runs.get(request.run).kind not in export.kinds:
            kinds = " or ".join(export.kinds)
            there = study.runs.in_words(export.kinds)
            raise InputError(f"run {request.run} is not of {kinds}; there is {there}", file=study.path)
        made = provenance_of(study, export.kinds, request.items)
    if not made.runs and made.outdated:
        raise InputError(made.outdated[0], file=study.path)
    return made


def write_groups(export: Export, study: Study, request: Request, watch: Watch = silent) -> Written:
    """Write an export by groups of images: as rows of a table, or a file for each group into a folder.

    Raises `InputError` for an export of questions, and as `write_export` does. A group without anything to
    write is skipped with a message.
    """
    from raterscope.app.formats.output_files import file_name_part, make_folder, unique_name

    if request.groups_from is not None:
        request = _with_groups(export, study, request, request.groups_from)
    if export.grouped:
        return write_export(export, study, request, watch)
    if export.by_question or not export.kinds or export.of_study or export.budgeted:
        raise InputError(f"{export.what} are not of images; --groups is for exports of images")
    folder, used = folder_of(request), set[str]()
    make_folder(folder)
    files: list[Path] = []
    made, problem = provenance(export, study, request), None
    for (name, images), step in steps_of(watch, request.groups.items()):
        items = tuple(image for image in images if not request.items or image in request.items)
        one_format = {request.formats.get(image, request.format) for image in items}
        own_format = one_format.pop() if len(one_format) == 1 else request.format
        form = FORMATS[own_format]
        title = unique_name(f"{file_name_part(name)}_{request.what}{form.tag}", used)
        path = folder / f"{title}{form.suffix}"
        own = replace(request, path=path, format=own_format, items=items, groups={})
        try:
            written = write_export(export, study, own, step) if items else None
        except InputError as error:
            request.say(f"{plain(name)}: {error.what}")
            problem = error
            continue
        if written is not None:
            files += written.files
    if not files:
        raise problem or InputError("no group has any of these images", file=study.path)
    return Written(tuple(files), made)


def _with_groups(export: Export, study: Study, request: Request, source: Path) -> Request:
    from raterscope.app.study.image_groups import read_groups, read_task_groups

    if export.by_question and export.grouped:
        return replace(request, task_groups=read_task_groups(source, request.group_column))
    groups, notices = read_groups(study, source, request.group_column)
    for notice in notices:
        request.say(notice)
    return replace(request, groups=groups)


def write_export(export: Export, study: Study, request: Request, watch: Watch = silent) -> Written:
    """Write an export of a study: the run shown of each image or question, or one run.

    A file NAME.run.json beside the results describes their runs; NAME-2.run.json if the first describes other
    files. Raises `InputError` if there is nothing to write yet, or a file cannot be written or is a study.
    """
    from raterscope.app.formats.masks.export import REGULAR
    from raterscope.app.formats.output_files import remove_new_files_on, write_record
    from raterscope.app.program_files import STUDY_SUFFIX

    path, form = request.path, FORMATS[request.format]
    if not (
        path.suffix or path.is_dir() or form.is_folder
    ):  # of several files, `folder_of` takes it off again
        request = replace(request, path=path.with_name(path.name + form.suffix))
    if STUDY_SUFFIX in (path.suffix.casefold(), path.resolve().suffix.casefold()):
        raise InputError("is a study's name, which the export would replace; choose another", file=path)
    if request.deidentify and not export.deidentifies:
        raise InputError(f"{export.what} cannot be de-identified; --deidentify is for exports of masks")
    if request.with_images and not request.deidentify:
        raise InputError("--with-images needs --deidentify; original images are not exported")
    if request.with_images and not export.by_case:
        raise InputError(f"{export.what} is a table; --with-images is for masks and maps")
    forms = {*request.formats.values()} or {request.format}
    if request.resample and forms.isdisjoint(REGULAR):
        raise InputError(f"--resample has no effect on {export.what} as {' and '.join(sorted(forms))}")
    if (request.settings or request.costs) and not export.budgeted:
        raise InputError(f"--set and --costs are for exports of assignments, not for {export.what}")
    assert export.write is not None
    made = provenance(export, study, request)
    folder = folder_of(request)
    there = folder.exists()
    try:
        with study.shown.only(request.run), remove_new_files_on(InputError, Cancelled):
            files = export.write(study, request, watch)
            if made.runs:
                names = [file.name for file in files]
                record = record_of_export(
                    study, made, what=request.what, form=" and ".join(sorted(forms)), files=names,
                    deidentify=request.deidentify,
                )  # fmt: skip
                write_record(_free_record(_record_path(request, files), names), record)
        return Written(tuple(files), made)
    except (InputError, Cancelled):
        if not there:
            with suppress(OSError):  # there is none, or what was written before is in it
                folder.rmdir()
        raise


def write_decisions(study: Study, request: Request, watch: Watch) -> list[Path]:
    """Write the expert's decisions as a table. See `Writer`."""
    from raterscope.app.formats.output_files import DECISIONS, decision_rows, write_table

    watch(0.0, "writing decisions")
    return [write_table(request.path, DECISIONS, decision_rows(study.decisions(), study.names()))]


def write_samples(study: Study, request: Request, watch: Watch) -> list[Path]:
    """Write the items of the last acceptance samples, with the results of re-reading. See `Writer`."""
    from raterscope.app.formats.output_files import format_number, write_table
    from raterscope.app.review import NO_SAMPLE, read_last_samples

    watch(0.0, "writing acceptance samples")
    names = study.names()
    samples = read_last_samples(study.review_state())
    if not samples:
        raise InputError(NO_SAMPLE, file=study.path)
    rows = []
    for sample in samples:
        subject = sample.subject
        for position, item in enumerate(subject.items):
            decision, right = sample.right.get(position, (None, None))
            rows.append((
                subject.of, position + 1, names.get((subject.of, item.item), ""), item.name, item.number,
                *("" if value is None else format_number(value) for value in (item.x, item.y)),
                item.answer, decision, right, sample.count_in_words(),
                sample.verdict_in_words().casefold() or "open",
            ))  # fmt: skip
    return [write_table(request.path, SAMPLE, rows)]


def write_sessions(study: Study, request: Request, watch: Watch) -> list[Path]:
    """Write the sessions of each expert, and their totals. See `Writer`."""
    from raterscope.app.formats.output_files import format_number, write_table
    from raterscope.app.study.expert_agreement import read_sessions

    watch(0.0, "writing review sessions")
    paces = read_sessions(study.decisions())
    if not paces:
        raise InputError("has no decision yet", file=study.path)
    rows = []
    for pace in paces:
        for number, session in (*enumerate(pace.sessions, start=1), ("all", pace.whole)):
            repeats = pace.alike if number == "all" else ()
            rows.append((
                pace.expert, number, *(time.isoformat(timespec="seconds") for time in session.ends),
                format_number(session.seconds / 60), session.decisions, session.items,
                format_number(session.per_hour), format_number(session.median_seconds),
                pace.repeated if number == "all" else "", *map(format_number, repeats or (math.nan,) * 3),
            ))  # fmt: skip
    return [write_table(request.path, SESSIONS, rows)]


def write_reading(study: Study, request: Request, watch: Watch) -> list[Path]:
    """Write the cases that the readers of a reader study have read, with times. See `Writer`."""
    from raterscope.app.formats.output_files import format_number, write_table

    watch(0.0, "writing reads")
    state = study.settings.reader_study
    if state is None:
        raise InputError("is no reader study; `raterscope reader-study collect` makes one", file=study.path)
    rows = (
        (read.reader, read.read, case.case, case.position, format_number(case.seconds), case.marks,
         read.begun, read.finished)
        for read in state.reads
        for case in sorted(read.cases, key=lambda case: case.position)
    )  # fmt: skip
    return [write_table(request.path, READING, rows)]


def _record_path(request: Request, files: Sequence[Path]) -> Path:
    """Return the path of an export's record, named after the file, or after the export in a folder."""
    first = files[0].resolve()
    if first.parent != request.path.resolve().parent:
        return Path(os.path.commonpath([file.parent for file in files]), f"{request.what}.run.json")
    suffixes = sorted((FORMATS[request.format].suffix, *_ALSO.get(request.format, ())), key=len)
    name = request.path.name
    ending = next((suffix for suffix in reversed(suffixes) if name.casefold().endswith(suffix)), "")
    return request.path.with_name(f"{name[: len(name) - len(ending)]}.run.json")


_LONGEST_RECORD = 100_000_000
"""Maximum size of a record of an export, in bytes."""


def _free_record(path: Path, names: Sequence[str]) -> Path:
    """Return a path for a record that keeps the records of earlier exports in the folder.

    Earlier records lose the names of replaced files. Files larger than a record are kept.
    """
    from raterscope.app.formats.output_files import write_record
    from raterscope.app.formats.untrusted import decode_json

    free, number = path, 1
    while free.exists():
        try:
            if free.stat().st_size <= _LONGEST_RECORD:
                record = decode_json(free.read_bytes())
                others = [name for name in record["files"] if name not in names]
                if not others:
                    return free
                if len(others) < len(record["files"]):
                    write_record(free, record | {"files": others})
        except (OSError, ValueError, LookupError, TypeError):
            return free
        number += 1
        free = path.with_name(f"{path.name.removesuffix('.run.json')}-{number}.run.json")
    return free


_NAMED = 3
"""Maximum number of runs listed by name; of more, only the number is given."""


@dataclass(frozen=True)
class Provenance:
    """The runs that an export or a report is made from."""

    runs: tuple[RunEntry, ...] = ()  # by number
    items: Mapping[int, tuple[int, ...]] = field(default_factory=dict)  # by run
    # why the runs are outdated (by decisions or annotations), one sentence each
    outdated: tuple[str, ...] = ()
    decisions: int = 0  # the number of the last decision

    def in_words(self) -> str:
        """Name the runs: "run 3 (Laplace, 2026-01-02 14:02)"."""
        if len(self.runs) > _NAMED:
            return f"{len(self.runs):,} runs ({self.runs[0].id} to {self.runs[-1].id})"
        from raterscope.app.study.runs import run_name

        return " and ".join(run_name(run) for run in self.runs)


def provenance_of(study: Study, kinds: Sequence[str], items: Sequence[int] = ()) -> Provenance:
    """Find the runs shown of some kinds.

    `items`: numbers of images or questions; empty for all.
    """
    runs: dict[int, list[int]] = {}
    outdated = []
    there = study.items()
    for kind in kinds:
        requested = [entry.id for entry in there[kind] if not items or entry.id in items]
        for item in requested:
            run = study.shown.run(item, kind)
            if run is not None:
                runs.setdefault(run, []).append(item)
        outdated += study.shown.replaced(kind, requested)
    for run in sorted(runs):
        outdated += study.shown.outdated(study.runs.get(run), runs[run])
    return Provenance(
        runs=tuple(study.runs.get(run) for run in sorted(runs)),
        items={run: tuple(of) for run, of in runs.items()},
        outdated=tuple(outdated),
        decisions=study.last_decision(),
    )


def provenance_of_report(study: Study, item: int | None = None, question: int | None = None) -> Provenance:
    """Find the runs that a report is made from; see `provenance_of`.

    `item`, `question`: number of the only image or question in the report; None for all.
    """
    from raterscope.app.study.kinds import image_kinds, question_kinds

    if item is not None:
        return provenance_of(study, image_kinds(), (item,))
    if question is not None:
        return provenance_of(study, question_kinds(), (question,))
    return provenance_of(study, (*image_kinds(), *question_kinds()))


def description_of(run: RunEntry | None, *, deidentify: bool = False) -> str:
    """Describe the run of a file in short ASCII text; without the time if de-identified."""
    if run is None:
        return "Raterscope"
    when = "" if deidentify else f", {run.started.astimezone():%Y-%m-%d %H:%M}"
    return f"Raterscope run {run.id} ({plain(run.algorithm, 40)}{when})".encode("ascii", "replace").decode()


def record_of_export(
    study: Study, made: Provenance, *, what: str, form: str, files: Sequence[str], deidentify: bool
) -> dict[str, Any]:
    """Return the contents of an export's run.json; without names and times if de-identified."""
    return {
        "what": what,
        "format": form,
        "files": list(files),
        "raterscope": __version__,
        "runs": [_record(study, run, made.items[run.id], deidentify) for run in made.runs],
        "last_decision": made.decisions,
        "outdated": [] if deidentify else list(made.outdated),
        "is_outdated": bool(made.outdated),
    }


def _record(study: Study, run: RunEntry, items: Sequence[int], deidentify: bool) -> dict[str, Any]:
    record: dict[str, Any] = {
        "run": run.id,
        "kind": run.kind,
        "algorithm": run.algorithm,
        "settings": run.settings,
        "seed": run.seed,
        "versions": run.versions,
        "digest": run.digest,
        "last_decision_held": run.known,
        "decisions_since": study.shown.decided_since(run, items),
    }
    if "viewed" in run.log:
        record["viewed_undecided"] = run.log["viewed"]
    if "scores" in run.log:
        record["scores"] = run.log["scores"]
    if deidentify:
        return record
    return record | {
        "started": run.started.isoformat(timespec="milliseconds"),
        "excluded": list(run.excluded),
        "weights": run.weights,
        "aliases": run.aliases,
        "programs": list(run.programs),
        "items": [study.name_of(run.kind, item) for item in items],
        **_controls(study, run, items),
    }


def _controls(study: Study, run: RunEntry, items: Sequence[int]) -> dict[str, dict[str, bool]]:
    """Return a run's control images, and whether each is known to contain structures; empty without any."""
    from raterscope.app.study.kinds import STORED

    if not STORED[run.kind].has_controls:
        return {}
    then = study.review_state(run.known)
    marks = {study.name_of(run.kind, item): then.control(item) for item in items}
    named = {name: mark.holds for name, mark in marks.items() if mark is not None}
    return {"controls": named} if named else {}
