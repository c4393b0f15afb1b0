"""Comments on the selected spot, region, task or annotator, or on the image or question."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from raterscope.app.review import CommentSubject, Decision, find_comment
from raterscope.app.workspaces.core import WorkspaceCore
from raterscope.widgets.panels.comment_field import CommentField


class Comments(QObject):
    """Shows the comment on what is selected below the evidence, and stores a changed one as a decision.

    `panel`: the panel of evidence. `subject`: returns what is selected; only called while an item is shown.
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
