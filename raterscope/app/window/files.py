"""Commands on files and folders: open, create, import, report, find and group images; recent studies.

An import is read outside the GUI thread and shown in a preview; dialogs ask for missing information.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document, Unsaved
from raterscope.app.errors import plain
from raterscope.app.exports import REPORTS, Provenance, provenance_of_report
from raterscope.app.jobs import Job, Jobs
from raterscope.app.program_files import READING_SUFFIX
from raterscope.app.session import LatestTask
from raterscope.app.window import preferences
from raterscope.app.window.bars import STUDIES, ask, ask_before_file
from raterscope.app.window.unsaved_results import LeaveGuard

if TYPE_CHECKING:
    from raterscope.app.ambiguous_files import UnknownAnnotators
    from raterscope.app.contents import Contents
    from raterscope.app.formats import UnknownColumns
    from raterscope.app.formats.volumes.resampling import OtherGrid
    from raterscope.app.kinds.masks.imports import StudyImages
    from raterscope.app.review import Decision
    from raterscope.app.study import Study
    from raterscope.app.window.import_reading import Batch, PreparedImport, Question
    from raterscope.widgets.dialogs.import_dialogs import AnnotatorNamesDialog, ColumnMappingDialog
    from raterscope.widgets.dialogs.import_preview import ImportDialog


class RecentStudies(QObject):
    """List of the recent studies, without those that are known to be missing.

    A thread checks whether they exist: a network drive that does not answer would block the window.
    """

    changed = Signal()  # `offered` may have changed

    def __init__(self, jobs: Jobs, parent: QObject) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._checking: Job | None = None
        self._exists: dict[Path, bool] = {}

    @property
    def offered(self) -> tuple[Path, ...]:
        """Recent studies that may exist, the latest first."""
        return tuple(path for path in preferences.recent_studies() if self._exists.get(path, True))

    @property
    def folder(self) -> Path | None:
        """The folder of the latest study that is known to exist; None without one."""
        return next((path.parent for path in self.offered if path in self._exists), None)

    def check(self) -> None:
        """Check which recent studies exist."""
        if self._checking is not None and not self._checking.left:
            return
        job = self._jobs.start(
            "Looking for studies", partial(_existing, preferences.recent_studies()), quiet=True
        )
        self._checking = job
        job.finished.connect(self._on_found)
        preferences.cancel_after_timeout(job)

    def _on_found(self, exists: dict[Path, bool]) -> None:
        self._exists = exists
        self.changed.emit()


def _existing(paths: Sequence[Path], watch: Watch) -> dict[Path, bool]:
    exists = {}
    for done, path in enumerate(paths):
        watch(done / len(paths), "looking for studies")
        exists[path] = path.is_file()
    return exists


OPENED = f"Studies and reading files (*.rscope *{READING_SUFFIX})"
INPUTS = (
    "Images, volumes, points, masks and tables (*.png *.jpg *.jpeg *.tif *.tiff *.bmp *.gif *.nii *.nii.gz "
    "*.nrrd *.nhdr *.mha *.mhd *.dcm *.json *.geojson *.xml *.csv *.tsv *.txt *.parquet *.xlsx *.xls *.ods);;"
    "All files (*)"
)


class FileActions(QObject):
    """Commands of the menu that ask for files and folders."""

    message = Signal(str)  # the outcome; empty to clear a message about another study
    searched = Signal()  # a search for missing images ended: earlier messages about them may be outdated
    reading_requested = Signal(object)  # a reading file is to be opened

    def __init__(
        self,
        document: Document,
        importer: Importer,
        leave_guard: LeaveGuard,
        recent: RecentStudies,
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._recent = recent
        self._leave_guard = leave_guard
        self._document = document
        self._importer = importer
        self._window = window
        self._grouping = LatestTask()
        document.replaced.connect(self._grouping.cancel)

    def open_paths(self, paths: Sequence[Path]) -> None:
        """Open files that were dropped, or named on the command line: a study, images, tables."""
        readings = [path for path in paths if path.suffix.lower() == READING_SUFFIX]
        if readings:
            self.reading_requested.emit(readings[0])
            if len(paths) > 1:
                self.message.emit(f"A reading file opens alone: opened {readings[0].name}.")
            return
        studies = [path for path in paths if path.suffix.lower() == ".rscope"]
        files = [path for path in paths if path.suffix.lower() != ".rscope"]
        if studies:
            self.open_study(studies[0], files)
        else:
            self._import(files)
        if len(studies) > 1:
            self.message.emit(f"Only one study opens at a time: opened {studies[0].name}.")

    def open_study(self, path: Path, files: Sequence[Path] = ()) -> None:
        """Open a study instead of the current one, and import files into it."""
        contents = self._document.contents
        if contents is not None and contents.path == path.absolute():  # does not access the disk
            self.message.emit(f"{path.name} is already open.")
            self._import(files)
        else:
            self._leave_guard.leave_study(partial(self._open, path, files))

    def close_study(self) -> None:
        """Close the study."""
        self._leave_guard.leave_study(self._document.leave)

    def _open(self, path: Path, files: Sequence[Path]) -> None:
        self.message.emit("")  # the message was about the previous study
        self._document.open(path)
        self._import(files)

    def _import(self, files: Sequence[Path]) -> None:
        if files:
            self._importer.start(files)

    def choose_study(self) -> None:
        """Ask which study to open."""
        name, _ = QFileDialog.getOpenFileName(self._window, "Open a study", self.folder(), OPENED)
        if name:
            self.open_paths([Path(name)])

    def new_study(self) -> None:
        """Ask for the file of a new, empty study."""
        name, _ = QFileDialog.getSaveFileName(self._window, "New study", self.folder(), STUDIES)
        if name:
            path = Path(name)
            path = path if path.suffix else path.with_suffix(".rscope")
            self._leave_guard.leave_study(partial(self._document.open, path, create=True))

    def choose_files(self) -> None:
        """Ask which files to import. Without an open study, one is created beside the first of them."""
        names, _ = QFileDialog.getOpenFileNames(self._window, "Import", self.folder(), INPUTS)
        if names:
            self._importer.start([Path(name) for name in names])

    def choose_folder(self) -> None:
        """Ask which folder to import: its images, volumes, DICOM series and masks."""
        name = QFileDialog.getExistingDirectory(self._window, "Import a folder", self.folder())
        if name:
            self._importer.start([Path(name)])

    def write_report(self) -> None:
        """Ask for a file and write the report of the study to it."""
        if self._document.contents is not None:
            job = self._document.ask("Reading runs", _provenance)
            job.finished.connect(partial(self._on_runs_found, self._document.contents.path))

    def _on_runs_found(self, study: Path, provenance: Provenance) -> None:
        contents = self._document.contents
        if contents is None or contents.path != study:
            return
        title = f"Report of {provenance.in_words()}" if provenance.runs else "Report"
        choose = partial(self._choose_sections, contents, provenance, title)
        ask_before_file(self._window, "Report", title, provenance.outdated, choose, blind=contents.hidden)

    def _choose_sections(self, contents: Contents, provenance: Provenance, title: str) -> None:
        from raterscope.widgets.dialogs.output_dialogs import ReportDialog

        if not any(run.kind == "labels" for run in provenance.runs):
            self._choose_report(contents, title)
            return
        dialog = ReportDialog(title, self._window)
        dialog.accepted.connect(lambda: self._choose_report(contents, title, cost=dialog.cost))
        dialog.open()

    def _choose_report(self, contents: Contents, title: str, *, cost: bool = False) -> None:
        proposed = contents.path.with_name(f"{contents.path.stem}-report.html")
        name, _ = QFileDialog.getSaveFileName(self._window, title, str(proposed), REPORTS)
        if name:
            report = partial(_report, Path(name), cost)
            job = self._document.read_beside("Writing the report", report, lasting=True)
            job.finished.connect(self._on_reported)
            job.ended.connect(partial(self._on_ended, job))
            self.message.emit(f"{job.title}: the tab Jobs shows the progress.")

    def _on_ended(self, job: Job) -> None:
        if job.state == "cancelled":
            self.message.emit(f"{job.title} was cancelled.")

    def _on_reported(self, text: str) -> None:
        self.message.emit(text)

    def find_images(self) -> None:
        """Ask for a folder, and search it for missing images."""
        name = QFileDialog.getExistingDirectory(
            self._window, "Select the folder with the images", self.folder()
        )
        if name:
            job = self._document.ask(
                "Looking for images", partial(_find_images, Path(name)), quiet=False, changes=True
            )
            job.finished.connect(self._on_searched)

    def group_images(self) -> None:
        """Ask for groups of the images, such as patients, to filter the queue by."""
        from raterscope.app.study import image_groups
        from raterscope.widgets.dialogs.output_dialogs import ALONE, TABLE, TABLES_OF_GROUPS, GroupsDialog

        dialog = GroupsDialog(self._window)

        def go_on() -> None:
            source = image_groups.FOLDER_GROUPS
            if dialog.groups == TABLE:
                source, _ = QFileDialog.getOpenFileName(
                    self._window, "Select the table of groups", self.folder(), TABLES_OF_GROUPS
                )
            if dialog.groups == ALONE or source:
                work = partial(_make_grouping, None if dialog.groups == ALONE else Path(source))
                self._grouping.follow(
                    self._document.ask("Reading groups", work, quiet=False), self._on_groups
                )

        dialog.accepted.connect(go_on)
        dialog.open()

    def _on_groups(self, answer: tuple[Decision, str]) -> None:
        decision, words = answer
        self._document.record(decision)
        self.message.emit(words)

    def _on_searched(self, text: str) -> None:
        self.searched.emit()
        self.message.emit(text)

    def folder(self) -> str:
        """Return the folder in which file dialogs start: that of the study, or of the latest one."""
        contents = self._document.contents
        if contents is not None:
            return str(contents.path.parent)
        return str(self._recent.folder or "")


def _report(path: Path, cost: bool, study: Study, watch: Watch) -> str:
    from raterscope.app.report import write_report

    provenance, options = provenance_of_report(study), {"cost": cost}
    return f"Report of {provenance.in_words()} saved to {write_report(study, path, watch, options=options)}."


def _provenance(study: Study, watch: Watch) -> Provenance:
    watch(0.0, "reading runs")
    return provenance_of_report(study)


def _find_images(folder: Path, study: Study, _watch: Watch) -> str:
    images = study.relocate_all(folder)
    return f"{len(images)} image{'' if len(images) == 1 else 's'} found in {folder}."


def _make_grouping(source: Path | None, study: Study, watch: Watch) -> tuple[Decision, str]:
    from raterscope.app.study.image_groups import make_grouping

    watch(0.0, "reading groups")
    decision, sentences = make_grouping(study, source)
    return decision, " ".join(sentences)


class Importer(QObject):
    """Import of files: reads them, shows a preview, and stores them once it is confirmed.

    Without an open study, a new one is created with all files or not at all.
    """

    # message, refused: imported annotations, and errors
    message = Signal(str)
    refused = Signal(str)

    def __init__(self, document: Document, jobs: Jobs, window: QWidget) -> None:
        super().__init__(window)
        self._document = document
        self._jobs = jobs
        self._window = window
        self._waiting: list[tuple[Batch, PreparedImport]] = []
        self._created: tuple[Path, str] | None = None
        """Study that is being opened, and the description of its import."""
        document.replaced.connect(self._on_replaced)
        document.import_undo_requested.connect(self._ask_undo)

    def start(self, paths: Sequence[Path]) -> None:
        """Read files, and ask whether to import them, also those that the study contains already."""
        from raterscope.app.study.import_undo import repeated_files
        from raterscope.app.window.import_reading import Batch

        batch, contents = Batch(tuple(paths), self._study()), self._document.contents
        if batch.study is None or contents is None or not contents.import_dates:
            self._read(batch)
            return
        known = contents.import_dates
        job = self._jobs.start(
            f"Reading {_of(batch.paths)}", lambda _watch: repeated_files(known, batch.paths), quiet=True
        )
        job.finished.connect(partial(self._on_repeated, batch))
        job.failed.connect(partial(self._on_failed, batch))

    def _on_repeated(self, batch: Batch, repeated: Mapping[Path, str]) -> None:
        if not repeated:
            self._read(batch)
            return
        path, date = next(iter(repeated.items()))
        others = _without(batch, repeated)
        which = f" (and {len(repeated) - 1:,} more) are" if len(repeated) > 1 else " is"
        problem = f"{plain(path.name)} is in the study already"
        ask(
            self._window,
            "Imported already",
            f"{plain(path.name)}{which} in the study already.",
            f"It was imported on {date}. If it is imported again, its annotations count twice.",
            "Import again",
            "Skip",
            partial(self._read, batch),
            partial(self._read, others) if others.paths else partial(self._on_unanswered, problem, batch),
        )

    def _ask_undo(self) -> None:
        contents = self._document.contents
        if contents is None or contents.last_import is None:
            return
        text = contents.last_import.in_words()
        ask(
            self._window,
            "Undo import",
            f"Undo the {text}?",
            "What it added is removed from the study. Files on disk stay. To redo it, import them again.",
            "Undo import",
            "Cancel",
            self._undo,
        )

    def _undo(self) -> None:
        from raterscope.app.study.import_undo import undo_import

        contents = self._document.contents
        if contents is not None:
            job = self._document.ask("Undoing the import", undo_import, quiet=False)
            job.finished.connect(partial(self._on_undone, contents.path))

    def _on_undone(self, study: Path, sentence: str) -> None:
        contents = self._document.contents
        if contents is not None and contents.path == study:
            self._created = study, sentence
            self._document.leave()  # nothing on screen may refer to what was removed
            self._document.open(study)

    def _study(self) -> Path | None:
        contents = self._document.contents
        return None if contents is None or self._document.opening else contents.path

    def _on_replaced(self) -> None:
        contents = self._document.contents
        if contents is not None:
            created, self._created = self._created, None
            if created is not None and contents.path == created[0]:
                self.message.emit(created[1])
        waiting, self._waiting = self._waiting, []
        for batch, understood in waiting:
            self._confirm(batch, understood)

    def _read(self, batch: Batch) -> None:
        from raterscope.app.study.kinds import question_kinds
        from raterscope.app.window.import_reading import images_at_hand, read_tasks

        contents = self._document.contents
        if contents is None or not any(contents.of(kind) for kind in question_kinds()):
            self._read_beside(images_at_hand(contents), batch)
        else:  # images may show tasks or items that only the study knows
            job = self._document.ask("Looking for tasks", read_tasks)
            job.finished.connect(partial(self._on_tasks, images_at_hand(contents), batch))

    def _on_tasks(self, at_hand: StudyImages, batch: Batch, tasks: tuple[str, ...]) -> None:
        self._read_beside(replace(at_hand, tasks=tasks), batch)

    def _read_beside(self, at_hand: StudyImages, batch: Batch) -> None:
        from raterscope.app.window.import_reading import read_or_ask

        work = partial(read_or_ask, batch, at_hand)
        job = self._jobs.start(f"Reading {_of(batch.paths)}", work, costly=True)
        job.finished.connect(partial(self._on_read, batch))
        job.failed.connect(partial(self._on_failed, batch))
        job.ended.connect(partial(self._on_ended, job))

    def _on_failed(self, batch: Batch, reason: str) -> None:
        batch.sources.close()
        self.refused.emit(reason)

    def _on_read(self, batch: Batch, answer: PreparedImport | Question) -> None:
        from raterscope.app.ambiguous_files import UnknownAnnotators
        from raterscope.app.formats import UnknownColumns
        from raterscope.app.formats.volumes.resampling import OtherGrid

        if isinstance(answer, UnknownColumns):
            self._ask_columns(batch, answer)
        elif isinstance(answer, UnknownAnnotators):
            self._ask_annotators(batch, answer)
        elif isinstance(answer, OtherGrid):
            self._ask_resampling(batch, answer)
        elif batch.study is not None and batch.study != self._study():
            self._on_unanswered(f"{batch.study.name} was closed", batch)
        elif self._document.opening:
            self._waiting.append((batch, answer))
        else:
            self._confirm(batch, answer)

    def _confirm(self, batch: Batch, understood: PreparedImport) -> None:
        """Show the preview, and ask whether to import the files."""
        from raterscope.app.window.import_reading import offer_import
        from raterscope.widgets.dialogs.import_preview import ImportDialog

        contents = self._document.contents
        study, target = (understood.study, "") if contents is None else (None, contents.path.name)
        offer = offer_import(understood.readings, understood.preview, study, target)
        dialog = ImportDialog(offer, self._window)
        dialog.accepted.connect(partial(self._on_confirmed, batch, understood, dialog))
        dialog.rejected.connect(partial(self._on_unanswered, "", batch))
        dialog.open()

    def _on_confirmed(self, batch: Batch, understood: PreparedImport, dialog: ImportDialog) -> None:
        from raterscope.app.import_preview import NAME_KINDS, NameChanges
        from raterscope.app.window.import_reading import (
            create_study,
            masks_and_images,
            store_readings,
            structure_naming,
        )

        understood = replace(understood, study=dialog.study or understood.study)
        if dialog.needs_reading:
            files = [layout.path for layout in understood.preview.layouts]
            mappings = {files[at]: mapping for at, mapping in dialog.mappings.items()}
            naming = structure_naming(dialog.raters.isChecked()) if dialog.offers_raters else None
            reading = replace(batch.reading, structure_naming=naming)
            listed = [path for path, _ in masks_and_images(understood.readings)]
            declared = {listed[at]: is_mask for at, is_mask in dialog.declared.items()}
            batch = replace(batch, are_masks={**batch.are_masks, **declared}, reading=reading)
            self._read(replace(batch, mappings={**batch.mappings, **mappings}))
            return
        changes = NameChanges(*map(dialog.new_names, NAME_KINDS))
        title = f"Importing {_of(batch.paths)}"
        readings = replace(understood.readings, programs=frozenset(dialog.programs))
        work = partial(
            store_readings, readings, changes, batch.may_resample, dialog.extent, dialog.class_order
        )
        contents = self._document.contents
        if contents is None:
            creating = partial(create_study, understood.study, work)
            job = self._jobs.start(title, creating, costly=True)
            job.finished.connect(partial(self._on_created, batch, understood.study))
            job.failed.connect(partial(self._on_not_created, batch, understood))
        else:
            batch.sources.close()
            text = f"the import of {_of(batch.paths)}"
            job = self._document.keep(
                Unsaved(contents.path, title, text, work, self._on_stored), quiet=False, costly=True
            )
        job.ended.connect(partial(self._on_ended, job))

    def _on_ended(self, job: Job) -> None:
        if job.state == "cancelled":
            self.message.emit("The import was cancelled. Nothing was imported.")

    def _on_created(self, batch: Batch, study: Path, sentences: Sequence[str]) -> None:
        batch.sources.close()
        self._created = study.absolute(), " ".join(sentences)
        self._document.open(study)

    def _on_not_created(self, batch: Batch, understood: PreparedImport, reason: str) -> None:
        """Show the dialog again, for another file or other names."""
        self.refused.emit(reason)
        QTimer.singleShot(0, self, partial(self._confirm, batch, understood))

    def _on_stored(self, sentences: Sequence[str]) -> None:
        self.message.emit(" ".join(sentences))

    def _ask_columns(self, batch: Batch, unknown: UnknownColumns) -> None:
        from raterscope.app.window.import_reading import table_kinds
        from raterscope.widgets.dialogs.import_dialogs import ColumnMappingDialog

        file = unknown.file
        assert file is not None
        kinds, chosen = table_kinds(unknown)
        dialog = ColumnMappingDialog(
            unknown.header, unknown.rows, kinds, chosen, file.name, unknown.problem, self._window,
            skippable=batch.paths != (file,),
        )  # fmt: skip
        dialog.skipped.connect(partial(self._read, _without(batch, {file})))
        dialog.accepted.connect(partial(self._on_mapped, batch, file, dialog))
        dialog.rejected.connect(
            partial(self._on_unanswered, f"the columns of {file.name} were not assigned", batch)
        )
        dialog.open()

    def _on_mapped(self, batch: Batch, file: Path, dialog: ColumnMappingDialog) -> None:
        mapping = dict.fromkeys(dialog.header, "ignore") | dialog.mapping
        self._read(replace(batch, mappings={**batch.mappings, file: mapping}))

    def _ask_annotators(self, batch: Batch, unknown: UnknownAnnotators) -> None:
        from raterscope.app.window.import_reading import annotator_by_pattern
        from raterscope.widgets.dialogs.import_dialogs import AnnotatorNamesDialog

        names = [plain(file.name, 200) for file in unknown.files]
        guess = [unknown.guess[file] for file in unknown.files]
        left_here = [file in unknown.detections for file in unknown.files]
        dialog = AnnotatorNamesDialog(
            names,
            guess,
            partial(annotator_by_pattern, unknown.files),
            detections=left_here,
            parent=self._window,
        )
        dialog.accepted.connect(partial(self._on_named, batch, unknown, dialog))
        problem = f"no annotator was named for {plain(unknown.files[0].name)}"
        dialog.rejected.connect(partial(self._on_unanswered, problem, batch))
        dialog.open()

    def _on_named(self, batch: Batch, unknown: UnknownAnnotators, dialog: AnnotatorNamesDialog) -> None:
        from raterscope.app.ambiguous_files import TRUTH_WORD

        pairs = zip(unknown.files, dialog.names, strict=True)
        names = {file: TRUTH_WORD if name is None else name for file, name in pairs}
        by_hand = {**batch.reading.by_hand, **names}
        reading = replace(batch.reading, naming=dialog.pattern or batch.reading.naming, by_hand=by_hand)
        self._read(replace(batch, reading=reading))

    def _ask_resampling(self, batch: Batch, other: OtherGrid) -> None:
        if not other.resamplable:
            batch.sources.close()
            self.refused.emit(str(other))
            return
        ask(
            self._window,
            "Masks on another grid",
            str(other),
            "Masks can be resampled to the grid of their image. Edges may shift slightly.",
            "Resample",
            "Cancel",
            partial(self._read, replace(batch, may_resample=True)),
            partial(self._on_unanswered, "the masks were drawn on another grid", batch),
        )

    def _on_unanswered(self, problem: str, batch: Batch | None = None) -> None:
        if batch is not None:
            batch.sources.close()
        self.message.emit(f"Nothing was imported: {problem}." if problem else "Nothing was imported.")


def _without(batch: Batch, files: Collection[Path]) -> Batch:
    """Leave files out, also those within a folder of the batch."""
    paths = tuple(path for path in batch.paths if path not in files)
    return replace(batch, paths=paths, excluded=batch.excluded.union(files))


def _of(paths: Sequence[Path]) -> str:
    return plain(paths[0].name) if len(paths) == 1 else f"{len(paths):,} files"
