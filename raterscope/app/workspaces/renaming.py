"""Renames structures and classes of clicks in the window, and shows the study under the new names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from PySide6.QtCore import Signal

from raterscope.algorithms.progress import Watch
from raterscope.app.review import NAMED, Decision, NameSubject
from raterscope.app.study import Study
from raterscope.app.study.renaming import make_renaming, present_names
from raterscope.app.workspaces.core import WorkspaceCore, WorkspacePart


class Renaming(WorkspacePart[Any, Any]):
    """Asks for a new name, and records it.

    `selected`: returns the name of what is selected; empty for nothing.
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
        from raterscope.widgets.dialogs.merge_dialogs import NameDialog

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
