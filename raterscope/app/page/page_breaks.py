"""Where the pages of a report end: not within a row, and not between a heading and what it is of."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QRectF
from PySide6.QtGui import (
    QTextBlock,
    QTextBlockFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextFrame,
    QTextTable,
)

from raterscope.algorithms.progress import Watch, silent

_Part = QTextBlock | QTextTable

_INCH = 96.0
"""Units in which heights are set."""

_FOOT = 0.27
"""Inches at the foot of a page that margins of tables and cells take, with a part of a line."""

_BREAK = QTextFormat.PageBreakFlag.PageBreak_AlwaysBefore


def keep_together(paper: QTextDocument, height: float, watch: Watch = silent) -> None:
    """Start new pages so that related parts stay together.

    A heading, and whatever stands right before a table, stays with what follows; a table begins with a row
    beneath its head, and whole where it fits half a page; no row goes over the edge of a page.

    Parameters
    ----------
    paper : QTextDocument
        Laid out on its pages.
    height : float
        Of a page.
    watch : Watch
    """
    parts = list(_parts(paper.rootFrame()))
    first = 0
    for index, part in enumerate(parts):
        watch(index / len(parts), "laying out pages")
        following = parts[index + 1] if index + 1 < len(parts) else None
        if isinstance(part, QTextBlock) and (
            part.blockFormat().headingLevel() or isinstance(following, QTextTable)
        ):
            continue
        top, bottom = _place(paper, parts[first]).top(), _least(paper, part, height)
        if _page(top, height) != _page(bottom - 1, height) and bottom - top < height:
            _start_page(parts[first])
        if isinstance(part, QTextTable):
            _keep_rows(paper, part, height)
        first = index + 1


def _parts(frame: QTextFrame) -> Iterator[_Part]:
    """Return the paragraphs and tables of a document in order, but not the empty ones between tables."""
    iterator = frame.begin()
    while not iterator.atEnd():
        inner, block = iterator.currentFrame(), iterator.currentBlock()
        if isinstance(inner, QTextTable):
            yield inner
        elif block.isValid() and block.text():
            yield block
        iterator += 1


def _place(paper: QTextDocument, part: _Part) -> QRectF:
    layout = paper.documentLayout()
    if isinstance(part, QTextTable):
        return layout.frameBoundingRect(part)
    return layout.blockBoundingRect(part)


def _least(paper: QTextDocument, part: _Part, height: float) -> float:
    """Return the lower edge of the part that must stay with its beginning."""
    whole = _place(paper, part)
    if isinstance(part, QTextTable) and whole.height() >= height / 2:
        head = part.format().headerRowCount()
        return _row(paper, part, min(head, part.rows() - 1)).bottom()
    if isinstance(part, QTextBlock):
        return whole.top() + part.layout().lineAt(0).height()
    return whole.bottom()


def _row(paper: QTextDocument, table: QTextTable, number: int) -> QRectF:
    """Return the box of a row's texts and pictures."""
    box = QRectF()
    for column in range(table.columns()):
        cell = table.cellAt(number, column)
        for block in (cell.firstCursorPosition().block(), cell.lastCursorPosition().block()):
            whole, lines = _place(paper, block), block.layout()
            for line in (lines.lineAt(0), lines.lineAt(lines.lineCount() - 1)):
                box = box.united(line.rect().translated(whole.topLeft()))
    return box


def _keep_rows(paper: QTextDocument, table: QTextTable, height: float) -> None:
    """Fill the page below the row before one that would go over its edge, which then begins the next."""
    for number in range(table.format().headerRowCount() + 1, table.rows()):
        box = _row(paper, table, number)
        if number == table.rows() - 2 and table.cellAt(number + 1, 0).columnSpan() > 1:  # its note
            box = box.united(_row(paper, table, number + 1))
        if _page(box.top(), height) == _page(box.bottom() - 1, height) or box.height() > height / 2:
            continue
        room, inch = height - box.top() % height, paper.documentLayout().paintDevice().logicalDpiY()
        filling = QTextBlockFormat()
        fixed = QTextBlockFormat.LineHeightTypes.FixedHeight
        filling.setLineHeight((room / inch - _FOOT) * _INCH, fixed.value)
        cells = (table.cellAt(number - 1, column) for column in range(table.columns()))
        ends = [cell.lastCursorPosition() for cell in cells]
        max(ends, key=lambda end: _place(paper, end.block()).bottom()).insertBlock(filling)


def _start_page(part: _Part) -> None:
    if isinstance(part, QTextTable):
        style = part.format()
        style.setPageBreakPolicy(_BREAK)
        part.setFormat(style)
        return
    cursor, begin = QTextCursor(part), QTextBlockFormat()
    begin.setPageBreakPolicy(_BREAK)
    cursor.mergeBlockFormat(begin)


def _page(y: float, height: float) -> int:
    return int(y // height)
