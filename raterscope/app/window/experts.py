"""Several experts: copies for a second reader, and merging with another study, in the window."""

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
from raterscope.app.errors import counted
from raterscope.app.study import Study
from raterscope.app.window.files import FileActions
from raterscope.app.window.importing import STUDIES

if TYPE_CHECKING:
    from raterscope.app.study.merging import MergedStudy
    from raterscope.widgets.dialogs.reader_study_dialog import SecondReaderDialog

_MOST = 1000
"""Conflicts that the preview lists."""


@dataclass(frozen=True)
class Preview:
    """What a merge of the open study with another would do."""

    path: Path
    studies: tuple[str, str]  # names of the files, as the experts of `merged` are listed
    merged: MergedStudy
    missing: str  # why a blind second read is not complete; empty if it is, and for other copies

    def lines(self) -> list[str]:
        """Describe decisions, agreement and conflicts, a line each."""
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
    """Makes copies for second readers, and merges the open study with another copy of it."""

    message = Signal(str)  # the outcome

    def __init__(self, document: Document, files: FileActions, window: QWidget) -> None:
        super().__init__(window)
        self._document, self._files, self._window = document, files, window

    def ask_copy(self) -> None:
        """Ask whether the copy is blind, and for its file."""
        from raterscope.widgets.dialogs.reader_study_dialog import SecondReaderDialog

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

    def _on_copied(self, words: str) -> None:
        self.message.emit(words)

    def ask_merge(self) -> None:
        """Ask for the other study, and show what merging would do."""
        contents = self._document.contents
        if contents is None:
            return
        name, _ = QFileDialog.getOpenFileName(
            self._window, "Merge with another study", self._files.folder(), STUDIES
        )
        if name:
            self.preview(Path(name))

    def preview(self, path: Path) -> None:
        """Compare the open study with another, and show what merging would do."""
        job = self._document.ask(f"Comparing with {path.name}", partial(_preview, path), quiet=False)
        job.finished.connect(self._on_preview)

    def _on_preview(self, preview: Preview) -> None:
        from raterscope.widgets.dialogs.reader_study_dialog import DifferingDecision, MergePreviewDialog

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

    def _on_merged(self, target: Path, words: str) -> None:
        self._files.open_study(target)
        self.message.emit(words)

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
    from raterscope.app.study.merging import compare_studies, in_order, missing_in_words

    watch(0.0, "comparing decisions")
    with Study.open(path, to_read=True) as other:
        first, second = in_order(study, other)
        merged = compare_studies(first, second)
        missing = missing_in_words(merged) if second.settings.second_read() is not None else ""
    if missing:
        missing += " Merging now shows each expert the decisions of the other."
    return Preview(path, (first.path.name, second.path.name), merged, missing)


def _merge(path: Path, target: Path, study: Study, watch: Watch) -> str:
    from raterscope.app.study.merging import merge_open

    with Study.open(path, to_read=True) as other:
        merged = merge_open(study, other, target, watch)
    differ = (
        f"{len(merged.conflicts):,} decided differently head the queue"
        if merged.conflicts
        else "nothing was decided differently"
    )
    return f"Merged {counted(merged.added, 'decision')} of {path.name} into {target.name}: {differ}."
