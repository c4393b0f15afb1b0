"""Start page: recent studies, samples made on demand, and the formats."""

from __future__ import annotations

import itertools
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QStandardPaths, Signal

from raterscope.algorithms.progress import Watch
from raterscope.app.jobs import Job, Jobs
from raterscope.app.kinds.registry import KINDS
from raterscope.app.session import LatestTask
from raterscope.app.simulation.setups import SETUPS
from raterscope.app.window import preferences
from raterscope.app.window.files import FileActions, RecentStudies
from raterscope.app.window.simulations import simulate_study
from raterscope.widgets.start_page import RecentStudy, SampleOffer, StartPage

if TYPE_CHECKING:
    pass


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
