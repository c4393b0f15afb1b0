"""Series go to a real archive over DIMSE and come back as they were; every refusal is one sentence."""

import shutil
import socket
import subprocess
import threading
import time
from contextlib import contextmanager

import numpy as np
import pydicom
import pytest

from raterscope.algorithms.progress import Cancelled
from raterscope.app.cli import main
from raterscope.app.errors import InputError
from raterscope.app.formats.masks.export import write_masks
from raterscope.app.formats.masks.terminology import Structure
from raterscope.app.formats.remote import archives, protocols
from tests.app.formats.masks.conftest import series  # noqa: F401 - a fixture
from tests.app.formats.remote.conftest import free_port, orthanc
from tests.app.formats.remote.test_dicomweb import listed

imagecodecs = pytest.importorskip("imagecodecs")
pytest.importorskip("pynetdicom")


def test_a_study_is_fetched_and_its_consensus_found(node, series, tmp_path, capsys):  # noqa: F811
    volume = series()
    drawn = []
    for rater, form, wide in (("a", "dicom-seg", 8), ("b", "rtstruct", 9), ("c", "dicom-seg", 8)):
        mask = np.zeros((4, 20, 30), dtype=bool)
        mask[1:3, 5:12, 10 : 10 + wide] = True
        drawn.append(tmp_path / f"{rater}.dcm")
        write_masks(drawn[-1], form, [Structure("lung", mask)], volume.grid, source=volume)
    assert main(["pacs", "store", node, str(volume.files[0].parent), *map(str, drawn)]) == 0
    (row,) = listed(capsys, node, "--patient", "PID-4711", "--modality", "CT")
    assert (row["patient"], row["modality"], row["instances"]) == ("PID-4711", "CT", "4")
    assert listed(capsys, node, "--patient", "another") == []
    assert listed(capsys, node, "--date", "19000101-19000102") == []

    fetched = tmp_path / "fetched"
    assert main(["pacs", "get", node, "--study", row["study_uid"], "-o", str(fetched)]) == 0
    got = {dataset.SOPInstanceUID: dataset for dataset in map(pydicom.dcmread, fetched.rglob("*.dcm"))}
    assert len(got) == 7
    for file in (*volume.files, *drawn):
        sent = pydicom.dcmread(file)
        assert got[sent.SOPInstanceUID] == sent

    study = str(tmp_path / "s.rscope")
    contours = next(fetched.glob("RTSTRUCT*"))
    others = [str(folder) for folder in fetched.iterdir() if folder != contours]
    assert main(["import", study, *others]) == 0
    assert main(["import", study, str(contours), "--annotator", "b"]) == 0
    assert main(["run", study, "majority"]) == 0
    consensus = tmp_path / "consensus.dcm"
    words = ("--what", "consensus", "--format", "dicom-seg", "-o", str(consensus))
    assert main(["export", study, *words]) == 0
    assert main(["pacs", "store", node, str(consensus)]) == 0
    rows = listed(capsys, node, "--study", row["study_uid"])
    assert sorted(row["modality"] for row in rows) == ["CT", "RTSTRUCT", "SEG", "SEG", "SEG"]
    uid = str(pydicom.dcmread(consensus).SeriesInstanceUID)
    (found,) = listed(capsys, node, "--study", row["study_uid"], "--series", uid)
    assert found["series_uid"] == uid


def test_compressed_slices_stay_compressed(node, series, tmp_path):  # noqa: F811
    (file, *_) = series().files
    dataset = pydicom.dcmread(file)
    frame = imagecodecs.jpeg2k_encode(dataset.pixel_array, level=0, codecformat="j2k")
    dataset.PixelData = pydicom.encaps.encapsulate([frame])
    dataset.file_meta.TransferSyntaxUID = pydicom.uid.JPEG2000Lossless
    dataset.save_as(file)
    archive = archives.connect(node)
    archives.store_files(archive, [file])
    (listing,) = archives.find_series(archive, {"Modality": "CT"})
    (back,) = archives.fetch_series(archive, listing, tmp_path / "back")
    assert pydicom.dcmread(back).file_meta.TransferSyntaxUID == pydicom.uid.JPEG2000Lossless
    assert np.array_equal(pydicom.dcmread(back).pixel_array, pydicom.dcmread(file).pixel_array)


def test_cancelled_fetching_leaves_no_half_series(node, series, tmp_path):  # noqa: F811
    volume = series()
    archive = archives.connect(node)
    archives.store_files(archive, volume.files)
    (listing,) = archives.find_series(archive, {})

    def watch(fraction, words, **_):
        if "3 of 4" in words:
            raise Cancelled

    with pytest.raises(Cancelled):
        archives.fetch_series(archive, listing, tmp_path / "back", watch)
    assert list((tmp_path / "back").iterdir()) == []


@pytest.mark.parametrize(("limit", "value"), [("MAX_INSTANCES", 2), ("_MAX_BYTES", 1000)])
def test_an_archive_that_sends_too_much(node, series, tmp_path, monkeypatch, limit, value):  # noqa: F811
    archive = archives.connect(node)
    archives.store_files(archive, series().files)
    (listing,) = archives.find_series(archive, {})
    monkeypatch.setattr(archives if limit == "MAX_INSTANCES" else protocols, limit, value)
    with pytest.raises(InputError, match="sends more than"):
        archives.fetch_series(archive, listing, tmp_path / "back")
    assert list((tmp_path / "back").iterdir()) == []


def test_what_an_archive_refuses(node, tmp_path, capsys):
    def error(*words):
        capsys.readouterr()
        assert main(["pacs", *words]) == 1
        return capsys.readouterr().err

    assert "is not called OTHER" in error("find", node.replace("ARCHIVE", "OTHER"))
    assert "know the AE title ELSE, and allow it C-FIND" in error("find", f"{node}?calling=ELSE")
    assert "there is no such study or series" in error("get", node, "--study", "1.2.3", "-o", str(tmp_path))
    assert "also name the study of the series" in error("get", node, "--series", "1.2.3", "-o", str(tmp_path))
    assert "expected 20260131" in error("find", node, "--date", "2026-01-31")


def test_a_rejection_is_understood_although_the_archive_closed_at_once(node, monkeypatch, capsys):
    from pynetdicom.acse import ACSE

    send = ACSE.send_request

    def slow(self):
        send(self)
        until = time.monotonic() + 20
        self.socket._ready.wait(20)
        while self.socket._is_connected and time.monotonic() < until:
            time.sleep(0.01)

    monkeypatch.setattr(ACSE, "send_request", slow)
    assert main(["pacs", "find", node.replace("ARCHIVE", "OTHER")]) == 1
    assert "is not called OTHER" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("dicom://ARCHIVE@127.0.0.1:9", "127.0.0.1:9: does not answer"),
        ("dicom://ARCHIVE@no-such-host.invalid:104", "there is no computer of this name"),
        ("dicom://127.0.0.1:104", "is not an address of a PACS"),
        ("dicom://ARCHIVE@127.0.0.1", "is not an address of a PACS"),
        ("dicom://ARCHIVE@127.0.0.1:port", "is not an address of a PACS"),
        ("dicom://THIS-TITLE-IS-TOO-LONG@127.0.0.1:104", "is not an address of a PACS"),
        ("dicoms://ARCHIVE@127.0.0.1:9", "127.0.0.1:9: does not answer"),
    ],
)
def test_an_address_that_cannot_be_used(address, words, capsys):
    assert main(["pacs", "find", address]) == 1
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("losses", [1, 2])
def test_an_association_that_the_archive_ends_is_opened_once_more(losses, series, capsys):  # noqa: F811
    from pynetdicom import AE, evt, sop_class

    lost = {"C-FIND": losses, "C-STORE": losses}
    stored = set()

    def loses(event, service):
        lost[service] -= 1
        if lost[service] >= 0:
            event.assoc.abort()
        return lost[service] >= 0

    def find(event):
        if not loses(event, "C-FIND"):
            yield 0x0000, None

    def store(event):
        if not loses(event, "C-STORE"):
            stored.add(event.dataset.SOPInstanceUID)
        return 0x0000

    archive = AE("ARCHIVE")
    archive.add_supported_context(sop_class.StudyRootQueryRetrieveInformationModelFind)
    archive.add_supported_context(sop_class.CTImageStorage)
    handlers = [(evt.EVT_C_FIND, find), (evt.EVT_C_STORE, store)]
    serving = archive.start_server(("127.0.0.1", 0), block=False, evt_handlers=handlers)
    try:
        address = f"dicom://ARCHIVE@127.0.0.1:{serving.socket.getsockname()[1]}"
        assert main(["pacs", "find", address]) == losses - 1
        assert main(["pacs", "store", address, str(series().files[0].parent)]) == losses - 1
    finally:
        serving.shutdown()
    assert len(stored) == (4 if losses == 1 else 0)
    assert capsys.readouterr().err.count("ended the association") == 2 * (losses - 1)


@contextmanager
def server(answer):
    """Listen on a port, answer the first request with bytes, and keep the connection.

    The first connection, which only looks whether there is an archive, sends none.
    """
    with socket.create_server(("127.0.0.1", 0)) as listening:
        stop = threading.Event()

        def serve():
            listening.accept()[0].close()
            connection, _ = listening.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(answer)
                stop.wait()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"dicom://ARCHIVE@127.0.0.1:{listening.getsockname()[1]}"
        finally:
            stop.set()
            thread.join()


@pytest.mark.parametrize(
    ("answer", "timeout", "words"),
    [
        (b"", 0.1, "is not a DICOM archive"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", 60, "is not a DICOM archive"),
        (b"\x02\x00\xff\xff\xff\xff", 60, "sends more than"),
        (b"\x02\x00\x00", 0.1, "is not a DICOM archive"),
        (b"\x02\x00\x00\x00\x00\x02ab", 60, "does not offer"),
    ],
)
def test_an_answer_that_is_no_dicom(answer, timeout, words, capsys, monkeypatch):
    monkeypatch.setattr(protocols, "_TIMEOUT", timeout)
    with server(answer) as address:
        assert main(["pacs", "find", address]) == 1
    assert words in capsys.readouterr().err


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")
def test_tls_needs_a_trusted_certificate(tmp_path, series, capsys):  # noqa: F811
    if not shutil.which("Orthanc"):
        pytest.skip("the archive Orthanc is not installed")
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "certificate.pem")
    subject = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
    words = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate)
    subprocess.run([*words, *subject], check=True, capture_output=True)
    port = free_port()
    settings = {
        "DicomServerEnabled": True, "DicomPort": port, "DicomAet": "ARCHIVE", "DicomTlsEnabled": True,
        "DicomTlsPrivateKey": key, "DicomTlsCertificate": certificate,
        "DicomTlsTrustedCertificates": certificate, "DicomTlsRemoteCertificateRequired": False,
        "DicomAlwaysAllowFind": True, "DicomAlwaysAllowStore": True,
    }  # fmt: skip
    with orthanc(tmp_path / "tls", **settings):
        address = f"dicoms://ARCHIVE@localhost:{port}"
        assert main(["pacs", "find", address]) == 1
        assert "its certificate is not trusted" in capsys.readouterr().err
        assert main(["pacs", "find", address.replace("dicoms", "dicom")]) == 1
        assert len(capsys.readouterr().err.splitlines()) == 1
        trusted = ("--certificates", certificate)
        assert main(["pacs", "store", address, str(series().files[0]), *trusted]) == 0
        (row,) = listed(capsys, address, *trusted)
        assert row["patient"] == "PID-4711"
