"""A report as PDF, laid out by Qt's rich text. The only module of reports that needs Qt."""

from __future__ import annotations

import os

from PySide6.QtCore import QBuffer, QEventLoop, QIODevice, QMarginsF, QRectF, QSizeF, Qt, QUrl
from PySide6.QtGui import (
    QColor,
    QFont,
    QGuiApplication,
    QImage,
    QPageLayout,
    QPageSize,
    QPainter,
    QPdfWriter,
    QTextDocument,
)
from shiboken6 import delete

from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.page.contents import Contents, Picture
from raterscope.app.page.page_breaks import keep_together
from raterscope.app.page.rendering import as_html

_DPI = 300
_MARGIN = 15.0  # mm
_FOOT = 9.0  # mm at the foot of the page, for its number
_BLEED = 4.0  # CSS pixels
_GREY = "#5f6a75"


class _Paper(QTextDocument):
    """A document that shows the report's own pictures and reads nothing else, from nowhere."""

    def __init__(self) -> None:
        super().__init__()
        self._pictures: dict[str, QImage] = {}

    def address_of(self, picture: Picture) -> str:
        """Add a picture and return its address."""
        address = f"picture:{len(self._pictures)}"
        self._pictures[address] = QImage.fromData(picture.data)
        return address

    def loadResource(self, _kind: int, name: QUrl | str) -> object:
        """Return a picture of the report; an empty one for any other address."""
        address = name.toString() if isinstance(name, QUrl) else name
        return self._pictures.get(address) or QImage(1, 1, QImage.Format.Format_ARGB32)


def as_pdf(contents: Contents, watch: Watch = silent) -> bytes:
    """Write a report as PDF on A4, each page with its number.

    Works in any thread. Where there is no application yet, one without a screen is made.
    """
    application = _application()
    timers = QEventLoop()  # a document starts timers, for which a thread that Qt did not start has no place
    paper = _Paper()
    try:
        return _written(paper, contents, watch)
    finally:
        # Here, whatever was raised: collected later in another thread, they could not stop their timers.
        delete(paper)
        delete(timers)
        del application


def _written(paper: _Paper, contents: Contents, watch: Watch) -> bytes:
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QPdfWriter(buffer)
    writer.setResolution(_DPI)
    writer.setTitle(contents.title)
    writer.setCreator("Raterscope")
    margins = QMarginsF(_MARGIN, _MARGIN, _MARGIN, _MARGIN)
    layout = QPageLayout(
        QPageSize(QPageSize.PageSizeId.A4), QPageLayout.Orientation.Portrait, margins,
        QPageLayout.Unit.Millimeter,
    )  # fmt: skip
    writer.setPageLayout(layout)
    paper.setDocumentMargin(0)
    paper.documentLayout().setPaintDevice(writer)
    paper.setDefaultFont(QFont("DejaVu Sans", 9))
    paper.setHtml(as_html(contents, "paper", paper.address_of))
    root = paper.rootFrame().frameFormat()
    for set_margin in (
        root.setTopMargin,
        root.setBottomMargin,
    ):  # what stands at a page's edge bleeds into it
        set_margin(_BLEED)
    paper.rootFrame().setFrameFormat(root)
    foot = _FOOT / 25.4 * _DPI
    page = QRectF(0, 0, writer.width(), writer.height() - foot)
    paper.setPageSize(QSizeF(page.size()))
    keep_together(paper, page.height(), part(watch, 0.0, 0.3))
    painter = QPainter(writer)
    try:
        pages = paper.pageCount()
        for number in range(pages):
            watch(0.3 + 0.7 * number / pages, f"page {number + 1} of {pages}")
            if number:
                writer.newPage()
            _paint(painter, paper, page, number)
            _paint_foot(
                painter, contents.title, number + 1, pages, QRectF(0, page.height(), page.width(), foot)
            )
    finally:
        painter.end()
    return bytes(buffer.data().data())


def _application() -> QGuiApplication | None:
    """Make an application if there is none; fonts need one."""
    if QGuiApplication.instance() is not None:
        return None
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    return QGuiApplication(["raterscope"])


def _paint(painter: QPainter, paper: _Paper, page: QRectF, number: int) -> None:
    painter.save()
    painter.translate(0, -number * page.height())
    paper.drawContents(painter, page.translated(0, number * page.height()))
    painter.restore()


def _paint_foot(painter: QPainter, title: str, number: int, pages: int, where: QRectF) -> None:
    painter.setFont(QFont("DejaVu Sans", 7))
    painter.setPen(QColor(_GREY))
    painter.drawText(where, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignBottom, title)
    words = f"page {number} of {pages}"
    painter.drawText(where, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignBottom, words)
