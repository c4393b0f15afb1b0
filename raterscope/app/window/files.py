"""Start page, and file commands: open, create, import, report, find images, simulate, reproduce; cohorts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QStandardPaths, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog, QWidget

from raterscope.algorithms.progress import Watch, part
from raterscope.app.document import Document
from raterscope.app.exports import REPORTS, Provenance, provenance_of_report
from raterscope.app.jobs import Job, Jobs
from raterscope.app.kinds.registry import KINDS
from raterscope.app.program_files import READING_SUFFIX
from raterscope.app.session import LatestTask
from raterscope.app.simulation.setups import SETUPS
from raterscope.app.window import preferences
from raterscope.app.window.bars import ActionBar, ask
from raterscope.app.window.importing import STUDIES, Importer
from raterscope.app.window.unsaved_results import LeaveGuard
from raterscope.text import counted
from raterscope.widgets.start_page import RecentStudy, SampleOffer, StartPage

if TYPE_CHECKING:
    from raterscope.algorithms.settings import Settings
    from raterscope.app.contents import Contents
    from raterscope.app.review import Decision
    from raterscope.app.simulation.setups import Setup
    from raterscope.app.study import Study
    from raterscope.app.study.records import CohortCase
    from raterscope.widgets.dialogs.output_dialogs import PapersDialog, SimulationDialog


class RecentStudies(QObject):
    """List of the recent studies, except those that are known to be missing.

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
        """The folder of the latest study that exists; None if none is known to."""
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
    """Commands of the menu on files and folders, which they ask for."""

    message = Signal(str)  # the outcome; empty when the message before was about another study
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
        """Open files that were dropped or named on the command line: a study, images, tables."""
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
        self.message.emit("")  # the message was about the study before
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
        if not provenance.outdated:
            choose()
            return
        question = f"{title}? The result is outdated."
        ask(
            self._window,
            "Report",
            question,
            "\n".join(provenance.outdated),
            "Report anyway",
            "Cancel",
            choose,
        )

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

    def _on_reported(self, words: str) -> None:
        self.message.emit(words)

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
        """Ask for the groups of the images, such as patients, by which the queue is filtered."""
        from raterscope.app.study import groups
        from raterscope.widgets.dialogs.output_dialogs import ALONE, TABLE, TABLES_OF_GROUPS, GroupsDialog

        dialog = GroupsDialog(self._window)

        def go_on() -> None:
            source = groups.FOLDERS
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

    def _on_searched(self, words: str) -> None:
        self.searched.emit()
        self.message.emit(words)

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


class Reproduction(QObject):
    """Simulation of data and reproduction of papers, chosen in a dialog, in a thread."""

    begun = Signal(object)  # a simulation, which every workspace shows with Cancel
    # message, refused: the outcome, and errors
    message = Signal(str)
    refused = Signal(str)

    def __init__(self, files: FileActions, jobs: Jobs, window: QWidget) -> None:
        super().__init__(window)
        self._files = files
        self._jobs = jobs
        self._window = window

    def ask_simulation(self) -> None:
        """Ask for a simulation's set-up, its parameters and a folder."""
        from raterscope.widgets.dialogs.output_dialogs import SetupOffer, SimulationDialog

        offers = [
            SetupOffer(setup.name, setup.title, setup.summary, setup.settings) for setup in SETUPS.values()
        ]
        dialog = SimulationDialog(offers, self._start_folder(), self._window)
        dialog.accepted.connect(partial(self._simulate, dialog))
        dialog.open()

    def _simulate(self, dialog: SimulationDialog) -> None:
        setup = SETUPS[dialog.name]
        folder = Path(dialog.folder).expanduser()
        work = partial(simulate_study, setup, dialog.settings, folder)
        job = self._jobs.start(f"Simulating {setup.title.lower()}", work, costly=True)
        job.finished.connect(self._on_simulated)
        job.failed.connect(self.refused)
        self.begun.emit(job)

    def _on_simulated(self, study: Path) -> None:
        self._files.open_study(study)
        self.message.emit(f"Simulated data saved to {study.parent}.")

    def ask_papers(self) -> None:
        """Ask how to reproduce the papers, and for the folder of the page."""
        from raterscope.widgets.dialogs.output_dialogs import PapersDialog

        dialog = PapersDialog(f"{self._start_folder()}/papers", self._window)
        dialog.accepted.connect(partial(self._measure, dialog))
        dialog.open()

    def _measure(self, dialog: PapersDialog) -> None:
        data = Path(dialog.data).expanduser() if dialog.data else None
        work = partial(_measured, Path(dialog.folder).expanduser(), data, dialog.full)
        job = self._jobs.start("Reproducing the papers", work, costly=True)
        job.finished.connect(self._on_measured)
        job.failed.connect(self.refused)
        self.message.emit("Reproducing the papers. The Jobs tab shows progress and can cancel it.")

    def _on_measured(self, page: Path) -> None:
        self.message.emit(f"Saved the page of the papers to {page}.")
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(page)))

    def _start_folder(self) -> str:
        return self._files.folder() or str(Path.home())


def simulate_study(setup: Setup, settings: Settings, folder: Path, watch: Watch) -> Path:
    """Simulate into a new folder, and import the data with their truth; return the study's path."""
    from raterscope.app.simulation.simulate import simulate, study_in

    drawn = simulate(setup, settings, folder, part(watch, 0.0, 0.8))
    return study_in(setup, drawn, part(watch, 0.8, 1.0))


def _measured(folder: Path, data: Path | None, full: bool, watch: Watch) -> Path:
    from raterscope.app.papers.page import make_page

    return make_page(folder, watch, data=data, full=full)


def _make_grouping(source: Path | None, study: Study, watch: Watch) -> tuple[Decision, str]:
    from raterscope.app.study import groups

    watch(0.0, "reading groups")
    decision, sentences = groups.make_grouping(study, source)
    return decision, " ".join(sentences)


class CohortBar(ActionBar):
    """Bar under the top bar that counts the cases without results, with buttons to list and dismiss them."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", ("List cases\u2026", "Dismiss"), parent)
        self.list_cases, self.dismiss = self.buttons
        self.dismiss.clicked.connect(self.hide)


class CohortCases(QObject):
    """List of the cases of the open study's cohort that have no results."""

    def __init__(self, document: Document, bar: CohortBar, window: QWidget) -> None:
        super().__init__(window)
        self._document, self._bar, self._window = document, bar, window
        bar.list_cases.clicked.connect(self.show_list)
        document.replaced.connect(self._on_replaced)

    @property
    def failed(self) -> list[CohortCase]:
        """Cases without results."""
        contents = self._document.contents
        return [case for case in contents.cohort if not case.is_done] if contents is not None else []

    def show_list(self) -> None:
        """Open the list of the cases without results."""
        from raterscope.widgets.dialogs.output_dialogs import FailedCase, FailedCasesDialog

        cases = [FailedCase(case.case, case.kind, case.status, case.reason) for case in self.failed]
        FailedCasesDialog(self._in_words(), cases, self._window).open()

    def _on_replaced(self) -> None:
        self._bar.setVisible(bool(self.failed))
        self._bar.words.setText(self._in_words())

    def _in_words(self) -> str:
        contents, failed = self._document.contents, len(self.failed)
        if contents is None or not failed:
            return ""
        return (
            f"{failed:,} of {counted(len(contents.cohort), 'case')} {'has' if failed == 1 else 'have'} no "
            "results. To add them, correct their files, then run `raterscope batch` and `raterscope gather` "
            "again."
        )


SAMPLES = (
    SampleOffer("clicks", "Smears and clicks", "12 smears, a crowd and the truth"),
    SampleOffer("masks", "CT and contours", "A volume and several raters"),
    SampleOffer("labels", "Labels of cells", "Cells and a crowd's classes"),
    SampleOffer("pairs", "Paired comparisons", "Items compared two by two"),
)
SIMULATED = ("texts", "grades", "judges")
"""Set-ups of the simulation that are samples too, in the menu only."""
FORMATS = (
    ("Images", "PNG, JPEG, TIFF, OME-TIFF, BMP, GIF, whole slides"),
    ("Volumes", "DICOM folders, NIfTI, NRRD, MetaImage, OME-Zarr"),
    ("Clicks", "CSV, XLSX, Parquet, JSON lines, Zooniverse, QuPath, COCO, CVAT, Label Studio, labelme, "
               "napari, ImageJ"),
    ("Masks", "label maps, DICOM SEG, RTSTRUCT, .seg.nrrd, LIDC, COCO, CVAT, GeoJSON"),
    ("Labels", "CSV, XLSX, Parquet, JSON lines, a column per annotator or question, Zooniverse, "
               "Label Studio, Prodigy, Argilla, doccano, Mechanical Turk, Toloka, Appen"),
    ("Pairs", "CSV or XLSX with annotator, left, right, choice; or model_a, model_b, winner"),
)  # fmt: skip
SHOWN = 5


class StartScreen(QObject):
    """Start page with its contents and the actions that are chosen on it."""

    begun = Signal(object)  # a sample is being made, which the window shows with Cancel
    refused = Signal(str)  # why a sample could not be made

    def __init__(self, files: FileActions, recent: RecentStudies, jobs: Jobs, parent: QObject) -> None:
        super().__init__(parent)
        self._files, self._recent, self._jobs = files, recent, jobs
        self._listed: list[RecentStudy] = []
        self._making: tuple[str, Job] | None = None
        self._task = LatestTask()
        self.page = StartPage(
            (
                ("Import files…", files.choose_files, "Images and annotations"),
                (
                    "Import folder or DICOM…",
                    files.choose_folder,
                    "All images, volumes, masks and tables of a folder",
                ),
                ("Open study…", files.choose_study, "A study file that exists"),
            ),
            SAMPLES,
            FORMATS,
        )
        self.page.recent_chosen.connect(self._files.open_study)
        self.page.sample_chosen.connect(self.open_sample)
        recent.changed.connect(self.refresh)

    def refresh(self) -> None:
        """List the recent studies again."""
        noted = preferences.work_left()
        studies = []
        for path in self._recent.offered[:SHOWN]:
            share, words, day = noted.get(str(path), (None, "", ""))
            detail = words or str(path.parent)
            studies.append(RecentStudy(path, path.name, detail, share, describe_day(day), str(path)))
        if studies != self._listed:
            self._listed = studies
            self.page.set_recent(studies)

    def open_sample(self, name: str) -> Job:
        """Make the sample of a kind or a set-up, unless it exists, and open it; the last one chosen."""
        if self._making is not None and self._making[0] == name:
            return self._making[1]
        work = partial(_make if name in KINDS else _simulate, name, samples_folder())
        job = self._jobs.start(f"Making the sample of {name}", work, costly=True)
        self._task.follow(job, self._on_made, failed=self.refused.emit, stopped=self._on_stopped)
        self._set_making((name, job))
        self.begun.emit(job)
        return job

    def cancel_sample(self) -> None:
        """Stop making a sample: a study was opened meanwhile."""
        self._task.cancel()
        self._set_making(None)

    def _on_made(self, study: Path) -> None:
        self._set_making(None)
        self._files.open_study(study)

    def _on_stopped(self) -> None:
        self._set_making(None)

    def _set_making(self, making: tuple[str, Job] | None) -> None:
        self._making = making
        self.page.show_making("" if making is None else making[0])


def samples_folder() -> Path:
    """Return the folder of the samples, in the user's documents."""
    documents = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
    return Path(documents or Path.home()) / "Raterscope samples"


def _make(kind: str, folder: Path, watch: Watch) -> Path:
    from raterscope.app.importing import import_files
    from raterscope.app.report import write_report
    from raterscope.app.sample_files import Tools

    load_sample = KINDS[kind].load_sample
    assert load_sample is not None
    results = folder / "results"
    results.mkdir(parents=True, exist_ok=True)
    made = load_sample().demonstrate(folder, results, Tools(import_files, write_report), watch)
    return made.study


def _simulate(name: str, folder: Path, watch: Watch) -> Path:
    setup = SETUPS[name]
    folders = (folder / (name if number == 1 else f"{name}-{number}") for number in itertools.count(1))
    # A folder without the study is of a simulation that was cancelled: its files stay.
    chosen = next(each for each in folders if (each / f"{name}.rscope").exists() or not each.exists())
    study = chosen / f"{name}.rscope"
    return study if study.exists() else simulate_study(setup, setup.settings(), chosen, watch)


def describe_day(text: str, today: date | None = None) -> str:
    """Describe a day, an ISO date: "today", "yesterday", "Monday", "12 Nov"; empty for any other text.

    Examples
    --------
    >>> [describe_day(day, date(2026, 11, 27)) for day in ("2026-11-26", "2026-11-23", "2026-11-12")]
    ['yesterday', 'Monday', '12 Nov']
    """
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return ""
    days = ((today or datetime.now().astimezone().date()) - day).days
    if days in (0, 1):
        return ("today", "yesterday")[days]
    return f"{day:%A}" if 0 < days < 7 else f"{day.day} {day:%b}" if 0 < days < 300 else f"{day:%b %Y}"
