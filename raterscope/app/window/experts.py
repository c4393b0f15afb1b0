"""Several experts: copies for a second reader, merging; reading mode, and the set-up of reader studies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.window.bars import STUDIES
from raterscope.app.window.files import FileActions
from raterscope.text import counted

if TYPE_CHECKING:
    from raterscope.app.study.merging import MergedStudy
    from raterscope.widgets.dialogs.expert_dialogs import SecondReaderDialog
import time
from typing import TYPE_CHECKING, Any

from PySide6.QtWidgets import QStackedWidget

from raterscope.app.errors import InputError, InUseError, TableProblems
from raterscope.app.jobs import Jobs
from raterscope.app.window.unsaved_results import LeaveGuard

if TYPE_CHECKING:
    from raterscope.app.reader_studies.collecting import Collected
    from raterscope.app.study import Study
    from raterscope.app.workspaces.reading.screen import ReadingScreen
    from raterscope.widgets.dialogs.reader_study_dialog import ReaderStudyDialog

_MOST = 1000
"""Maximum number of conflicts in the preview."""


@dataclass(frozen=True)
class Preview:
    """Preview of a merge of the open study with another."""

    path: Path
    studies: tuple[str, str]  # file names, in the order of the experts of `merged`
    merged: MergedStudy
    missing: str  # why a blind second read is not complete; empty if it is, and for other copies

    def lines(self) -> list[str]:
        """Describe decisions, agreement and conflicts, one line each."""
        lines = [
            f"{name}: {_of_experts(experts)}"
            for name, experts in zip(self.studies, self.merged.experts, strict=True)
        ]
        if self.missing:
            return lines
        lines += [f"{kind.capitalize()}: {agreement.in_words()}."
                  for kind, agreement in self.merged.agreements().items()]  # fmt: skip
        count = len(self.merged.conflicts)
        listed = f" The first {_MOST:,} are listed." if count > _MOST else ""
        differ = f"Decided differently: {count:,}. They are open again and head the queue.{listed}"
        lines.append(differ if count else "Nothing was decided differently.")
        return lines


def _of_experts(experts: Mapping[str, int]) -> str:
    parts = [
        f"{counted(number, 'decision')} by {name or 'an unnamed expert'}" for name, number in experts.items()
    ]
    return ", ".join(parts) or "no decisions that the other lacks"


class ExpertStudies(QObject):
    """Copies for second readers, and the merging of another copy into the open study."""

    message = Signal(str)  # the outcome

    def __init__(self, document: Document, files: FileActions, window: QWidget) -> None:
        super().__init__(window)
        self._document, self._files, self._window = document, files, window

    def ask_copy(self) -> None:
        """Ask whether the copy is blind, and for its file."""
        from raterscope.widgets.dialogs.expert_dialogs import SecondReaderDialog

        if self._document.contents is None:
            return
        dialog = SecondReaderDialog(self._window)
        dialog.accepted.connect(partial(self._choose_copy, dialog))
        dialog.open()

    def _choose_copy(self, dialog: SecondReaderDialog) -> None:
        path = self._choose_file("Copy for a second reader", "second-reader")
        if path is not None:
            self.copy(path, blind=dialog.blind)

    def copy(self, path: Path, *, blind: bool) -> None:
        """Write a copy for a second reader."""
        work = partial(_copy, path, blind)
        job = self._document.ask(f"Copying to {path.name}", work, quiet=False, costly=True)
        job.finished.connect(self._on_copied)

    def _on_copied(self, text: str) -> None:
        self.message.emit(text)

    def ask_merge(self) -> None:
        """Ask for the other study, and show a preview of merging."""
        contents = self._document.contents
        if contents is None:
            return
        name, _ = QFileDialog.getOpenFileName(
            self._window, "Merge with another study", self._files.folder(), STUDIES
        )
        if name:
            self.preview(Path(name))

    def preview(self, path: Path) -> None:
        """Compare the open study with another, and show a preview of merging."""
        job = self._document.ask(f"Comparing with {path.name}", partial(_preview, path), quiet=False)
        job.finished.connect(self._on_preview)

    def _on_preview(self, preview: Preview) -> None:
        from raterscope.widgets.dialogs.expert_dialogs import DifferingDecision, MergePreviewDialog

        contents = self._document.contents
        if contents is None:
            return
        conflicts = () if preview.missing else preview.merged.conflicts[:_MOST]
        rows = [
            DifferingDecision(conflict.kind, conflict.item, conflict.subject, conflict.first, conflict.second)
            for conflict in conflicts
        ]
        title = f"Merge {contents.path.name} with {preview.path.name}"
        dialog = MergePreviewDialog(title, preview.lines(), rows, preview.missing, self._window)
        dialog.accepted.connect(partial(self._choose_target, preview.path))
        dialog.open()

    def _choose_target(self, other: Path) -> None:
        path = self._choose_file("Save the merged study", "merged")
        if path is not None:
            self.merge(other, path)

    def merge(self, other: Path, target: Path) -> None:
        """Merge the open study with another into a new file, and open that."""
        work = partial(_merge, other, target)
        job = self._document.ask(f"Merging with {other.name}", work, quiet=False, costly=True)
        job.finished.connect(partial(self._on_merged, target))

    def _on_merged(self, target: Path, text: str) -> None:
        self._files.open_study(target)
        self.message.emit(text)

    def _choose_file(self, title: str, ending: str) -> Path | None:
        contents = self._document.contents
        if contents is None:
            return None
        proposed = contents.path.with_name(f"{contents.path.stem}-{ending}.rscope")
        name, _ = QFileDialog.getSaveFileName(self._window, title, str(proposed), STUDIES)
        path = Path(name)
        return None if not name else path if path.suffix else path.with_suffix(".rscope")


def _copy(path: Path, blind: bool, study: Study, watch: Watch) -> str:
    from raterscope.app.study.new_study import copy_for_reader

    copied = copy_for_reader(study, path, blind=blind, watch=watch)
    return f"Saved {path.name}, {copied.in_words()}."


def _preview(path: Path, study: Study, watch: Watch) -> Preview:
    from raterscope.app.study import Study
    from raterscope.app.study.merging import compare_studies, in_order, missing_in_words

    watch(0.0, "comparing decisions")
    with Study.open(path, to_read=True) as other:
        first, second = in_order(study, other)
        merged = compare_studies(first, second)
        missing = missing_in_words(merged) if second.settings.second_read is not None else ""
    if missing:
        missing += " Merging now shows each expert the decisions of the other."
    return Preview(path, (first.path.name, second.path.name), merged, missing)


def _merge(path: Path, target: Path, study: Study, watch: Watch) -> str:
    from raterscope.app.study import Study
    from raterscope.app.study.merging import merge_open

    with Study.open(path, to_read=True) as other:
        merged = merge_open(study, other, target, watch)
    differ = (
        f"{len(merged.conflicts):,} decided differently head the queue"
        if merged.conflicts
        else "nothing was decided differently"
    )
    return f"Merged {counted(merged.added, 'decision')} of {path.name} into {target.name}: {differ}."


_TRIES, _PAUSE = 20, 0.1
"""Number of attempts to open a study that the window is closing, and seconds between them."""


class ReadingMode(QObject):
    """Display of one reading file in the window, instead of a study.

    `pages`: pages of the window. `around`: bars to hide during reading.
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
        screen.reader.not_opened.connect(self._on_not_opened)
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
        """Ask for the folder of a reader study and for the collected study, and collect the reading files."""
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
        text = f"{counted(added, 'case')} added to {target.name}."
        if collected.state.is_blinded:
            waiting = "; ".join(progress.in_words() for progress in collected.state.unfinished)
            text += f" It stays closed until every reader has finished ({waiting})."
        else:
            self.collected.emit(target)
        self.message.emit(text)
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
    """Set up a reader study; return a message, or every problem."""
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
