"""The report as PDF, and the command that writes it."""

import os
import re
import subprocess
import sys
import threading

import pytest
from PIL import Image
from PySide6.QtCore import QUrl
from PySide6.QtGui import QTextDocument

from raterscope.app.cli import main
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
    place = study.path
    study.close()

    def work():
        with Study.open(place) as again:
            write_report(again, tmp_path / "report.pdf")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert pages_of(tmp_path / "report.pdf") >= 2
    assert [record.message for record in qtlog.records] == []


def test_paper_shows_the_reports_pictures_and_reads_no_file(tmp_path, qapp):
    from raterscope.app.report.contents import Picture
    from raterscope.app.report.pdf import _Paper

    secret = tmp_path / "secret.png"
    Image.new("RGB", (30, 20), "red").save(secret)
    paper = _Paper()
    own = paper.address_of(Picture(secret.read_bytes(), 30, 20, ""))
    paper.setHtml(f'<img src="{own}"><img src="{QUrl.fromLocalFile(str(secret)).toString()}">')
    kind = int(QTextDocument.ResourceType.ImageResource.value)
    assert paper.resource(kind, QUrl(own)).width() == 30
    assert paper.resource(kind, QUrl.fromLocalFile(str(secret))).width() == 1
    paper.deleteLater()


def test_the_command_needs_no_display(study, tmp_path):
    fuse(study)
    study.close()
    out = tmp_path / "report.pdf"
    bare = {name: value for name, value in os.environ.items() if name not in ("QT_QPA_PLATFORM", "DISPLAY")}
    done = subprocess.run(
        [sys.executable, "-m", "raterscope", "report", str(study.path), "-o", str(out)],
        env=bare, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip()) == (0, str(out))
    assert pages_of(out) >= 2


def test_the_command_says_what_is_wrong_in_one_line(study, tmp_path, capsys):
    fuse(study)
    study.close()
    for extra, words in (
        (("-o", "report.odt"), "ends in .html or .pdf"),
        (("-o", "report.html", "--item", "leg"), "holds no image or question leg"),
    ):
        assert main(["report", str(study.path), *extra]) == 1
        told = capsys.readouterr().err
        assert words in told
        assert told.count("\n") == 1
    assert main(["report", str(study.path), "--item", "chest", "-o", str(tmp_path / "one.html")]) == 0


@pytest.mark.parametrize("module", ["raterscope.app.report", "raterscope.app.report.rendering"])
def test_html_is_made_without_qt(module):
    script = f"import sys, {module}, raterscope.app.report.masks; sys.exit('PySide6' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
