"""Pictures and links of a task that is shown large."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QMessageBox, QWidget

from raterscope.algorithms.progress import Watch
from raterscope.app.errors import InputError, plain

LONGEST_SIDE = 4096
"""Pixels of the longer side of a picture on screen; a larger one is reduced."""


def ask_to_open(parent: QWidget, address: str) -> None:
    """Ask whether to open a link in the web browser."""
    box = QMessageBox(
        QMessageBox.Icon.Question, "Open a link", f"Open {plain(address, 200)} in the web browser?",
        QMessageBox.StandardButton.Open | QMessageBox.StandardButton.Cancel, parent,
    )  # fmt: skip
    box.setTextFormat(Qt.TextFormat.PlainText)  # the address is of an untrusted file
    box.accepted.connect(lambda: QDesktopServices.openUrl(QUrl(address)))
    box.open()


def load_picture(path: Path, watch: Watch) -> NDArray[np.uint8] | None:
    """Read a picture as grey or RGB; None if it cannot be read."""
    from raterscope.app.formats.pyramids import load_overview

    watch(0.0, "reading a picture")
    try:
        return np.ascontiguousarray(load_overview(path, LONGEST_SIDE))
    except InputError:
        return None
