"""Transfer from and to a PACS. Only its dialogs open a connection, outside the GUI thread."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from raterscope.algorithms.progress import Watch, part
from raterscope.app.document import Document
from raterscope.app.exports import Provenance, Request, provenance, write_export
from raterscope.app.jobs import Job, Jobs
from raterscope.app.kinds.registry import find_export
from raterscope.app.window import preferences

if TYPE_CHECKING:
    from raterscope.app.formats.remote.protocols import Archive, Series
    from raterscope.app.study import Study
    from raterscope.widgets.dialogs.pacs_dialogs import PacsFetchDialog, PacsStoreDialog


_FORMATS = {
    "dicom-seg": "Segmentation (SEG)",
    "rtstruct": "Contours (RTSTRUCT)",
    "dicom-sr": "Report of volume and agreement (SR), with the segmentation (SEG)",
}

_KEYS = ("pacs_address", "pacs_certificates")
"""Keys under which the preferences store the latest service."""


class PacsTransfer(QObject):
    """Dialogs to fetch series from a PACS, or to store them there.

    `case`: returns the number of the case of masks on screen; None for none.
    """

    message = Signal(str)
    refused = Signal(str)
    begun = Signal(object)  # a transfer to show with Cancel
    fetched = Signal(object)  # folders to import

    def __init__(
        self, document: Document, jobs: Jobs, case: Callable[[], int | None], window: QWidget
    ) -> None:
        super().__init__(window)
        self._document, self._jobs, self._case, self._window = document, jobs, case, window
        self._searching: Job | None = None

    def ask_fetch(self, folder: str) -> None:
        """Ask for series, fetch them, and import them."""
        from raterscope.widgets.dialogs.pacs_dialogs import PacsFetchDialog

        start = Path(folder or Path.home())
        target = start if start.name == "pacs" else start / "pacs"
        dialog = PacsFetchDialog(*_latest_service(), _access(), str(target), self._window)
        dialog.search_requested.connect(partial(self._search, dialog))
        dialog.accepted.connect(partial(self._fetch, dialog))
        dialog.open()

    def _search(self, dialog: PacsFetchDialog, filters: Mapping[str, str]) -> None:
        if self._searching is not None:
            self._searching.cancel()
        service = dialog.form.service
        job = self._jobs.start("Searching the PACS", partial(_search, service, filters), quiet=True)
        self._searching = job
        job.finished.connect(dialog.show_series)
        job.finished.connect(lambda _: _remember_service(service))
        job.failed.connect(dialog.show_problem)
        dialog.finished.connect(job.cancel)

    def _fetch(self, dialog: PacsFetchDialog) -> None:
        folder = Path(dialog.folder.text).expanduser()
        work = partial(_fetch, dialog.form.service, dialog.chosen, folder)
        job = self._jobs.start("Fetching from the PACS", work, costly=True)
        job.failed.connect(self.refused)
        self._follow(job, self._on_fetched)

    def _on_fetched(self, folders: Sequence[Path]) -> None:
        self.message.emit(f"{len(folders):,} series fetched.")
        self.fetched.emit(folders)

    def ask_store(self) -> None:
        """Ask for a service, and store the consensus of the case on screen there."""
        contents, case = self._document.contents, self._case()
        image = None if contents is None or case is None else contents.image(case)
        if contents is None or image is None:
            self.refused.emit("Open a case of masks first: the consensus of the case on screen is stored.")
            return
        if not image.identifier:
            self.refused.emit(
                f"{image.name} is no DICOM series: its consensus has no patient and study in a PACS. "
                "Export it to a file instead."
            )
            return
        export = find_export("consensus", ["masks"])
        request = Request(export.what, "dicom-seg", contents.path, (image.id,))
        job = self._document.ask("Reading runs", lambda study, _: provenance(export, study, request))
        job.finished.connect(partial(self._confirm_store, request, image.name))

    def _confirm_store(self, request: Request, name: str, origin: Provenance) -> None:
        from raterscope.widgets.dialogs.pacs_dialogs import PacsStoreDialog

        contents = self._document.contents
        if contents is None or contents.path != request.path:
            return
        if not origin.runs:
            self.refused.emit(f"{name} has no consensus yet. Press Fuse (F5).")
            return
        title = f"Store the consensus of {name}: {origin.in_words()}"
        dialog = PacsStoreDialog(
            title, origin.outdated, _FORMATS, *_latest_service(), _access(), self._window
        )
        dialog.accepted.connect(partial(self._store, request, dialog))
        dialog.open()

    def _store(self, request: Request, dialog: PacsStoreDialog) -> None:
        service = dialog.form.service
        request = replace(request, format=dialog.format.key)
        job = self._document.read_beside("Storing in the PACS", partial(_store, service, request))
        job.finished.connect(lambda _: _remember_service(service))
        self._follow(job, self.message.emit)

    def _follow(self, job: Job, on_finished: Callable[[Any], None]) -> None:
        job.finished.connect(on_finished)
        job.ended.connect(partial(self._on_ended, job))
        self.begun.emit(job)

    def _on_ended(self, job: Job) -> None:
        if job.state == "cancelled":
            self.message.emit(f"{job.title} was cancelled.")


def _access() -> str:
    from raterscope.app.formats.remote.protocols import AUTHORIZATION

    if AUTHORIZATION in os.environ:
        return f"The header in {AUTHORIZATION} is sent."
    return f"Without a password or token. To send one, start with {AUTHORIZATION} set."


def _latest_service() -> tuple[str, str]:
    address, certificates = map(preferences.recall_text, _KEYS)
    return address, certificates


def _remember_service(service: tuple[str, str]) -> None:
    preferences.remember_all(dict(zip(_KEYS, service, strict=True)))


def _archive(service: tuple[str, str]) -> Archive:
    from raterscope.app.formats.remote.archives import connect

    address, certificates = service
    return connect(address, Path(certificates).expanduser() if certificates else None)


def _search(service: tuple[str, str], filters: Mapping[str, str], watch: Watch) -> list[Series]:
    from raterscope.app.formats.remote.archives import find_series

    return find_series(_archive(service), filters, watch)


def _fetch(service: tuple[str, str], series: Sequence[Series], folder: Path, watch: Watch) -> list[Path]:
    from raterscope.app.formats.remote.archives import fetch_all

    return list(fetch_all(_archive(service), series, folder, watch))


def _store(service: tuple[str, str], request: Request, study: Study, watch: Watch) -> str:
    from raterscope.app.formats.remote.archives import store_files

    archive = _archive(service)
    with TemporaryDirectory() as folder:
        filled = replace(request, path=Path(folder) / "consensus.dcm")
        export = find_export(request.what, ["masks"])
        written = write_export(export, study, filled, part(watch, 0.0, 0.5))
        files = [file for file in written.files if file.suffix == ".dcm"]
        store_files(archive, files, part(watch, 0.5, 1.0))
    return f"Stored the consensus in the PACS: {_FORMATS[request.format]}."
