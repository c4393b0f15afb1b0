"""Dialogs for output: de-identified export, simulation, and reproduction of the papers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialogButtonBox,
    QFrame,
    QRadioButton,
    QScrollArea,
    QWidget,
)

from raterscope.algorithms.settings import Settings
from raterscope.widgets.forms import FolderField, FormDialog
from raterscope.widgets.layouts import vertical
from raterscope.widgets.panels.settings_form import SettingsForm
from raterscope.widgets.parts import ChoiceBox, plain_label
from raterscope.widgets.tables.rows import TextTable

_ABOUT_EXPORT = (
    "Names, numbers, dates, institutions and descriptions are removed. UIDs, cases and raters get other "
    "names, the same in every export of this study. Pixels stay as they are: text that is burned into them "
    "stays too."
)
_IMAGES = "Export the images too, so that other programs can show the masks on them"


class DeidentifiedExportDialog(FormDialog):
    """Dialog for format and images; open it with ``open()``, read `format` and `with_images` when accepted.

    `title`: name of the export. `formats`: descriptions, the default first. `images`: whether images can be
    exported.
    """

    def __init__(
        self, title: str, formats: Sequence[str], images: bool, parent: QWidget | None = None
    ) -> None:
        super().__init__(f"Export {title.lower()}, de-identified", parent, width=440)
        self.formats = QComboBox()
        self.formats.addItems(list(formats))
        self.images = QCheckBox(_IMAGES)
        self.images.setVisible(images)
        fields = {"Format": self.formats}
        self.lay_out(self.windowTitle(), _ABOUT_EXPORT, fields, self.images, 8, accept="Choose file…")

    @property
    def format(self) -> str:
        """Description of the selected format."""
        return self.formats.currentText()

    @property
    def with_images(self) -> bool:
        """True if images are exported too."""
        return not self.images.isHidden() and self.images.isChecked()


class ReportDialog(FormDialog):
    """Dialog for the slow sections of a report; open it with ``open()``, read `cost` when accepted."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__("Report", parent, width=440)
        self._cost = QCheckBox("Cost of labels")
        about = (
            "Accuracy against votes per task, the gain of more votes, and the votes saved by stopping early. "
            "Each question is fused some hundred times."
        )
        self.lay_out(title, "", self._cost, plain_label(about, "second", wrap=True), 8, accept="Choose file…")

    @property
    def cost(self) -> bool:
        """True if the cost of labels is reported."""
        return self._cost.isChecked()


ALONE, FOLDERS, TABLE, STORED = range(4)
"""Choices of `GroupsDialog` and `GroupedExportDialog`."""

TABLES_OF_GROUPS = "Tables (*.csv *.tsv *.txt *.parquet *.xlsx *.xls *.ods)"


class GroupsDialog(FormDialog):
    """Dialog for the groups of images; open it with ``open()`` and read `groups` when accepted."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Group images", parent, width=480)
        self.grouping = QComboBox()
        self.grouping.addItem("A table with the columns image and patient, slide or site…", TABLE)
        self.grouping.addItem("The folders of the images", FOLDERS)
        self.grouping.addItem("No groups", ALONE)
        about = "The queue can then be filtered by patient, slide or site, and shows the counts of each."
        self.lay_out("Group images", about, {"Groups": self.grouping}, 8, accept="Group")

    @property
    def groups(self) -> int:
        """`ALONE`, `FOLDERS` or `TABLE`."""
        return int(self.grouping.currentData())


class GroupedExportDialog(FormDialog):
    """Dialog for format and groups; open it with ``open()`` and read `format` and `groups` when accepted.

    `title`: name of the export. `about`: purpose of the groups, in a sentence. `formats`: descriptions, the
    default first. `item`: noun of the grouped items: image, case or task. `images`: whether the items are
    images, whose folders can be the groups. `stored`: whether the study has groups of the items, which are
    then the default.
    """

    def __init__(
        self,
        title: str,
        about: str,
        formats: Sequence[str],
        item: str,
        images: bool,
        parent: QWidget | None = None,
        *,
        stored: bool = False,
    ) -> None:
        super().__init__(f"Export {title.lower()}", parent, width=480)
        self.formats, self.grouping = QComboBox(), QComboBox()
        self.formats.addItems(list(formats))
        if stored:
            self.grouping.addItem("The groups of the study", STORED)
        self.grouping.addItem(f"No groups: each {item} by itself", ALONE)
        if images:
            self.grouping.addItem(f"The folders of the {item}s", FOLDERS)
        self.grouping.addItem(f"A table with the columns {'image' if images else item} and patient…", TABLE)
        fields = {"Format": self.formats, "Groups": self.grouping}
        if len(formats) == 1:
            del fields["Format"]
        self.lay_out(self.windowTitle(), about, fields, 8, accept="Continue…")

    @property
    def format(self) -> str:
        """Description of the selected format."""
        return self.formats.currentText()

    @property
    def groups(self) -> int:
        """`ALONE`, `FOLDERS`, `TABLE` or `STORED`."""
        return int(self.grouping.currentData())


_ABOUT_PAPERS = (
    "Reproduces the tables and figures of the papers again, from simulation and open data, and writes their "
    "figures beside ours to a web page. Results are kept in the folder: select it again to continue."
)


class PapersDialog(FormDialog):
    """Dialog for the form and the folders; open it with ``open()`` and read `full`, `folder` and `data` then.

    `folder`: initial folder.
    """

    def __init__(self, folder: str, parent: QWidget | None = None) -> None:
        super().__init__("Reproduce the papers", parent, width=560)
        self.quick = QRadioButton("Quick: a few runs of everything, in minutes")
        self.complete = QRadioButton("Full: as many runs as the papers, in hours")
        self.quick.setChecked(True)
        self.folder_field = FolderField("Folder of the page")
        self.open_data = FolderField("Folder of open data")
        self.folder_field.text = folder
        self.open_data.editor.setPlaceholderText("none: simulations only")
        self.folder_field.changed.connect(self._follow)
        fields = {"Folder": self.folder_field, "Open data": self.open_data}
        self.lay_out(
            "Reproduce the papers", _ABOUT_PAPERS, self.quick, self.complete, fields, 8, accept="Reproduce"
        )

    @property
    def full(self) -> bool:
        """True to use as many runs as the papers."""
        return self.complete.isChecked()

    @property
    def folder(self) -> str:
        """Folder of the web page."""
        return self.folder_field.text

    @property
    def data(self) -> str:
        """The folder of open data, empty for none."""
        return self.open_data.text

    def _follow(self) -> None:
        self.accepting.setEnabled(bool(self.folder))


_ABOUT_SIMULATION = (
    "Simulates annotations with ground truth and opens them as a study. Defaults of a paper's set-up are its "
    "parameters."
)


@dataclass(frozen=True)
class SetupOffer:
    """Set-up offered for simulation."""

    name: str
    title: str  # title in the list
    summary: str  # simulated data, and their source
    settings: type[Settings]


class SimulationDialog(FormDialog):
    """Dialog for a set-up; open it with ``open()`` and read `name`, `settings` and `folder` when accepted.

    `parent_folder`: parent folder of the proposed new folder.
    """

    def __init__(
        self, setups: Sequence[SetupOffer], parent_folder: str, parent: QWidget | None = None
    ) -> None:
        super().__init__("Simulate", parent, width=560)
        self._setups, self._place = list(setups), parent_folder.rstrip("/")
        self.setup = ChoiceBox("Set-up", {setup.name: setup.title for setup in self._setups})
        self._summary = plain_label("", "second", wrap=True)
        self.forms = [SettingsForm(setup.settings) for setup in self._setups]
        pages = QWidget()
        rows = vertical(inside=pages, margins=(0, 0, 8, 0), spacing=None)
        for form in self.forms:
            form.changed.connect(self._follow)
            rows.addWidget(form)
        rows.addStretch(1)
        room = QScrollArea(widgetResizable=True)
        room.setFrameShape(QFrame.Shape.NoFrame)
        room.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        room.setWidget(pages)
        room.setMinimumHeight(260)  # for any text size, because a small screen has no more space
        self.folder_field = FolderField("New folder", inside=True)
        self.folder_field.changed.connect(self._follow)
        self.lay_out(
            "Simulate", _ABOUT_SIMULATION, {"Set-up": self.setup}, self._summary, (room, 1),
            {"New folder": self.folder_field}, 8, accept="Simulate",
        )  # fmt: skip
        self._proposed = ""
        self.setup.currentIndexChanged.connect(self._show)
        self._show(0)

    @property
    def name(self) -> str:
        """Name of the selected set-up."""
        return self._setups[self.setup.currentIndex()].name

    @property
    def settings(self) -> Settings:
        """Settings of the selected set-up."""
        return self.forms[self.setup.currentIndex()].settings()

    @property
    def folder(self) -> str:
        """Folder of the simulated data."""
        return self.folder_field.text

    def _show(self, number: int) -> None:
        self.forms[number].build()
        for index, form in enumerate(self.forms):
            form.setVisible(index == number)
        self._summary.setText(self._setups[number].summary)
        if self.folder_field.text == self._proposed:  # a typed path stays
            self._proposed = f"{self._place}/simulated-{self._setups[number].name}"
            self.folder_field.text = self._proposed
        self._follow()

    def _follow(self) -> None:
        self.accepting.setEnabled(bool(self.folder) and not self.forms[self.setup.currentIndex()].error())


COLUMNS = {
    "Case": "Name of the case",
    "Kind": "Kind of annotation",
    "Status": "Bad input, temporary fault, internal error, not run or not readable",
    "Reason": "Why the case has no results",
}


@dataclass(frozen=True)
class FailedCase:
    """A case without results."""

    case: str
    kind: str
    status: str
    reason: str


class FailedCasesDialog(FormDialog):
    """Table of the cases without results; open it with ``open()``.

    `summary`: advice shown above the table.
    """

    def __init__(self, summary: str, cases: Sequence[FailedCase], parent: QWidget | None = None) -> None:
        super().__init__("Cases without results", parent, width=720, height=420)
        self.table = TextTable(COLUMNS, "Cases without results", cases)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        vertical(
            plain_label(summary, wrap=True),
            (self.table, 1),
            buttons,
            inside=self,
            margins=(16, 12, 16, 12),
            spacing=8,
        )
