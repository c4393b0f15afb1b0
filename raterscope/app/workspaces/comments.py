"""Comments on what is selected or on the item, and new names of structures and classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from raterscope.algorithms.progress import Watch
from raterscope.app.review import NAMED, CommentSubject, Decision, NameSubject, find_comment
from raterscope.app.study import Study
from raterscope.app.study.renaming import make_renaming, present_names
from raterscope.app.workspaces.core import WorkspaceCore, WorkspacePart
from raterscope.widgets.panels.activity_panels import CommentField


class Comments(QObject):
    """Comment on the selected item, shown below the evidence; a changed one is stored as a decision.

    `panel`: the panel of evidence. `subject`: returns the selected subject; only called while an item is
    shown.
    """

    KEY = "Ctrl+M"

    def __init__(
        self, core: WorkspaceCore[Any, Any], panel: QWidget, subject: Callable[[], CommentSubject]
    ) -> None:
        super().__init__(core)
        self._core, self._subject = core, subject
        self.field = CommentField()
        layout = panel.layout()
        assert layout is not None
        layout.addWidget(self.field)
        self._edited: tuple[int, CommentSubject] | None = None
        self.field.stored.connect(self._store)
        self.field.left.connect(core.screen.setFocus)
        for signal in (core.document.decided, core.document.changed, core.document.replaced):
            signal.connect(self.refresh)
        core.session.scene_changed.connect(self.refresh)
        core.session.cleared.connect(self.refresh)

    def begin(self) -> None:
        """Edit the comment on what is selected."""
        if self._core.item is None:
            self._core.screen.message.emit("Select an item to comment on first.")
            return
        self.refresh()
        subject = self._subject()
        self.field.setPlaceholderText(f"Comment on {subject.noun()} (Return saves, Esc cancels)")
        self.field.begin()

    def refresh(self) -> None:
        """Show the comment on what is selected."""
        if self.field.hasFocus():
            return
        item, contents = self._core.item, self._core.document.contents
        if item is None or contents is None:
            self._edited = None
            self.field.set_comment("")
            return
        self._edited = item, self._subject()
        comments = contents.review.comments(self._core.kind, item)
        self.field.set_comment(find_comment(comments, self._edited[1]))

    def _store(self, text: str) -> None:
        if self._edited is None or self._core.document.contents is None:
            return
        item, subject = self._edited
        run = self._core.session.scene.run if self._core.item == item else None
        self._core.document.record(
            Decision(
                verb="comment" if text else "uncomment", item=item, subject=subject, reason=text,
                run=None if run is None else run.id,
            )
        )  # fmt: skip


class Renaming(WorkspacePart[Any, Any]):
    """Dialog that asks for a new name, and records it.

    `selected`: returns the selected name; empty for none.
    """

    KEY = "Ctrl+R"
    renamed = Signal(str)  # the study has other names: the name that is to be shown

    def __init__(self, core: WorkspaceCore[Any, Any], selected: Callable[[], str]) -> None:
        super().__init__(core)
        self._kind, self._selected = core.kind, selected
        core.document.decided.connect(self._on_decided)

    def start(self) -> None:
        """Ask for the new name of a structure or class."""
        job = self._document.ask("Reading names", partial(_read_names, self._kind))
        job.finished.connect(self._open)

    def _open(self, names: Sequence[str]) -> None:
        from raterscope.widgets.dialogs.reader_study_dialog import NameDialog

        noun = NAMED[self._kind]
        if not names:
            self._screen.message.emit(f"This study has no {noun} to rename.")
            return
        dialog = NameDialog(noun, names, self._selected(), self._screen)
        dialog.accepted.connect(lambda: self._make(dialog.name, dialog.new))
        dialog.open()

    def _make(self, name: str, new: str) -> None:
        job = self._document.ask("Checking names", partial(_make, self._kind, name, new))
        job.finished.connect(self._record)

    def _record(self, answer: Decision | str) -> None:
        if isinstance(answer, str):
            self._screen.refused.emit(answer)
        else:
            self._document.record(answer)

    def _on_decided(self, decision: Decision) -> None:
        contents = self._document.contents
        target = None if contents is None else contents.target(decision)
        subject = None if target is None else target.subject
        if contents is not None and isinstance(subject, NameSubject) and subject.of == self._kind:
            in_effect = target is not None and contents.review.stands(target.id)
            self.renamed.emit(subject.new if in_effect else subject.name)


def _read_names(kind: str, study: Study, _watch: Watch) -> tuple[str, ...]:
    return present_names(study, kind)


def _make(kind: str, name: str, new: str, study: Study, _watch: Watch) -> Decision | str:
    try:
        return make_renaming(study, kind, name, new)
    except ValueError as refusal:
        return str(refusal)
