"""The report as PDF, and the command that writes it."""

import gc
import os
import re
import subprocess
import sys
import threading

import pytest
from PIL import Image
from PySide6.QtCore import QSizeF, QUrl
from PySide6.QtGui import QFont, QFontMetricsF, QImage, QTextDocument

from raterscope.algorithms.progress import Cancelled
from raterscope.app.cli import main
from raterscope.app.page.contents import Cell, Contents, Notices, Prose, Section, Table, as_html, shortened
from raterscope.app.page.pdf import keep_together
from raterscope.app.report import write_report
from raterscope.app.study import Study
from tests.app.report.conftest import fuse


def pages_of(path):
    data = path.read_bytes()
    assert data.startswith(b"%PDF-")
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", data))


def test_a_pdf_is_written_beside_a_running_window(study, tmp_path, qapp):
    fuse(study)
    path = write_report(study, tmp_path / "report.pdf")
    assert pages_of(path) >= 2


def test_a_pdf_is_written_in_another_thread_without_complaint(study, tmp_path, qapp, qtlog):
    fuse(study)
    study_path = study.path
    study.close()

    def work():
        with Study.open(study_path) as second:
            write_report(second, tmp_path / "report.pdf")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert pages_of(tmp_path / "report.pdf") >= 2
    assert [record.message for record in qtlog.records] == []


def test_paper_with_tables_is_taken_away_in_the_thread_that_made_it(qapp, qtlog):
    from raterscope.app.page.pdf import as_pdf

    table = Table("Head of a table", ("First", "Second"), [[f"row {n}", "word"] for n in range(300)])
    contents = Contents("Made", [], [Section(title, [table]) for title in ("One", "Another")])
    thread = threading.Thread(target=as_pdf, args=(contents,))
    thread.start()
    thread.join()
    gc.collect()
    assert [record.message for record in qtlog.records] == []


@pytest.mark.parametrize("calls", [1, 3])
def test_a_pdf_that_is_cancelled_leaves_nothing_to_another_thread(qapp, qtlog, calls):
    from raterscope.app.page.pdf import as_pdf

    table = Table("Head of a table", ("First", "Second"), [[f"row {n}", "word"] for n in range(300)])
    contents = Contents("Made", [], [Section(title, [table]) for title in ("One", "Another")])
    raised, messages = [], []

    def watch(*_, **__):
        messages.append(1)
        if len(messages) == calls:
            raise Cancelled

    def work():
        try:
            as_pdf(contents, watch)
        except Cancelled as error:
            raised.append(error)  # whose frames hold the paper until another thread lets go of them

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert raised
    raised.clear()
    gc.collect()
    assert [record.message for record in qtlog.records] == []


@pytest.mark.parametrize("before", range(0, 60, 7))
def test_nothing_that_is_read_together_is_torn_apart_by_a_pages_end(before, qapp):
    rows = [[f"row {n}", " ".join(["word"] * 60), "x" * 90] for n in range(30)]
    table = Table("Head of a table", ("First", "Second", "Third"), rows, "A note.", frozenset({1, 2}))
    prose = Prose([("", f"line {n}") for n in range(before)])
    inner = Section("A heading", [prose, table], [Section("Another heading", [Notices(["Beware."]), table])])
    paper, device, height = QTextDocument(), QImage(1, 1, QImage.Format.Format_RGB32), 1000.0
    paper.documentLayout().setPaintDevice(device)
    paper.setHtml(as_html(Contents("Made", [], [inner]), "paper"))
    paper.setPageSize(QSizeF(700, height))
    keep_together(paper, height)

    def pages(block):
        top = paper.documentLayout().blockBoundingRect(block).top()
        lines = [block.layout().lineAt(number).rect() for number in range(block.layout().lineCount())]
        return {int((top + y) // height) for line in lines for y in (line.top(), line.bottom() - 1)}

    blocks = [paper.begin()]
    while blocks[-1].next().isValid():
        blocks.append(blocks[-1].next())
    filled = [block for block in blocks if block.text()]
    headings = [at for at, block in enumerate(filled) if block.blockFormat().headingLevel()]
    assert len(headings) == 3
    for at in headings:
        assert pages(filled[at]) <= pages(filled[at + 1])
    tables = [frame for frame in paper.rootFrame().childFrames() if frame.rows() > len(rows)]
    assert len(tables) == 2
    for frame in tables:
        for row in range(frame.rows()):
            cells = [frame.cellAt(row, column).firstCursorPosition().block() for column in range(3)]
            assert len(set().union(*map(pages, cells))) == 1
        head = frame.cellAt(0, 0).firstCursorPosition().block()
        assert pages(head) == pages(frame.cellAt(2, 0).firstCursorPosition().block())
    paper.deleteLater()


def test_paper_shows_the_reports_pictures_and_reads_no_file(tmp_path, qapp):
    from raterscope.app.page.contents import Picture
    from raterscope.app.page.pdf import _Paper

    secret = tmp_path / "secret.png"
    Image.new("RGB", (30, 20), "red").save(secret)
    paper = _Paper()
    address = paper.address_of(Picture(secret.read_bytes(), 30, 20, ""))
    paper.setHtml(f'<img src="{address}"><img src="{QUrl.fromLocalFile(str(secret)).toString()}">')
    kind = int(QTextDocument.ResourceType.ImageResource.value)
    assert paper.resource(kind, QUrl(address)).width() == 30
    assert paper.resource(kind, QUrl.fromLocalFile(str(secret))).width() == 1
    paper.deleteLater()


WITHOUT_DISPLAY = """
import sys
import raterscope.app.report, raterscope.app.page.contents, raterscope.app.kinds.masks.report.sections
from raterscope.app.cli import main

print("PySide6" in sys.modules)
sys.exit(main(sys.argv[1:]))
"""


def test_html_is_made_without_qt_and_the_command_needs_no_display(study, tmp_path):
    fuse(study)
    study.close()
    out = tmp_path / "report.pdf"
    bare = {name: value for name, value in os.environ.items() if name not in ("QT_QPA_PLATFORM", "DISPLAY")}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_DISPLAY, "report", str(study.path), "-o", str(out)],
        env=bare, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.split()) == (0, ["False", str(out)])
    assert pages_of(out) >= 2


def test_the_command_reports_an_error_in_one_line(study, tmp_path, capsys):
    fuse(study)
    study.close()
    for extra, words in (
        (("-o", "report.odt"), "ends in .html or .pdf"),
        (("-o", "report.html", "--item", "leg"), "contains no image or question leg"),
    ):
        assert main(["report", str(study.path), *extra]) == 1
        output = capsys.readouterr().err
        assert words in output
        assert output.count("\n") == 1
    assert main(["report", str(study.path), "--item", "chest", "-o", str(tmp_path / "one.html")]) == 0


@pytest.mark.parametrize("names", [("An annotator of theirs",), ("a" * 300, "b " * 200)])
def test_columns_fill_the_paper_and_no_word_of_a_heading_is_broken(names, qapp):
    heads = ("Annotator", "Reliability", "Sensitivity", "Precision", "Kappa", "Weight")
    rows = [[name, *["0.95 (0.76 to 1.00)"] * 3, "1.00", "left out: " + name] for name in names]
    widths = Table("Made", heads, rows).widths()
    assert sum(widths) == pytest.approx(100, abs=0.5)
    assert all(fits(head, width, bold=True) for head, width in zip(heads, widths, strict=True))


def test_no_number_with_its_unit_or_interval_is_broken_in_a_table_of_many_columns(qapp):
    heads = ("Annotator", "Left", "Right", "Bias", "p", "q", "Detectable", "Behaviour", "Match", "The expert")
    row = ("w268", "148", "0", "1.000 (0.953 to 1.000)", "< 0.001", "< 0.001", "80.1 mm³", "one-sided, left",
           "0.46", "flagged: clicks one side always")  # fmt: skip
    widths = Table("Flagged annotators", heads, [row]).widths()
    unbreakable = ("w268", "148", "0", "(0.953 to 1.000)", "< 0.001", "< 0.001", "80.1 mm³", "one-sided,",
                   "0.46", "flagged:")  # fmt: skip
    assert all(fits(text, width) for text, width in zip(unbreakable, widths, strict=True))


def test_a_name_behind_its_colour_is_not_broken(qapp):
    heads = (
        "Rater",
        "Bias, mm",
        "Spread, mm",
        "Dice",
        "HD95, mm",
        "HD, mm",
        "Sens.",
        "Spec.",
        "Volume",
        "Difference",
    )
    row = ("1.9 beyond", "0.12", "0.896", "2.0", "2.1", "0.811", "1.000", "21.4 ml", "+5.0 ml (+19 %)")
    rows = [[Cell(name, swatch="#ff0000"), *row] for name in ("Adler", "Baum")]
    assert fits("■ Adler", Table("Raters", heads, rows).widths()[0])


def fits(text, percent, bold=False):
    """Measure a text in the font and the width of a table on paper, without its padding."""
    font = QFont("DejaVu Sans")
    font.setPixelSize(100)
    font.setBold(bold)
    ems = QFontMetricsF(font).horizontalAdvance(text) / 100
    points = 180 / 25.4 * 72
    return ems * 7.5 <= points * percent / 100 - 7.5


def test_a_table_of_thousands_of_images_is_cut_with_a_count():
    rows = shortened([(str(number), "x") for number in range(1402)])
    assert len(rows) == 401
    assert rows[-1] == ("… and 1,002 more", "")
    assert shortened(rows[:3]) == rows[:3]


@pytest.mark.parametrize(("lines", "alone"), [(5, True), (60, False), (75, True)])
def test_a_section_begins_on_the_nearly_empty_last_page_of_one_of_several(lines, alone, qapp):
    sections = [
        Section("First", [Prose([("", f"line {n}") for n in range(lines)])], breaks=True),
        Section("Second", [Prose([("", "few words")])], breaks=True),
    ]
    paper, device, height = QTextDocument(), QImage(1, 1, QImage.Format.Format_RGB32), 1000.0
    paper.documentLayout().setPaintDevice(device)
    paper.setHtml(as_html(Contents("Made", [], sections), "paper"))
    paper.setPageSize(QSizeF(700, height))
    keep_together(paper, height)
    blocks = [paper.findBlockByNumber(number) for number in range(paper.blockCount())]
    tops = {block.text(): paper.documentLayout().blockBoundingRect(block).top() for block in blocks}
    pages = {text: int(top // height) for text, top in tops.items()}
    last = tops[f"line {lines - 1}"] % height
    assert (pages["First"] == pages[f"line {lines - 1}"]) == (lines == 5)
    assert (last < height / 3) == (lines != 75)
    assert (pages["Second"] > pages[f"line {lines - 1}"]) == alone
    paper.deleteLater()
