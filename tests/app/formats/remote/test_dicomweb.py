"""Series go to a real archive over DICOMweb and come back as they were; every refusal is one sentence."""

import http.server
import threading

import numpy as np
import pydicom
import pytest

from raterscope.app.cli import main
from tests.app.formats.masks.conftest import series  # noqa: F401 - a fixture

pytest.importorskip("dicomweb_client")


@pytest.fixture
def _anna(monkeypatch):
    monkeypatch.setenv("RATERSCOPE_PACS_AUTHORIZATION", "Basic YW5uYTpzZWNyZXQ=")


def listed(capsys, *words):
    capsys.readouterr()
    assert main(["pacs", "find", *words]) == 0
    head, *rows = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    return [dict(zip(head, row, strict=True)) for row in rows]


@pytest.mark.usefixtures("_anna")
def test_a_consensus_is_stored_beside_its_series_and_found_again(archive, series, tmp_path, capsys):  # noqa: F811
    volume = series()
    (volume.files[0].parent / "README.md").write_text("no DICOM file")
    assert main(["pacs", "store", archive, str(volume.files[0].parent)]) == 0
    (row,) = listed(capsys, archive, "--patient", "PID-4711", "--modality", "CT")
    assert (row["patient"], row["modality"], row["instances"]) == ("PID-4711", "CT", "4")
    assert listed(capsys, archive, "--patient", "another") == []

    fetched = tmp_path / "fetched"
    assert main(["pacs", "get", archive, "--study", row["study_uid"], "-o", str(fetched)]) == 0
    got = {file.name: pydicom.dcmread(file) for file in fetched.rglob("*.dcm")}
    for file in volume.files:
        sent = pydicom.dcmread(file)
        assert got[f"{sent.SOPInstanceUID}.dcm"] == sent

    for rater, wide in (("a", 8), ("b", 9), ("c", 8)):
        mask = np.zeros((4, 20, 30), dtype=bool)
        mask[1:3, 5:12, 10 : 10 + wide] = True
        from raterscope.app.formats.masks.export import write_masks
        from raterscope.app.formats.masks.terminology import Structure

        write_masks(
            tmp_path / f"{rater}.dcm", "dicom-seg", [Structure("lung", mask)], volume.grid, source=volume
        )
    study = str(tmp_path / "s.rscope")
    masks = [str(tmp_path / f"{rater}.dcm") for rater in "abc"]
    assert main(["import", study, str(next(fetched.iterdir())), *masks]) == 0
    assert main(["run", study, "majority"]) == 0
    report = tmp_path / "report.dcm"
    assert main(["export", study, "--what", "consensus", "--format", "dicom-sr", "-o", str(report)]) == 0
    assert main(["pacs", "store", archive, str(report), str(tmp_path / "report_seg.dcm")]) == 0
    rows = listed(capsys, archive, "--study", row["study_uid"])
    assert sorted(row["modality"] for row in rows) == ["CT", "SEG", "SR"]


def test_an_archive_that_asks_for_a_password(archive, capsys):
    assert main(["pacs", "find", archive]) == 1
    assert "requires a login (status 401); set RATERSCOPE_PACS_AUTHORIZATION" in capsys.readouterr().err


@pytest.mark.usefixtures("_anna")
def test_what_an_archive_refuses(archive, tmp_path, capsys):
    assert main(["pacs", "get", archive, "--study", "1.2.3", "-o", str(tmp_path)]) == 1
    assert "there is no such study or series" in capsys.readouterr().err
    (tmp_path / "a.dcm").write_text("no DICOM")
    assert main(["pacs", "store", archive, str(tmp_path / "a.dcm")]) == 1
    assert "a.dcm: is no DICOM file" in capsys.readouterr().err
    assert main(["pacs", "find", archive.replace("dicom-web", "elsewhere")]) == 1
    assert "no DICOMweb at this address (status 404)" in capsys.readouterr().err
    assert main(["pacs", "find", archive.replace("http:", "https:")]) == 1
    assert "does this port use TLS" in capsys.readouterr().err
    assert main(["pacs", "find", archive, "--date", "2026-01-31"]) == 1
    assert "2026-01-31 is no value of StudyDate; expected 20260131" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("http://127.0.0.1:9/dicom-web", "127.0.0.1:9: does not answer"),
        ("https://no-such-host.invalid/x", "there is no computer of this name"),
        ("ftp://host/x", "is not an address of a PACS"),
        ("https://anna:secret@host/x", "write no password into the address"),
        ("http://host.example/x", "a token is sent over https only"),
    ],
)
@pytest.mark.usefixtures("_anna")
def test_an_address_that_cannot_be_used(address, words, capsys):
    assert main(["pacs", "find", address]) == 1
    error = capsys.readouterr().err
    assert words in error
    assert "secret" not in error


def test_certificates_that_do_not_exist(tmp_path, capsys):
    words = ("pacs", "find", "https://127.0.0.1:9/x", "--certificates", str(tmp_path / "none.pem"))
    assert main(words) == 1
    assert "none.pem: does not exist; expected certificates as PEM" in capsys.readouterr().err
    (tmp_path / "none.pem").write_text("no certificate")
    assert main(words) == 1
    assert "none.pem: contains no certificates as PEM" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"<html>Welcome</html>", "sent no DICOM in JSON"),
        (b'{"a": 1}', "sent damaged DICOM"),
        (b'[1, "x"]', "sent damaged DICOM"),
        (b'[{"00100020": 5}]', "sent damaged DICOM"),
    ],
)
def test_an_answer_that_is_no_dicomweb(answer, words, capsys):
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            assert main(["pacs", "find", f"http://127.0.0.1:{server.server_port}/x"]) == 1
        finally:
            server.shutdown()
            thread.join()
    assert words in capsys.readouterr().err
