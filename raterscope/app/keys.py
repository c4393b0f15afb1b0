"""The sheet of keys that F1 shows."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QHBoxLayout, QVBoxLayout, QWidget

from raterscope.widgets.key_cap import KeyButton
from raterscope.widgets.parts import plain_label

__all__ = ["KEYS", "STUDY", "KeySheet"]

Column = tuple[str, tuple[tuple[str, str], ...]]

_UNDO = (("Ctrl+Z", "undo"), ("Ctrl+Shift+Z", "redo"))
_REGIONS = (("F6", "next region of the window"), ("F11", "full screen"))

KEYS: dict[str, tuple[Column, ...]] = {
    "clicks": (
        (
            "Review",
            (
                ("Tab", "next disputed spot"),
                ("Shift+Tab", "previous disputed spot"),
                ("A", "accept"),
                ("R", "reject"),
                ("S", "skip"),
                ("N", "add a spot that all missed"),
                ("M", "move the spot"),
                ("F", "flag the image, or take the flag away"),
                *_UNDO,
            ),
        ),
        (
            "Look",
            (
                ("PgDown", "next image"),
                ("PgUp", "previous image"),
                ("Arrows", "pan"),
                ("+", "zoom in"),
                ("-", "zoom out"),
                ("0", "whole image"),
                ("Space", "no marks while held"),
                ("1 ... 9", "one annotator alone"),
                *_REGIONS,
            ),
        ),
        (
            "In the annotator table",
            (
                ("Return", "alone, and all again"),
                ("Space", "hide, show"),
                ("Delete", "exclude, include"),
            ),
        ),
    ),
    "masks": (
        (
            "Review",
            (
                ("Tab", "next disputed region"),
                ("Shift+Tab", "previous disputed region"),
                ("A", "accept the consensus there"),
                ("T", "take a rater's version"),
                ("B", "brush"),
                ("E", "eraser"),
                ("[ ]", "smaller, larger brush"),
                ("I", "fill in between painted slices"),
                ("S", "skip"),
                *_UNDO,
            ),
        ),
        (
            "Look",
            (
                ("PgDown", "next case"),
                ("PgUp", "previous case"),
                ("Wheel", "through the slices"),
                ("Ctrl+Wheel", "zoom"),
                ("Arrows", "cross-hair by a voxel"),
                ("Drag", "cross-hair; right: window, middle: pan"),
                ("D", "next map"),
                ("1 ... 9", "one rater alone"),
                *_REGIONS,
            ),
        ),
        ("In the rater table", (("Delete", "exclude, include"),)),
    ),
    "labels": (
        (
            "Review",
            (
                ("Tab", "next disputed task"),
                ("Shift+Tab", "previous disputed task"),
                ("1 ... 9", "the task is of this class"),
                ("S", "skip"),
                ("0", "take back what was decided"),
                ("X", "exclude who is chosen"),
                *_UNDO,
            ),
        ),
        (
            "Look",
            (
                ("Arrows", "next annotator, cell, task"),
                ("Ctrl+A", "all annotators"),
                ("+", "larger matrices"),
                ("-", "smaller matrices"),
                ("Space", "play an annotator's way"),
                ("B", "hide names"),
                ("PgDown", "next question"),
                ("PgUp", "previous question"),
                *_REGIONS,
            ),
        ),
    ),
    "pairs": (
        (
            "Review",
            (
                ("Tab", "next annotator"),
                ("Shift+Tab", "previous annotator"),
                ("F", "flag as biased"),
                ("C", "clear of bias"),
                ("S", "skip"),
                ("X", "set the flagged aside in every kind"),
                *_UNDO,
            ),
        ),
        (
            "Look",
            (
                ("Arrows", "next annotator, item, rate"),
                ("N", "next items that swap"),
                ("PgDown", "next question"),
                ("PgUp", "previous question"),
                *_REGIONS,
            ),
        ),
    ),
}
"""What the keys do in each workspace."""

STUDY: Column = (
    "Study",
    (
        ("F5", "fuse"),
        ("Ctrl+1 ... 4", "clicks, masks, labels, pairs"),
        ("Ctrl+N", "new study"),
        ("Ctrl+O", "open a study"),
        ("Ctrl+I", "import files"),
        ("Ctrl+W", "close the study"),
        ("F1", "these keys"),
        ("Ctrl+Q", "quit"),
    ),
)


class KeySheet(QDialog):
    """Every key of a workspace and what it does, in columns."""

    def __init__(self, kind: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("The keys")
        row = QHBoxLayout(self)
        row.setContentsMargins(24, 20, 24, 20)
        row.setSpacing(32)
        for title, keys in (*KEYS[kind], STUDY):
            column = QVBoxLayout()
            column.setSpacing(8)
            column.addWidget(plain_label(title.upper(), "caption"))
            for key, words in keys:
                button = KeyButton(key, words)
                button.setFocusPolicy(Qt.FocusPolicy.NoFocus)
                button.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
                column.addWidget(button)
            column.addStretch(1)
            row.addLayout(column)
