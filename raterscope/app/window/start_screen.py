"""Start page with recent studies and samples; simulated data and reproduced papers from the window."""

from __future__ import annotations

import itertools
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QStandardPaths, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QWidget

from raterscope.algorithms.progress import Watch, part
from raterscope.app.jobs import Job, Jobs
from raterscope.app.kinds.registry import KINDS
from raterscope.app.session import LatestTask
from raterscope.app.simulation.setups import SETUPS
from raterscope.app.window import preferences
from raterscope.app.window.files import FileActions, RecentStudies
from raterscope.widgets.start_page import RecentStudy, SampleOffer, StartPage

if TYPE_CHECKING:
    from raterscope.algorithms.settings import Settings
    from raterscope.app.simulation.setups import Setup
    from raterscope.widgets.dialogs.output_dialogs import PapersDialog, SimulationDialog


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
    return study if study.exists() else _simulate_study(setup, setup.settings(), chosen, watch)


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
        work = partial(_simulate_study, setup, dialog.settings, folder)
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


def _measured(folder: Path, data: Path | None, full: bool, watch: Watch) -> Path:
    from raterscope.app.papers.page import make_page

    return make_page(folder, watch, data=data, full=full)


def _simulate_study(setup: Setup, settings: Settings, folder: Path, watch: Watch) -> Path:
    """Simulate into a new folder, and import the data with their truth; return the study's path."""
    from raterscope.app.simulation.simulate import simulate, study_in

    drawn = simulate(setup, settings, folder, part(watch, 0.0, 0.8))
    return study_in(setup, drawn, part(watch, 0.8, 1.0))
