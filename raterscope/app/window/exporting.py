"""Exports from the window: results, and figures by their context menus."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QObject, Signal
from PySide6.QtGui import QImage, QImageWriter
from PySide6.QtWidgets import QFileDialog, QInputDialog, QWidget

from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.errors import InputError
from raterscope.app.exports import (
    FORMATS,
    Export,
    Provenance,
    Request,
    provenance,
    usual_format,
    write_export,
    write_groups,
)
from raterscope.app.jobs import Job, Jobs
from raterscope.app.kinds.registry import KINDS, exports, find_export
from raterscope.app.window.bars import ask, ask_before_file

if TYPE_CHECKING:
    from raterscope.app.contents import Contents
    from raterscope.app.study import RunEntry, Study
    from raterscope.figures.description import PlotTable
    from raterscope.widgets.dialogs.output_dialogs import DeidentifiedExportDialog
    from raterscope.widgets.figure_menu import SavedContent

_ABOUT_TRAINING = (
    "A fifth of the groups is for validation. The {item}s of a group, such as a patient or slide, are all in "
    "training or all in validation."
)
_USUAL = "DICOM for cases of DICOM series, NIfTI for others"
_OF_ALL_CASES = ("cvat",)
"""Formats that hold all cases in one file."""
WITHOUT_NAMES = "To write it without names, choose Export, De-identified in the menu."
_ABOUT_GROUPS = "A group, such as a patient or slide, is counted over its {item}s."


def menu_entries(kind: str, *, readers: bool = False) -> Iterator[tuple[str, Export, bool]]:
    """List the entries of a kind's Export menu: label, export, and whether it is de-identified.

    `readers`: include entries of a collected reader study.
    """
    from raterscope.app.annotators.writing import ALL_ANNOTATORS

    offered = (ALL_ANNOTATORS, find_export("decisions", tuple(KINDS))) if kind == "annotators" else exports()
    for export in offered:
        of_it = kind in export.kinds or kind == "annotators"
        if of_it and (readers or not export.of_readers):
            yield f"{export.title}…", export, False
            if export.deidentifies:
                yield f"{export.title}, de-identified…", export, True


class StudyExporter(QObject):
    """Exports of the open study to a file or folder that the user chooses, in the study's thread."""

    message = Signal(str)  # exported files

    def __init__(self, document: Document, item: Callable[[], int | None], window: QWidget) -> None:
        super().__init__(window)
        self._document = document
        self._item = item
        self._window = window

    def start(self, export: Export, deidentify: bool = False, *, all_cases: bool = False) -> None:
        """Find the runs of an export, ask for a file or folder, and write it.

        `all_cases`: whether to export all cases into a folder, instead of the case on screen.
        """
        contents = self._document.contents
        if contents is None:
            return
        folder = all_cases or (export.by_question and len(contents.of(export.kinds[0])) > 1)
        item = self._item() if export.by_case and not folder else None
        items = () if item is None else (item,)
        request = Request(export.what, export.formats[0], contents.path, items, deidentify)
        job = self._document.ask("Reading runs", partial(_provenance, export, request))
        job.finished.connect(partial(self._on_found, export, request, folder))

    def _on_found(self, export: Export, request: Request, folder: bool, origin: Provenance) -> None:
        contents = self._document.contents
        if contents is None or contents.path != request.path:
            return
        choose = self._choose_folder if folder else self._choose_file
        if export.grouped:
            choose = partial(self._ask_groups, choose)
        title = f"Export {'de-identified ' if request.deidentify else ''}{export.title.lower()}"
        if origin.runs:
            title += f" of {origin.in_words()}"
        go_on = partial(choose, contents, export, request, title)
        blind = contents.hidden and not request.deidentify
        instead = WITHOUT_NAMES if export.deidentifies else ""
        ask_before_file(self._window, "Export", title, origin.outdated, go_on, blind=blind, instead=instead)

    def _ask_groups(
        self, choose: Callable[..., None], contents: Contents, export: Export, request: Request, title: str
    ) -> None:
        """Ask for format and groups, for the table of the groups, then for the file or folder."""
        from raterscope.app.study import image_groups
        from raterscope.widgets.dialogs.output_dialogs import (
            FOLDERS,
            STORED,
            TABLE,
            TABLES_OF_GROUPS,
            GroupedExportDialog,
        )

        words = {FORMATS[name].text.split(" (")[0]: name for name in export.formats}
        item = "task" if export.by_question else KINDS[export.kinds[0]].nouns.item
        about = _ABOUT_TRAINING if export.what == "training" else _ABOUT_GROUPS
        dialog = GroupedExportDialog(
            export.title, about.format(item=item), list(words), item, not export.by_question, self._window,
            stored=bool(contents.groups) and not export.by_question,
        )  # fmt: skip

        def go_on() -> None:
            without_table = {FOLDERS: image_groups.FOLDER_GROUPS, STORED: image_groups.STORED_GROUPS}
            source = without_table.get(dialog.groups, "")
            if dialog.groups == TABLE:
                source, _ = QFileDialog.getOpenFileName(
                    self._window, f"{title}: select the table of groups", str(contents.path.parent),
                    TABLES_OF_GROUPS,
                )  # fmt: skip
                if not source:
                    return
            chosen = replace(request, format=words[dialog.format])
            choose(
                contents, replace(export, formats=(chosen.format,)),
                replace(chosen, groups_from=Path(source) if source else None), title,
            )  # fmt: skip

        dialog.accepted.connect(go_on)
        dialog.open()

    def _choose_file(self, contents: Contents, export: Export, request: Request, title: str) -> None:
        item = next(iter(request.items), None)
        if request.deidentify and export.by_case:
            self._ask_deidentified(contents, export, item, title)
            return
        formats = _formats(contents, export, item)
        choice = self._file(title, _proposed(contents, export, item, formats[0], request.deidentify), formats)
        if choice is not None:
            path, format_name = choice
            self._check_grid(contents, export, replace(request, format=format_name, path=path), title)

    def _ask_deidentified(self, contents: Contents, export: Export, item: int | None, title: str) -> None:
        """Ask for the format of a de-identified export, and whether to include its images."""
        from raterscope.widgets.dialogs.output_dialogs import DeidentifiedExportDialog

        words = {FORMATS[name].text: name for name in _formats(contents, export, item)}
        image = None if item is None else contents.image(item)
        images = image is not None and image.path is not None
        dialog = DeidentifiedExportDialog(export.title, list(words), images, self._window)
        start = partial(self._start_deidentified, contents, export, item, words, dialog, title)
        dialog.accepted.connect(start)
        dialog.open()

    def _start_deidentified(
        self,
        contents: Contents,
        export: Export,
        item: int | None,
        words: Mapping[str, str],
        dialog: DeidentifiedExportDialog,
        title: str,
    ) -> None:
        """Ask for a file, or for a folder if images and masks are exported together."""
        format_name, with_images = words[dialog.format], dialog.with_images
        items = () if item is None else (item,)
        path: Path | None
        if with_images:
            words_of_folder = f"{title}: select a folder for masks and images"
            name = QFileDialog.getExistingDirectory(self._window, words_of_folder, str(contents.path.parent))
            path = Path(name) if name else None
        else:
            proposed = _proposed(contents, export, item, format_name, True)
            choice = self._file(title, proposed, [format_name])
            path = None if choice is None else choice[0]
        if path is not None:
            request = Request(export.what, format_name, path, items, True, with_images=with_images)
            self._check_grid(contents, export, request, title)

    def _file(self, title: str, proposed: Path, formats: Sequence[str]) -> tuple[Path, str] | None:
        """Ask for a file and its format, or for the name of a folder."""
        if FORMATS[formats[0]].is_folder:
            text = f"{title}: name of a new folder"
            name, _ = QFileDialog.getSaveFileName(self._window, text, str(proposed))
            return (Path(name), formats[0]) if name else None
        filters = {FORMATS[name].text: name for name in formats}
        name, chosen = QFileDialog.getSaveFileName(self._window, title, str(proposed), ";;".join(filters))
        format_name = filters.get(chosen, formats[0])
        return (_with_suffix(Path(name), format_name, formats), format_name) if name else None

    def _check_grid(self, contents: Contents, export: Export, request: Request, title: str) -> None:
        """Write; ask first if slices are uneven and the format needs a regular grid."""
        from raterscope.app.formats.masks.export import ANY_SLICES, REGULAR
        from raterscope.app.formats.volumes.resampling import explain_irregularity

        entries = [entry for entry in contents.images if entry.id in request.items] or contents.images
        reasons = [explain_irregularity(entry.lattice) for entry in entries]
        reason = next(filter(None, reasons), "")
        if request.format not in REGULAR or not reason:
            self._write(export, request)
            return
        others = " and ".join(ANY_SLICES[name] for name in export.formats if name in ANY_SLICES)
        kept = f" Every slice stays in place in {others}." if others else ""
        ask(
            self._window,
            title,
            "Resample to a regular grid?",
            f"{reason}. This format needs a regular grid. Edges may shift by half a voxel.{kept}",
            "Resample",
            "Cancel",
            partial(self._write, export, replace(request, resample=True)),
        )

    def _choose_folder(self, contents: Contents, export: Export, request: Request, title: str) -> None:
        """Ask for the folder for the files of all questions or cases, and for the format.

        Cases may each have their usual format: DICOM for a DICOM series.
        """
        forms = {FORMATS[name].text: name for name in export.formats if name not in _OF_ALL_CASES}
        usual: dict[int, str] = {}
        if export.by_case:
            usual = {image.id: usual_format(export, (image,)) for image in contents.images}
            if len(set(usual.values())) > 1:
                forms = {_USUAL: usual_format(export, contents.images), **forms}
            else:
                first = next(iter(usual.values()))
                forms = dict(sorted(forms.items(), key=lambda form: form[1] != first))
        chosen, accepted = next(iter(forms)), True
        if len(forms) > 1:
            chosen, accepted = QInputDialog.getItem(self._window, title, "Format", list(forms), 0, False)
        many = f"{len(usual):,} cases" if usual else f"{len(contents.of(export.kinds[0])):,} questions"
        text = f"{title}: select a folder for the files of {many}"
        folder = accepted and QFileDialog.getExistingDirectory(self._window, text, str(contents.path.parent))
        if folder:
            formats = usual if chosen == _USUAL else {}
            request = replace(request, format=forms[chosen], formats=formats, path=Path(folder))
            self._check_grid(contents, export, request, title)

    def _write(self, export: Export, request: Request) -> None:
        title = f"Exporting {export.title.lower()}"
        job = self._document.read_beside(title, partial(_write, export, request), lasting=True)
        job.finished.connect(self._on_written)
        job.ended.connect(partial(self._on_ended, job))
        self.message.emit(f"{title}: the tab Jobs shows the progress.")

    def _on_ended(self, job: Job) -> None:
        if job.state == "cancelled":
            self.message.emit(f"{job.title} was cancelled.")

    def _on_written(self, text: str) -> None:
        self.message.emit(text)


def _formats(contents: Contents, export: Export, item: int | None) -> list[str]:
    """List the formats, the usual one of the case first: DICOM for a DICOM series."""
    image = None if item is None else contents.image(item)
    usual = usual_format(export, () if image is None else (image,))
    return [usual, *(name for name in export.formats if name != usual)]


def _proposed(
    contents: Contents, export: Export, item: int | None, format_name: str, deidentify: bool
) -> Path:
    """Propose a file name; that of a de-identified export identifies nobody."""
    from raterscope.app.formats.masks.naming import image_stem
    from raterscope.app.formats.output_files import file_name_part
    from raterscope.app.kinds.masks.exports import case_pseudonym

    image = None if item is None else contents.image(item)
    stem = contents.path.stem if image is None else file_name_part(image_stem(image.name))
    if deidentify:
        stem = "study" if image is None else case_pseudonym(image)
    form = FORMATS[format_name]
    if form.is_folder:
        return contents.path.with_name(f"{stem}-{export.what}")
    return contents.path.with_name(f"{stem}-{export.what}{form.tag}{form.suffix}")


def _with_suffix(path: Path, format_name: str, formats: Sequence[str]) -> Path:
    """Replace the suffix of another format by that of the chosen one."""
    name = path.name
    for other in formats:
        name = name.removesuffix(FORMATS[other].suffix)
    foreign = name == path.name and path.suffix  # a suffix that is no format's was typed on purpose
    return path if foreign else path.with_name(name + FORMATS[format_name].suffix)


def _provenance(export: Export, request: Request, study: Study, watch: Watch) -> Provenance:
    watch(0.0, "reading runs")
    return provenance(export, study, request)


def _write(export: Export, request: Request, study: Study, watch: Watch) -> str:
    notices: list[str] = []
    write = write_export if request.groups_from is None else write_groups
    written = write(export, study, replace(request, say=notices.append), watch)
    return " ".join([written.in_words(export.title), *notices])


WORDS = {".svg": "Drawings (*.svg)", ".png": "Pictures (*.png)", ".csv": "Tables (*.csv)"}
AT_ONCE = 10_000
"""Number of rows between two checks for cancellation."""


class FigureExporter(QObject):
    """Writer of figures that are saved by their context menus.

    `item`: returns the number of the item on screen. `run`: returns the run on screen; None if nothing was
    fused.
    """

    # message, refused: written files, and failures
    message = Signal(str)
    refused = Signal(str)

    def __init__(
        self,
        document: Document,
        jobs: Jobs,
        item: Callable[[], int | None],
        run: Callable[[], RunEntry | None],
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._document, self._jobs, self._window = document, jobs, window
        self._item, self._run = item, run
        self._folder: Path | None = None

    def listen_to(self, widget: QWidget) -> None:
        """Handle the context menus of figures in a part of the window."""
        from raterscope.widgets.figure_menu import FigureMenu

        for menu in widget.findChildren(FigureMenu):
            menu.caption = self._caption
            menu.leaving.connect(self.save)
            menu.reported.connect(self.message)

    def save(self, leaving: SavedContent) -> None:
        """Ask for a file, and write a figure to it."""
        title = f"Save {leaving.title}"
        words = WORDS[leaving.suffix]
        name, _ = QFileDialog.getSaveFileName(self._window, title, str(self._proposed(leaving)), words)
        if not name:
            return
        path = Path(name)
        if path.suffix.casefold() != leaving.suffix:
            path = path.with_name(path.name + leaving.suffix)
        self._folder = path.parent
        job = self._jobs.start(title, partial(_write_figure, leaving, path, self._caption()))
        job.finished.connect(self._on_written)
        job.failed.connect(self.refused)

    def _caption(self) -> str:
        """Name the run on screen."""
        from raterscope.app.study.runs import run_name

        run = self._run()
        return "" if run is None else run_name(run)

    def _on_written(self, text: str) -> None:
        self.message.emit(text)

    def _proposed(self, leaving: SavedContent) -> Path:
        from raterscope.app.formats.output_files import file_name_part

        contents = self._document.contents
        folder, stem = (Path.home(), "") if contents is None else (contents.path.parent, contents.path.stem)
        item = self._item() if leaving.of_image else None
        image = None if contents is None or item is None else contents.image(item)
        of = stem if image is None else file_name_part(Path(image.name).stem)
        run = self._run()
        run_part = "" if run is None else f"run-{run.id}"
        text = "-".join(filter(None, (of, file_name_part(leaving.title.casefold()), run_part)))
        return (self._folder or folder) / f"{text}{leaving.suffix}"


def _write_figure(leaving: SavedContent, path: Path, run: str, watch: Watch) -> str:
    from raterscope.app.formats.output_files import write_bytes, write_table
    from raterscope.figures.description import PlotTable

    content = leaving.content
    if isinstance(content, PlotTable):
        write_table(path, content.columns, _watched(content, watch))
    else:
        write_bytes(path, _encoded(content, path) if isinstance(content, QImage) else content)
    return f"Saved {leaving.title}{f' of {run}' if run else ''} to {path}."


def _watched(table: PlotTable, watch: Watch) -> Iterator[tuple[Any, ...]]:
    for number, row in enumerate(table.rows()):
        if not number % AT_ONCE:
            watch(0.0, f"{number:,} rows saved")
        yield row


def _encoded(image: QImage, path: Path) -> bytes:
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    if not QImageWriter(buffer, QByteArray(b"png")).write(image):
        raise InputError("is too large for an image file", file=path)
    return bytes(buffer.data().data())
