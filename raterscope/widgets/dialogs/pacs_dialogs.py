"""Dialogs of a PACS: search for series, and storage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QAbstractItemView, QFormLayout, QLineEdit, QPushButton, QWidget

from raterscope.widgets.forms import FolderField, FormDialog
from raterscope.widgets.layouts import horizontal, scroll_area
from raterscope.widgets.parts import ChoiceBox, plain_label
from raterscope.widgets.tables.rows import TextTable
from raterscope.widgets.theme import set_role

COLUMNS = {
    "Patient": "Patient's ID",
    "Date": "Day of the study",
    "Modality": "CT, MR, SEG, RTSTRUCT...",
    "Description": "Description of the series",
    "Instances": "Number of slices or objects",
}
_FILTERS = {
    "PatientID": ("Patient ID", "* matches anything"),
    "StudyDate": ("Date", "20260131, or a range: 20260101-20260131"),
    "Modality": ("Modality", "CT, MR, SEG, RTSTRUCT..."),
}
_ABOUT_FETCH = (
    "Series are searched over DICOMweb (https://) or DIMSE (dicom://), copied into the folder, and imported. "
    "Nothing is sent before you press Search."
)
_ABOUT_STORE = (
    "The consensus is stored with its patient and study. It names the raters' run and your decisions."
)
_DIMSE_ACCESS = (
    "The PACS must know the AE title RATERSCOPE. For another title, add ?calling=AET to the address."
)


class ServiceForm(QFormLayout):
    """Fields for the address and the trusted certificates of a service; `access` explains how to log in."""

    def __init__(self, address: str, certificates: str, access: str) -> None:
        super().__init__()
        self.address = self.add_line("Address", address, "https://host/dicom-web, or dicom://AET@host:port")
        self.certificates = self.add_line(
            "Certificates", certificates, "PEM file of the hospital's own authority; usually empty"
        )
        self._access = access
        self.access = plain_label("", "second", wrap=True)
        self.addRow("Access", self.access)
        self.address.textChanged.connect(self._follow)
        self._follow()

    def _follow(self) -> None:
        """Show how the service of this address is accessed."""
        is_dimse = self.service[0].startswith("dicom")
        self.access.setText(_DIMSE_ACCESS if is_dimse else self._access)

    def add_line(self, name: str, text: str, hint: str) -> QLineEdit:
        """Add a line for a text."""
        line = QLineEdit(text, placeholderText=hint)
        line.setAccessibleName(name)
        self.addRow(name, line)
        return line

    @property
    def service(self) -> tuple[str, str]:
        """Address and certificates."""
        return self.address.text().strip(), self.certificates.text().strip()


NOT_SEARCHED = "Enter the address, then press Search to list series."


class PacsFetchDialog(FormDialog):
    """Dialog to search and choose series; open it with ``open()`` and read `chosen` when accepted.

    `address`, `certificates`: those of the latest service.
    `access`: explanation of how to log in.
    `folder`: proposed folder for the files.
    """

    search_requested = Signal(object)  # values by DICOM keyword

    def __init__(
        self, address: str, certificates: str, access: str, folder: str, parent: QWidget | None = None
    ) -> None:
        super().__init__("Fetch from PACS", parent, width=600)
        self.form = ServiceForm(address, certificates, access)
        self.filters = {
            keyword: self.form.add_line(name, "", hint) for keyword, (name, hint) in _FILTERS.items()
        }
        self.search = QPushButton("Search")
        self.search.clicked.connect(self._search)
        self.message = plain_label(NOT_SEARCHED, "second", wrap=True, selectable=True)
        self.table = TextTable(COLUMNS, "Series")
        self._model = self.table.records
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.table.setMinimumHeight(140)  # for any text size, because a small screen has no more space
        page = QWidget()
        page.setLayout(self.form)
        room = scroll_area(page)
        room.setMinimumHeight(220)
        self.folder = FolderField("Folder for the files")
        self.folder.text = folder
        searching = horizontal((self.message, 1), self.search, spacing=8)
        self.lay_out(
            "Fetch from PACS", _ABOUT_FETCH, room, searching, (self.table, 1),
            {"Folder": self.folder}, 8, accept="Fetch and import",
        )  # fmt: skip
        self.search.setDefault(True)
        self.table.selectionModel().selectionChanged.connect(self._follow)
        self.folder.changed.connect(self._follow)
        self.form.address.textChanged.connect(self._follow)
        self._follow()

    @property
    def chosen(self) -> list[Any]:
        """The selected series; all if none is selected."""
        rows = sorted({index.row() for index in self.table.selectionModel().selectedRows()})
        return [self._model.at(row) for row in rows or range(self._model.rowCount())]

    def show_series(self, series: Sequence[Any]) -> None:
        """List series: records with the fields of `COLUMNS`."""
        self._model.set_rows(tuple(series))
        many = "1 series" if len(series) == 1 else f"{len(series):,} series"
        text = f"{many}. Select some, or fetch all." if series else "No series match. Change the search."
        self._show(text)

    def show_problem(self, sentence: str) -> None:
        """Show why a search failed."""
        self._model.set_rows(())
        self._show(sentence, "disputed")

    def _search(self) -> None:
        self._model.set_rows(())
        self._show("Searching...")
        self.search.setEnabled(False)
        values: Mapping[str, str] = {
            keyword: text for keyword, line in self.filters.items() if (text := line.text().strip())
        }
        self.search_requested.emit(dict(values))

    def _show(self, text: str, role: str = "") -> None:
        set_role(self.message, role)
        self.message.setText(text)
        self._follow()

    def _follow(self) -> None:
        self.search.setEnabled(bool(self.form.service[0]))
        self.accepting.setEnabled(self._model.rowCount() > 0 and bool(self.folder.text))


class PacsStoreDialog(FormDialog):
    """Dialog to confirm storing a consensus; open it with ``open()`` and read `form.service` when accepted.

    `title`: case and run. `warnings`: reasons why the result is outdated.
    `formats`: names of the formats to choose from, by key.
    """

    def __init__(
        self, title: str, warnings: Sequence[str], formats: Mapping[str, str], address: str,
        certificates: str, access: str, parent: QWidget | None = None,
    ) -> None:  # fmt: skip
        super().__init__("Store the consensus in PACS", parent, width=600)
        self.form = ServiceForm(address, certificates, access)
        self.format = ChoiceBox("", formats)
        self.form.addRow("Store as", self.format)
        warning = plain_label("\n".join(warnings), "disputed", wrap=True)
        warning.setVisible(bool(warnings))
        accept = "Store anyway" if warnings else "Store"
        self.lay_out(title, _ABOUT_STORE, warning, self.form, 8, accept=accept)
        self.form.address.textChanged.connect(self._follow)
        self._follow()

    def _follow(self) -> None:
        self.accepting.setEnabled(bool(self.form.service[0]))
