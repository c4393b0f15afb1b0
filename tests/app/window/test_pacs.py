"""Series come from a real archive into the import preview, and a consensus goes back to it."""

import numpy as np
import pytest

from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.algorithms.progress import Cancelled
from raterscope.app.formats.masks.export import write_masks
from raterscope.app.formats.masks.terminology import Structure
from raterscope.app.formats.remote import archives, protocols
from raterscope.app.import_candidates import classify_files
from raterscope.app.kinds.masks.runs import fuse_inputs, gather, keep
from raterscope.app.study import Study
from raterscope.widgets.dialogs.pacs_dialogs import PacsFetchDialog, PacsStoreDialog
from tests.app.driving import LONG, idle, open_study
from tests.app.formats.masks.conftest import series  # noqa: F401 - a fixture
from tests.app.formats.remote.conftest import archive, node, running_node  # noqa: F401 - fixtures
from tests.app.formats.remote.test_dicomweb import _anna  # noqa: F401 - a fixture
from tests.app.window.test_experts import dialog_of, trigger


@pytest.fixture
def filled(archive, _anna, series, tmp_path):  # noqa: F811
    """The address of an archive with a CT and the masks of three raters."""
    volume = series()
    masks = []
    for rater, wide in (("a", 8), ("b", 9), ("c", 8)):
        mask = np.zeros((4, 20, 30), dtype=bool)
        mask[1:3, 5:12, 10 : 10 + wide] = True
        masks.append(tmp_path / f"{rater}.dcm")
        write_masks(masks[-1], "dicom-seg", [Structure("lung", mask)], volume.grid, source=volume)
    archives.store_files(archives.connect(archive), [*volume.files, *masks])
    return archive


def ask(window, qtbot, address):
    trigger(window, "Fetch from PACS…")
    dialog = dialog_of(window, qtbot, PacsFetchDialog)
    dialog.form.address.setText(address)
    return dialog


def search(dialog, qtbot, patient=""):
    dialog.filters["PatientID"].setText(patient)
    dialog.search.click()
    qtbot.waitUntil(lambda: dialog.message.text() != "Searching...", timeout=LONG)
    return dialog.message.text()


def test_series_are_fetched_and_imported_and_their_consensus_is_stored(filled, window, qtbot, tmp_path):
    dialog = ask(window, qtbot, filled)
    assert "No series match" in search(dialog, qtbot, "nobody")
    assert not dialog.accepting.isEnabled()
    assert "4 series" in search(dialog, qtbot, "PID-4711")
    dialog.folder.text = str(tmp_path / "fetched")
    dialog.accept()
    qtbot.waitUntil(lambda: window.document.contents is not None, timeout=LONG)
    idle(window, qtbot)
    assert "3 masks" in window.status.message
    path = window.document.contents.path
    assert path.name == "CT-PID-4711.rscope"
    assert set(window.document.contents.annotators) == {f"Raterscope_{letter}" for letter in "ABC"}

    trigger(window, "Store the consensus in PACS…")
    qtbot.waitUntil(lambda: "has no consensus yet" in window.notice.text, timeout=LONG)
    window.files.close_study()
    idle(window, qtbot)
    with Study.open(path) as study:
        keep(fuse_inputs(gather([1], study), MaskPlan.make("majority")), study)
    open_study(window, qtbot, path)
    for number in range(3):
        trigger(window, "Store the consensus in PACS…")
        store = dialog_of(window, qtbot, PacsStoreDialog)
        assert store.form.service[0] == filled
        store.format.setCurrentIndex(number)
        words = f"Stored the consensus in the PACS: {store.format.currentText()}"
        store.accept()
        qtbot.waitUntil(lambda words=words: words in window.status.message, timeout=LONG)
        idle(window, qtbot)
    stored = archives.find_series(archives.connect(filled), {})
    assert stored[0].modality == "CT"  # what is fetched first names the new study
    assert sorted(entry.modality for entry in stored) == ["CT", "RTSTRUCT", *["SEG"] * 5, "SR"]
    assert {entry.patient for entry in stored} == {"PID-4711"}
    fetched = archives.fetch_all(archives.connect(filled), stored, tmp_path / "again")
    candidates = classify_files(list(fetched))
    assert len(candidates.volumes) == 1
    assert any("is a report and contains no image" in notice for notice in candidates.notices)


def test_half_a_series_is_removed_when_fetching_is_cancelled(filled, window, qtbot, tmp_path, monkeypatch):
    steps_of = archives.steps_of

    def cancelling(watch, listed):
        def step(fraction, words):
            if "3 of 4" in words:
                raise Cancelled
            watch(fraction, words)

        return ((entry, step) for entry, _ in steps_of(watch, listed))

    monkeypatch.setattr(archives, "steps_of", cancelling)
    dialog = ask(window, qtbot, filled)
    search(dialog, qtbot)
    dialog.folder.text = str(tmp_path / "fetched")
    dialog.accept()
    qtbot.waitUntil(lambda: "was cancelled" in window.status.message, timeout=LONG)
    idle(window, qtbot)
    qtbot.waitUntil(lambda: not list(tmp_path.glob("fetched/CT*/*")), timeout=LONG)
    assert window.document.contents is None


def test_a_wrong_password_and_a_wrong_address_are_sentences_in_the_dialog(filled, window, qtbot, monkeypatch):
    monkeypatch.setenv(protocols.AUTHORIZATION, "Basic d3Jvbmc6d3Jvbmc=")
    dialog = ask(window, qtbot, filled)
    assert "does not accept the password or token" in search(dialog, qtbot)
    dialog.form.address.setText("http://127.0.0.1:9/dicom-web")
    assert "127.0.0.1:9: does not answer" in search(dialog, qtbot)
    dialog.form.address.setText("archive")
    assert "is not an address of a PACS" in search(dialog, qtbot)
    dialog.reject()


def test_no_connection_is_opened_before_search_is_pressed(window, qtbot, monkeypatch):
    calls = []
    monkeypatch.setattr(
        "raterscope.app.formats.remote.archives.connect", lambda *service: calls.append(service)
    )
    dialog = ask(window, qtbot, "http://127.0.0.1:9/dicom-web")
    idle(window, qtbot)
    assert "press Search" in dialog.message.text()
    dialog.reject()
    assert not calls


def test_series_are_fetched_over_dimse(node, series, window, qtbot, tmp_path):  # noqa: F811
    pytest.importorskip("pynetdicom")
    archives.store_files(archives.connect(node), series().files)
    dialog = ask(window, qtbot, node.replace("ARCHIVE", "OTHER"))
    assert "is not called OTHER" in search(dialog, qtbot)
    assert "AE title" in dialog.form.access.text()
    dialog.form.address.setText(node)
    assert "1 series" in search(dialog, qtbot, "PID-*")
    dialog.folder.text = str(tmp_path / "pacs")
    dialog.accept()
    qtbot.waitUntil(lambda: window.document.contents is not None, timeout=LONG)
    idle(window, qtbot)
    assert window.document.contents.path.name == "CT-PID-4711.rscope"
    dialog = ask(window, qtbot, node)
    assert dialog.folder.text == str(tmp_path / "pacs")  # one folder, not one in the other
    dialog.reject()
