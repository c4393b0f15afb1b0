"""A report as PDF, laid out by Qt's rich text.

No other module of reports needs Qt. Pages end neither within a row nor between a heading and its text.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

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
    QTextBlock,
    QTextBlockFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextFrame,
    QTextTable,
)
from shiboken6 import delete

from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.page.contents import Contents, Picture, as_html

_Part = QTextBlock | QTextTable

_INCH = 96.0
"""Units of layout heights per inch."""

_ROOM_AT_FOOT = 0.27
"""Reserve at the foot of a page for margins of tables and cells and part of a line, in inches."""

_BREAK = QTextFormat.PageBreakFlag.PageBreak_AlwaysBefore

_ABOVE = 22.0
"""Space above a section that does not begin a page, in CSS pixels."""

_SHORT = 1 / 3
"""Share of the last page of a section below which the next section begins on the same page."""


def keep_together(paper: QTextDocument, height: float, watch: Watch = silent) -> None:
    """Start new pages so that related parts stay together.

    A heading, or a block before a table, stays with the next block. A table starts with at least one row, and
    is kept together if it fits half a page. No row is divided. The last page of a section is shared with the
    next if it would be mostly empty.

    `paper`: document with its page layout. `height`: height of a page.
    """
    parts = list(_parts(paper.rootFrame()))
    first = section = 0
    for index, block in enumerate(parts):
        watch(index / len(parts), "laying out pages")
        if index and isinstance(block, QTextBlock) and block.blockFormat().pageBreakPolicy() == _BREAK:
            begin, end = (
                _bounding_box(paper, parts[section]).top(),
                _bounding_box(paper, parts[index - 1]).bottom(),
            )
            if _page(begin, height) != _page(end, height) and end % height < _SHORT * height:
                _go_on(block)
            section = index
        following = parts[index + 1] if index + 1 < len(parts) else None
        if isinstance(block, QTextBlock) and (
            block.blockFormat().headingLevel() or isinstance(following, QTextTable)
        ):
            continue
        top, bottom = _bounding_box(paper, parts[first]).top(), _least(paper, block, height)
        if _page(top, height) != _page(bottom - 1, height) and bottom - top < height:
            _start_page(parts[first])
        if isinstance(block, QTextTable):
            _keep_rows(paper, block, height)
        first = index + 1


def _parts(frame: QTextFrame) -> Iterator[_Part]:
    """Return the paragraphs and tables of a document in order, without empty paragraphs between tables."""
    iterator = frame.begin()
    while not iterator.atEnd():
        inner, block = iterator.currentFrame(), iterator.currentBlock()
        if isinstance(inner, QTextTable):
            yield inner
        elif block.isValid() and block.text():
            yield block
        iterator += 1


def _bounding_box(paper: QTextDocument, part: _Part) -> QRectF:
    layout = paper.documentLayout()
    if isinstance(part, QTextTable):
        return layout.frameBoundingRect(part)
    return layout.blockBoundingRect(part)


def _least(paper: QTextDocument, part: _Part, height: float) -> float:
    """Return the lower edge of the part of a block that must stay with its beginning."""
    box = _bounding_box(paper, part)
    if isinstance(part, QTextTable) and box.height() >= height / 2:
        head = part.format().headerRowCount()
        return _row(paper, part, min(head, part.rows() - 1)).bottom()
    if isinstance(part, QTextBlock):
        return box.top() + part.layout().lineAt(0).height()
    return box.bottom()


def _row(paper: QTextDocument, table: QTextTable, number: int) -> QRectF:
    """Return the box of a row's texts and pictures."""
    box = QRectF()
    for column in range(table.columns()):
        cell = table.cellAt(number, column)
        for block in (cell.firstCursorPosition().block(), cell.lastCursorPosition().block()):
            block_box, lines = _bounding_box(paper, block), block.layout()
            for line in (lines.lineAt(0), lines.lineAt(lines.lineCount() - 1)):
                box = box.united(line.rect().translated(block_box.topLeft()))
    return box


def _keep_rows(paper: QTextDocument, table: QTextTable, height: float) -> None:
    """Add space above a row that would cross the page's edge: the row then starts a new page."""
    for number in range(table.format().headerRowCount() + 1, table.rows()):
        box = _row(paper, table, number)
        if number == table.rows() - 2 and table.cellAt(number + 1, 0).columnSpan() > 1:  # note of the table
            box = box.united(_row(paper, table, number + 1))
        if _page(box.top(), height) == _page(box.bottom() - 1, height) or box.height() > height / 2:
            continue
        room, inch = height - box.top() % height, paper.documentLayout().paintDevice().logicalDpiY()
        filling = QTextBlockFormat()
        fixed = QTextBlockFormat.LineHeightTypes.FixedHeight
        filling.setLineHeight((room / inch - _ROOM_AT_FOOT) * _INCH, fixed.value)
        cells = (table.cellAt(number - 1, column) for column in range(table.columns()))
        ends = [cell.lastCursorPosition() for cell in cells]
        max(ends, key=lambda end: _bounding_box(paper, end.block()).bottom()).insertBlock(filling)


def _start_page(part: _Part) -> None:
    if isinstance(part, QTextTable):
        style = part.format()
        style.setPageBreakPolicy(_BREAK)
        part.setFormat(style)
        return
    cursor, begin = QTextCursor(part), QTextBlockFormat()
    begin.setPageBreakPolicy(_BREAK)
    cursor.mergeBlockFormat(begin)


def _go_on(heading: QTextBlock) -> None:
    """Begin a section on the page of the previous section, below some space."""
    cursor, begin = QTextCursor(heading), QTextBlockFormat()
    begin.setPageBreakPolicy(QTextFormat.PageBreakFlag.PageBreak_Auto)
    begin.setTopMargin(_ABOVE)
    cursor.mergeBlockFormat(begin)


def _page(y: float, height: float) -> int:
    return int(y // height)


_DPI = 300
_MARGIN = 15.0  # mm
_FOOT = 9.0  # mm at the foot of the page, for its number
_BLEED = 4.0  # CSS pixels
_GREY = "#5f6a75"


class _Paper(QTextDocument):
    """A document that shows the report's pictures, and loads no other files or addresses."""

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

    Works in any thread. Without a Qt application, an offscreen one is made.
    """
    application = _application()
    timers = QEventLoop()  # a document starts timers, which need an event loop in this thread
    paper = _Paper()
    try:
        return _written(paper, contents, watch)
    finally:
        # Also after an error: objects that another thread collects later could not stop their timers.
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
    ):  # content at the edge of a page bleeds into the margin
        set_margin(_BLEED)
    paper.rootFrame().setFrameFormat(root)
    footer = _FOOT / 25.4 * _DPI
    page = QRectF(0, 0, writer.width(), writer.height() - footer)
    paper.setPageSize(QSizeF(page.size()))
    keep_together(paper, page.height(), part(watch, 0.0, 0.3))
    painter = QPainter(writer)
    try:
        pages = paper.pageCount()
        for number in range(pages):
            watch(0.3 + 0.7 * number / pages, f"page {number + 1} of {pages}")
            if number:
                writer.newPage()
            painter.save()
            painter.translate(0, -number * page.height())
            paper.drawContents(painter, page.translated(0, number * page.height()))
            painter.restore()
            _paint_foot(
                painter, contents.title, number + 1, pages, QRectF(0, page.height(), page.width(), footer)
            )
    finally:
        painter.end()
    return bytes(buffer.data().data())


def _application() -> QGuiApplication | None:
    """Make a Qt application if there is none, because fonts need one."""
    if QGuiApplication.instance() is not None:
        return None
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    return QGuiApplication(["raterscope"])


def _paint_foot(painter: QPainter, title: str, number: int, pages: int, where: QRectF) -> None:
    painter.setFont(QFont("DejaVu Sans", 7))
    painter.setPen(QColor(_GREY))
    painter.drawText(where, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignBottom, title)
    text = f"page {number} of {pages}"
    painter.drawText(where, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignBottom, text)
