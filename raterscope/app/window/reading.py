"""Reading mode of the window, and the dialog that sets up a reader study."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QFileDialog, QStackedWidget, QWidget

from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.errors import InputError, TableProblems, counted
from raterscope.app.jobs import Jobs
from raterscope.app.study.records import InUseError
from raterscope.app.window.importing import STUDIES
from raterscope.app.window.unsaved_results import LeaveGuard

if TYPE_CHECKING:
    from raterscope.app.reader_studies.collecting import Collected
    from raterscope.app.workspaces.reading.screen import ReadingScreen
    from raterscope.widgets.dialogs.reader_study_dialog import ReaderStudyDialog

_TRIES, _PAUSE = 20, 0.1
"""Attempts to open a study that the window closes, and seconds between them."""


class ReadingMode(QObject):
    """Shows one reading file in the window, in place of a study.

    `pages`: pages of the window. `around`: bars that are hidden while a reader reads.
    """

    message = Signal(str)
    refused = Signal(str)
    collected = Signal(object)  # a collected study that may be opened

    def __init__(
        self,
        document: Document,
        jobs: Jobs,
        guard: LeaveGuard,
        pages: QStackedWidget,
        around: tuple[QWidget, ...],
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._document, self._jobs, self._guard = document, jobs, guard
        self._pages, self._around, self._window = pages, around, window
        self.screen: ReadingScreen | None = None
        document.replaced.connect(self._on_replaced)

    def open(self, path: Path) -> None:
        """Open a reading file instead of the study."""
        self._guard.leave_study(partial(self._open, path))

    def _open(self, path: Path) -> None:
        from raterscope.app.window.guide import PROPERTY
        from raterscope.app.workspaces.reading.screen import ReadingScreen

        self.close()
        self._document.leave()
        self.screen = screen = ReadingScreen(path, self._jobs)
        screen.setProperty(PROPERTY, "window/reader_studies")
        screen.close_requested.connect(self.close)
        screen.not_opened.connect(self._on_not_opened)
        self._pages.addWidget(screen)
        self._pages.setCurrentWidget(screen)
        for bar in self._around:
            bar.hide()
        self._window.setWindowTitle(f"{path.name} - Raterscope")

    def close(self) -> None:
        """Close the reading file, after everything is written."""
        screen, self.screen = self.screen, None
        if screen is None:
            return
        screen.close_file()
        self._pages.removeWidget(screen)
        screen.deleteLater()
        for bar in self._around:
            bar.show()
        self._window.setWindowTitle("Raterscope")
        if self._document.contents is None:
            self._pages.setCurrentIndex(0)

    def _on_replaced(self) -> None:
        if self._document.contents is not None:
            self.close()

    def _on_not_opened(self, sentence: str) -> None:
        self.close()
        self.refused.emit(sentence)

    # Set-up

    def ask_new(self, folder: str) -> None:
        """Ask for the protocol of a reader study, and write its files."""
        from raterscope.widgets.dialogs.reader_study_dialog import ReaderStudyDialog

        dialog = ReaderStudyDialog(f"{folder or Path.home()}/reader-study", self._window)
        dialog.submitted.connect(partial(self._set_up, dialog))
        dialog.open()

    def _set_up(self, dialog: ReaderStudyDialog, values: Mapping[str, Any], folder: str) -> None:
        work = partial(_set_up, values, Path(folder).expanduser())
        job = self._jobs.start("Setting up the reader study", work)
        job.finished.connect(partial(self._on_set_up, dialog))
        job.failed.connect(lambda sentence: dialog.show_problems([sentence]))

    def _on_set_up(self, dialog: ReaderStudyDialog, answer: str | list[str]) -> None:
        if isinstance(answer, list):
            dialog.show_problems(answer)
            return
        dialog.accept()
        self.message.emit(answer)

    # Collection

    def ask_collection(self, folder: str) -> None:
        """Ask for the folder of a reader study and for the collected study, and collect what came back."""
        source = QFileDialog.getExistingDirectory(self._window, "Folder of the reader study", folder)
        if not source:
            return
        target, _ = QFileDialog.getSaveFileName(
            self._window, "Collected study", f"{source}.rscope", STUDIES,
            options=QFileDialog.Option.DontConfirmOverwrite,  # a collected study takes new reads
        )  # fmt: skip
        if target:
            path = Path(target)
            self.collect(Path(source), path if path.suffix else path.with_suffix(".rscope"))

    def collect(self, folder: Path, target: Path) -> None:
        """Collect the reading files of a folder, and open the study once every reader has finished."""
        self._guard.leave_study(partial(self._collect, folder, target))

    def _collect(self, folder: Path, target: Path) -> None:
        contents = self._document.contents
        if contents is not None and contents.path == target.absolute():
            self._document.leave()
        job = self._jobs.start("Collecting readers' files", partial(_collect, folder, target))
        job.finished.connect(partial(self._on_collected, target))
        job.failed.connect(self.refused)

    def _on_collected(self, target: Path, collected: Collected) -> None:
        added = sum(cases for _, _, cases in collected.added)
        words = f"{counted(added, 'case')} added to {target.name}."
        if collected.state.is_blinded:
            waiting = "; ".join(progress.in_words() for progress in collected.state.unfinished)
            words += f" It stays closed until every reader has finished ({waiting})."
        else:
            self.collected.emit(target)
        self.message.emit(words)
        if collected.problems:
            self.refused.emit("\n".join(collected.problems))


def _collect(folder: Path, target: Path, watch: Watch) -> Collected:
    from raterscope.app.reader_studies.collecting import collect

    for _ in range(_TRIES):
        try:
            return collect([folder], target, watch)
        except InUseError:  # the window is still closing it
            watch(0.0, "waiting for the study")
            time.sleep(_PAUSE)
    return collect([folder], target, watch)


def _set_up(values: Mapping[str, Any], folder: Path, watch: Watch) -> str | list[str]:
    """Set up a reader study; returns a message, or every problem."""
    from raterscope.app.reader_studies.protocol import check_protocol
    from raterscope.app.reader_studies.set_up import set_up

    file = Path("protocol")
    try:
        made = set_up(check_protocol(values, Path.home(), file), file, folder, watch)
    except TableProblems as error:
        return list(error.problems)
    except InputError as error:
        return [str(error)]
    return (
        f"Files of {len(made.files)} readers saved to {made.files[0].parent}. Keep {made.coordinator.name}, "
        "which has the key of the pseudonyms."
    )
