"""Simulation of data and reproduction of papers from the window."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QWidget

from raterscope.algorithms.progress import Watch, part
from raterscope.app.jobs import Jobs
from raterscope.app.simulation.setups import SETUPS
from raterscope.app.window.files import FileActions

if TYPE_CHECKING:
    from raterscope.algorithms.settings import Settings
    from raterscope.app.simulation.setups import Setup
    from raterscope.widgets.dialogs.output_dialogs import PapersDialog, SimulationDialog


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
