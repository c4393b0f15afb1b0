"""What the expert says of an image as a whole: flagged with a reason, and no longer."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject

from raterscope.app.document import Document
from raterscope.app.review import Decision, ImageSubject
from raterscope.app.study import ImageEntry
from raterscope.app.workspaces.screen import WorkspaceScreen
from raterscope.widgets.dialogs.reason import ReasonDialog

__all__ = ["Flagging"]

REASONS = ("out of focus", "badly stained", "dirt or scratches", "to be discussed")
HINT = "It stays in every count; the queue can be narrowed to what is flagged."


class Flagging(QObject):
    """Flags an image, or takes its flag away; both are decisions."""

    def __init__(self, document: Document, screen: WorkspaceScreen) -> None:
        super().__init__(screen)
        self._document = document
        self._screen = screen

    def toggle(self, image: ImageEntry | None) -> None:
        """Ask why an image is to be flagged; of one that is, take the flag away."""
        contents = self._document.contents
        if contents is None or image is None:
            return
        if contents.review.flag(image.id) is not None:
            self._record("unflag", image, "")
            return
        dialog = ReasonDialog(image.name, REASONS, self._screen, act="Flag", hint=HINT, what="an image")
        dialog.accepted.connect(partial(self._on_reason, image, dialog))
        dialog.open()

    def _on_reason(self, image: ImageEntry, dialog: ReasonDialog) -> None:
        self._record("flag", image, dialog.reason)

    def _record(self, verb: str, image: ImageEntry, reason: str) -> None:
        subject = ImageSubject(name=image.name)
        self._document.record(Decision(verb=verb, item=image.id, subject=subject, reason=reason))
