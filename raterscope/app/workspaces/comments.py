"""Comments and bookmarks on the selection or the item, and new names of structures and classes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from raterscope.algorithms.progress import Watch
from raterscope.app.assessment import Change
from raterscope.app.review import NAMED, CommentSubject, Decision, NameSubject, find_comment, is_bookmarked
from raterscope.app.study import Study
from raterscope.app.study.runs import make_renaming, present_names
from raterscope.app.workspaces.screen import WorkspaceCore, WorkspacePart
from raterscope.text import natural
from raterscope.widgets.painting import BOOKMARK
from raterscope.widgets.panels.activity_panels import CommentField
from raterscope.widgets.parts import plain_label

if TYPE_CHECKING:
    from raterscope.app.workspaces.layout import ActionEntry

SIDE = 12
"""Width of the margin beside the mark of a bookmark, in unscaled pixels."""

Position = tuple[int, int, Any]
"""Sort key of bookmarks: index of the item in the study, number and name of its part."""


class Comments(QObject):
    """Comment and bookmark of the selected item, shown below the evidence; a change is stored as a decision.

    `panel`: the evidence panel. `subject`: returns the selected subject; only called while an item is shown.
    """

    def __init__(
        self, core: WorkspaceCore[Any, Any], panel: QWidget, subject: Callable[[], CommentSubject]
    ) -> None:
        super().__init__(core)
        self._core, self._subject = core, subject
        self.field = CommentField()
        self.mark = plain_label(f"{BOOKMARK} Bookmarked")
        self.mark.hide()
        layout = panel.layout()
        assert layout is not None
        self.mark.setContentsMargins(max(0, SIDE - layout.contentsMargins().left()), 0, 0, 4)
        layout.addWidget(self.mark)
        layout.addWidget(self.field)
        self.actions: Sequence[ActionEntry] = (
            ("Comment on the selection", "Ctrl+M", self.begin),
            ("Bookmark the selection, or remove the bookmark", "Ctrl+D", self.toggle_bookmark),
            ("Next bookmark", "Alt+PgDown", partial(self.step, 1)),
            ("Previous bookmark", "Alt+PgUp", partial(self.step, -1)),
        )
        self._edited: tuple[int, CommentSubject] | None = None
        self.field.stored.connect(self._store)
        self.field.left.connect(core.screen.setFocus)
        for signal in (core.document.decided, core.document.changed, core.document.replaced):
            signal.connect(self.refresh)
        core.session.scene_changed.connect(self.refresh)
        core.session.cleared.connect(self.refresh)

    def begin(self) -> None:
        """Edit the comment on the selected subject."""
        if self._core.item is None:
            self._core.screen.message.emit("Select an item to comment on first.")
            return
        self.refresh()
        subject = self._subject()
        self.field.setPlaceholderText(f"Comment on {subject.noun()} (Return saves, Esc cancels)")
        self.field.begin()

    def refresh(self) -> None:
        """Show the comment on the selected subject, and whether it is bookmarked."""
        item = self._core.item
        subject = None if item is None else self._subject()
        bookmarked = subject is not None and is_bookmarked(self._core.bookmarks, subject, self._core.run)
        self.mark.setVisible(bookmarked)
        if self.field.hasFocus():
            return
        if item is None or subject is None:
            self._edited = None
            self.field.set_comment("")
            return
        self._edited = item, subject
        comments = self._core.document.review.comments(self._core.kind, item)
        self.field.set_comment(find_comment(comments, subject, self._core.run))

    def toggle_bookmark(self) -> None:
        """Bookmark the selected subject, or remove its bookmark."""
        if self._core.item is None:
            self._core.screen.message.emit("Select an item to bookmark first.")
            return
        subject = self._subject()
        verb = "unbookmark" if is_bookmarked(self._core.bookmarks, subject, self._core.run) else "bookmark"
        self._record(verb, self._core.item, subject)

    def step(self, by: int) -> None:
        """Go to the next or previous bookmark of the study, cyclically."""
        core, review = self._core, self._core.document.review
        entries = core.document.items(core.kind)
        places = {entry.id: place for place, entry in enumerate(entries)}
        bookmarks = [bookmark for item in places for bookmark in review.bookmarks(core.kind, item)]
        if not bookmarks:
            core.screen.message.emit("There are no bookmarks. Ctrl+D sets one.")
            return

        def position(item: int | None, subject: CommentSubject) -> Position:
            return places.get(item or 0, -1), subject.number or 0, natural(subject.name)

        marks = [(each.item, each.subject) for each in bookmarks if isinstance(each.subject, CommentSubject)]
        marks.sort(key=lambda mark: position(*mark))
        number = 0 if by > 0 else len(marks) - 1
        if core.item is not None:
            here = self._subject()
            current = [item == core.item and subject.matches(here) for item, subject in marks]
            before = bisect_left(marks, position(core.item, here), key=lambda mark: position(*mark))
            start = current.index(True) if any(current) else before - (by > 0)
            number = (start + by) % len(marks)
        item, subject = marks[number]
        point = None if subject.x is None or subject.y is None else (subject.x, subject.y)
        text = f"Bookmark {number + 1:,} of {len(marks):,}: {subject.noun()}"
        core.session.inspect(Change(item or 0, text, 0.0, point, subject.name, subject.box))
        name = "".join(f", {entry.name}" for entry in entries if entry.id == item)
        core.screen.message.emit(f"{text}{name if len(places) > 1 else ''}.")

    def _store(self, text: str) -> None:
        if self._edited is not None:
            self._record("comment" if text else "uncomment", *self._edited, text)

    def _record(self, verb: str, item: int, subject: CommentSubject, text: str = "") -> None:
        if self._core.document.contents is None:
            return
        run = self._core.run if self._core.item == item else None
        self._core.document.record(Decision(verb=verb, item=item, subject=subject, reason=text, run=run))


class Renaming(WorkspacePart[Any, Any]):
    """Dialog that asks for a new name, and records it.

    `selected`: returns the selected name; empty for none.
    """

    KEY = "Ctrl+R"
    renamed = Signal(str)  # names in the study have changed: the name to show

    def __init__(self, core: WorkspaceCore[Any, Any], selected: Callable[[], str]) -> None:
        super().__init__(core)
        self._kind, self._selected = core.kind, selected
        core.document.decided.connect(self._on_decided)

    def start(self) -> None:
        """Ask for the new name of a structure or class."""
        job = self._document.ask("Reading names", partial(_read_names, self._kind))
        job.finished.connect(self._open)

    def _open(self, names: Sequence[str]) -> None:
        from raterscope.widgets.dialogs.expert_dialogs import NameDialog

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
