"""Start page with recent studies, samples and formats; simulated data and reproduced papers."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QPointF, QRectF, QSize, QStandardPaths, Qt, QUrl, Signal
from PySide6.QtGui import QColor, QDesktopServices, QPainter, QPen, QShowEvent
from PySide6.QtWidgets import QGridLayout, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from raterscope.algorithms.progress import Watch, part
from raterscope.app.jobs import Job, Jobs
from raterscope.app.kinds.registry import KINDS
from raterscope.app.session import LatestTask
from raterscope.app.simulation.setups import SETUPS
from raterscope.app.window import preferences
from raterscope.app.window.files import FileActions, RecentStudies
from raterscope.widgets import theme
from raterscope.widgets.layouts import STRETCH, horizontal, scroll_area, vertical
from raterscope.widgets.parts import PaintedButton, plain_label, plain_tip
from raterscope.widgets.theme import enlarge, pixels, set_lengths

if TYPE_CHECKING:
    from raterscope.algorithms.settings import Settings
    from raterscope.app.simulation.setups import Setup
    from raterscope.widgets.dialogs.output_dialogs import PapersDialog, SimulationDialog


@dataclass(frozen=True, slots=True)
class RecentStudy:
    """A recent study."""

    key: Hashable
    title: str
    detail: str
    share: float | None  # share decided; None if unknown
    when: str  # day when it was last open
    tip: str = ""


@dataclass(frozen=True, slots=True)
class SampleOffer:
    """A sample study: kind of annotation, title and contents."""

    kind: str
    title: str
    detail: str


SAMPLES = (
    SampleOffer("clicks", "Smears and clicks", "12 smears, a crowd, the truth"),
    SampleOffer("masks", "CT and contours", "A volume and several raters"),
    SampleOffer("labels", "Labels of cells", "Cells and a crowd's classes"),
    SampleOffer("pairs", "Paired comparisons", "Items compared two by two"),
)

SIMULATED = ("texts", "grades", "judges")
"""Set-ups of simulations that are samples too, listed only in the menu."""

FORMATS = (
    ("Images", "PNG, JPEG, TIFF, OME-TIFF, BMP, GIF, whole slides"),
    ("Volumes", "DICOM folders, NIfTI, NRRD, MetaImage, OME-Zarr"),
    ("Clicks", "CSV, XLSX, Parquet, JSON lines, Zooniverse, QuPath, COCO, CVAT, Label Studio, labelme, "
               "napari, ImageJ"),
    ("Masks", "label maps, DICOM SEG, RTSTRUCT, .seg.nrrd, LIDC, COCO, CVAT, Label Studio, labelme, GeoJSON"),
    ("Labels", "CSV, XLSX, Parquet, JSON lines, a column per annotator or question, Zooniverse, "
               "Label Studio, Prodigy, Argilla, doccano, Mechanical Turk, Toloka, Appen"),
    ("Pairs", "CSV or XLSX with annotator, left, right, choice; or model_a, model_b, winner"),
)  # fmt: skip

SHOWN = 5

WIDTH = 1180
_FIRST_STEP = "Drop images and annotations anywhere in this window, or open a study."
_CARD, _PICTURE, _EDGE = 56, 56, 12
_ROOM = 360
"""Minimum width of a card to show the progress beside its text."""


class StartScreen(QObject):
    """Start page with its contents, and the actions that it offers."""

    begun = Signal(object)  # the job of making a sample, shown in the window with Cancel
    refused = Signal(str)  # why a sample could not be made

    def __init__(self, files: FileActions, recent: RecentStudies, jobs: Jobs, parent: QObject) -> None:
        super().__init__(parent)
        self._files, self._recent, self._jobs = files, recent, jobs
        self._listed: list[RecentStudy] = []
        self._making: tuple[str, Job] | None = None
        self._task = LatestTask()
        self.page = StartPage(
            (
                ("Import files…", files.choose_files, "Images and annotations"),
                (
                    "Import folder or DICOM…",
                    files.choose_folder,
                    "All images, volumes, masks and tables of a folder",
                ),
                ("Open study…", files.choose_study, "A study file that exists"),
            ),
            SAMPLES,
            FORMATS,
        )
        self.page.recent_chosen.connect(self._files.open_study)
        self.page.sample_chosen.connect(self.open_sample)
        recent.changed.connect(self.refresh)
        for occasion in (self.page.shown, self.page.recent_chosen):
            occasion.connect(lambda *_: recent.check())

    def refresh(self) -> None:
        """List the recent studies again."""
        noted = preferences.work_left()
        studies, shown = [], self._recent.offered[:SHOWN]
        count = Counter(path.name for path in shown)
        for path in shown:
            share, words, day = noted.get(str(path), (None, "", ""))
            detail = words or str(path.parent)
            name = path.name if count[path.name] == 1 else f"{path.parent.name}/{path.name}"
            studies.append(RecentStudy(path, name, detail, share, describe_day(day), str(path)))
        if studies != self._listed:
            self._listed = studies
            self.page.set_recent(studies)

    def open_sample(self, name: str) -> Job:
        """Make the sample of a kind or a set-up, unless it exists, and open it; the last choice counts."""
        if self._making is not None and self._making[0] == name:
            return self._making[1]
        work = partial(_make if name in KINDS else _simulate, name, samples_folder())
        job = self._jobs.start(f"Making the sample of {name}", work, costly=True)
        self._task.follow(job, self._on_made, failed=self.refused.emit, stopped=self._on_stopped)
        self._set_making((name, job))
        self.begun.emit(job)
        return job

    def cancel_sample(self) -> None:
        """Stop making a sample, because a study was opened meanwhile."""
        self._task.cancel()
        self._set_making(None)

    def _on_made(self, study: Path) -> None:
        self._set_making(None)
        self._files.open_study(study)

    def _on_stopped(self) -> None:
        self._set_making(None)

    def _set_making(self, making: tuple[str, Job] | None) -> None:
        self._making = making
        self.page.show_making("" if making is None else making[0])


def samples_folder() -> Path:
    """Return the folder of the samples, in the user's documents."""
    documents = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
    return Path(documents or Path.home()) / "Raterscope samples"


def _make(kind: str, folder: Path, watch: Watch) -> Path:
    from raterscope.app.importing import import_files
    from raterscope.app.report import write_report
    from raterscope.app.sample_files import Tools

    load_sample = KINDS[kind].load_sample
    assert load_sample is not None
    results = folder / "results"
    results.mkdir(parents=True, exist_ok=True)
    made = load_sample().demonstrate(folder, results, Tools(import_files, write_report), watch)
    return made.study


def _simulate(name: str, folder: Path, watch: Watch) -> Path:
    setup = SETUPS[name]
    folders = (folder / (name if number == 1 else f"{name}-{number}") for number in itertools.count(1))
    # A folder without the study belongs to a cancelled simulation: its files stay.
    chosen = next(each for each in folders if (each / f"{name}.rscope").exists() or not each.exists())
    study = chosen / f"{name}.rscope"
    return study if study.exists() else _simulate_study(setup, setup.settings(), chosen, watch)


def describe_day(text: str, today: date | None = None) -> str:
    """Describe a day, an ISO date: "today", "yesterday", "Monday", "12 Nov"; empty for any other text.

    Examples
    --------
    >>> [describe_day(day, date(2026, 11, 27)) for day in ("2026-11-26", "2026-11-23", "2026-11-12")]
    ['yesterday', 'Monday', '12 Nov']
    """
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return ""
    days = ((today or datetime.now().astimezone().date()) - day).days
    if days in (0, 1):
        return ("today", "yesterday")[days]
    return f"{day:%A}" if 0 < days < 7 else f"{day.day} {day:%b}" if 0 < days < 300 else f"{day:%b %Y}"


class Reproduction(QObject):
    """Simulation of data and reproduction of papers: a dialog for the choice, and a thread for the work."""

    begun = Signal(object)  # the job of a simulation, shown in every workspace with Cancel
    # message, refused: the outcome, and errors
    message = Signal(str)
    refused = Signal(str)

    def __init__(self, files: FileActions, jobs: Jobs, window: QWidget) -> None:
        super().__init__(window)
        self._files = files
        self._jobs = jobs
        self._window = window

    def ask_simulation(self) -> None:
        """Ask for a simulation's set-up, its parameters and a folder."""
        from raterscope.widgets.dialogs.output_dialogs import SetupOffer, SimulationDialog

        offers = [
            SetupOffer(setup.name, setup.title, setup.summary, setup.settings) for setup in SETUPS.values()
        ]
        dialog = SimulationDialog(offers, self._start_folder(), self._window)
        dialog.accepted.connect(partial(self._simulate, dialog))
        dialog.open()

    def _simulate(self, dialog: SimulationDialog) -> None:
        setup = SETUPS[dialog.name]
        folder = Path(dialog.folder).expanduser()
        work = partial(_simulate_study, setup, dialog.settings, folder)
        job = self._jobs.start(f"Simulating {setup.title.lower()}", work, costly=True)
        job.finished.connect(self._on_simulated)
        job.failed.connect(self.refused)
        self.begun.emit(job)

    def _on_simulated(self, study: Path) -> None:
        self._files.open_study(study)
        self.message.emit(f"Simulated data saved to {study.parent}.")

    def ask_papers(self) -> None:
        """Ask how to reproduce the papers, and for the folder of the page."""
        from raterscope.widgets.dialogs.output_dialogs import PapersDialog

        dialog = PapersDialog(f"{self._start_folder()}/papers", self._window)
        dialog.accepted.connect(partial(self._measure, dialog))
        dialog.open()

    def _measure(self, dialog: PapersDialog) -> None:
        data = Path(dialog.data).expanduser() if dialog.data else None
        work = partial(_measured, Path(dialog.folder).expanduser(), data, dialog.full)
        job = self._jobs.start("Reproducing the papers", work, costly=True)
        job.finished.connect(self._on_measured)
        job.failed.connect(self.refused)
        self.message.emit("Reproducing the papers. The Jobs tab shows progress and can cancel it.")

    def _on_measured(self, page: Path) -> None:
        self.message.emit(f"Saved the page of the papers to {page}.")
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(page)))

    def _start_folder(self) -> str:
        return self._files.folder() or str(Path.home())


def _measured(folder: Path, data: Path | None, full: bool, watch: Watch) -> Path:
    from raterscope.app.papers.page import make_page

    return make_page(folder, watch, data=data, full=full)


def _simulate_study(setup: Setup, settings: Settings, folder: Path, watch: Watch) -> Path:
    """Simulate into a new folder, and import the data with their truth; return the study's path."""
    from raterscope.app.simulation.simulate import simulate, study_in

    drawn = simulate(setup, settings, folder, part(watch, 0.0, 0.8))
    return study_in(setup, drawn, part(watch, 0.8, 1.0))


class StartPage(QWidget):
    """First steps, while no study is open.

    `recent_chosen(object)`, `sample_chosen(str)`, `tour_requested`: key of a recent study, kind of a sample.
    """

    recent_chosen = Signal(object)
    shown = Signal()
    sample_chosen = Signal(str)
    tour_requested = Signal()

    def __init__(
        self,
        actions: Sequence[tuple[str, Callable[[], object], str]],
        samples: Sequence[SampleOffer],
        formats: Sequence[tuple[str, str]],
    ) -> None:
        super().__init__()
        self.setAccessibleName("Start page")
        self.buttons: list[QPushButton] = []
        for words, slot, tip in actions:
            button = QPushButton(words, autoDefault=True)  # Return presses it, as in a dialog
            button.setToolTip(plain_tip(tip))
            button.clicked.connect(slot)
            self.buttons.append(button)
        theme.set_role(self.buttons[0], "primary")
        self.setFocusProxy(self.buttons[0])
        self.cards: list[_Card] = []
        self.samples = [_Card(offer.title, offer.detail, picture=offer.kind) for offer in samples]
        self._offers = tuple(samples)
        for card, offer in zip(self.samples, samples, strict=True):
            card.clicked.connect(lambda _=False, kind=offer.kind: self.sample_chosen.emit(kind))
        self._recent = QVBoxLayout()
        self._recent.setSpacing(8)
        self._no_studies = plain_label("Studies that you open are listed here.", "second", wrap=True)
        self.tour = QPushButton("Start the one-minute tour")
        theme.set_role(self.tour, "link")
        self.tour.clicked.connect(self.tour_requested)
        grid = QGridLayout()
        grid.setSpacing(12)
        for at, card in enumerate(self.samples):
            grid.addWidget(card, at // 2, at % 2)
        known = QGridLayout()
        known.setHorizontalSpacing(16)
        known.setVerticalSpacing(4)
        known.setColumnStretch(1, 1)
        top = Qt.AlignmentFlag.AlignTop
        for row, (name, words) in enumerate(formats):
            known.addWidget(plain_label(name), row, 0, top)
            known.addWidget(plain_label(words, "second", wrap=True), row, 1)
        left, right = QVBoxLayout(), QVBoxLayout()
        for region in (
            _caption("Recent"),
            self._no_studies,
            self._recent,
            _caption("What can be dropped"),
            known,
        ):
            _add(left, region)
        for region in (_caption("Try a sample"), grid, self.tour):
            _add(right, region)
        for column in (left, right):
            column.setSpacing(8)
            column.addStretch(1)
        page, block = QWidget(), QWidget()
        area = scroll_area(page)
        set_lengths(block, maximumWidth=WIDTH)
        vertical(
            plain_label("Review your annotators' work", "title"),
            plain_label(_FIRST_STEP, "second", wrap=True),
            4,
            horizontal(*self.buttons, STRETCH, spacing=8),
            12,
            horizontal((left, 5), (right, 4), spacing=40),
            STRETCH,
            inside=block,
            margins=(32, 32, 32, 24),
            spacing=8,
        )  # fmt: skip
        horizontal(STRETCH, (block, 1000), STRETCH, inside=page)
        vertical((area, 1), inside=self)

    def show_making(self, kind: str) -> None:
        """Show on a card that the sample of this kind is being made; empty for none."""
        for card, offer in zip(self.samples, self._offers, strict=True):
            card.set_detail("Being made; it opens when ready" if offer.kind == kind else offer.detail)

    def showEvent(self, event: QShowEvent) -> None:
        """Report that the recent studies are on screen."""
        super().showEvent(event)
        self.shown.emit()

    def set_recent(self, studies: Sequence[RecentStudy]) -> None:
        """Show the recent studies, the latest first."""
        for card in self.cards:
            card.deleteLater()
            card.hide()
        self.cards = []
        for study in studies:
            card = _Card(study.title, study.detail, share=study.share, when=study.when)
            card.setToolTip(plain_tip(study.tip))
            card.clicked.connect(lambda _=False, key=study.key: self.recent_chosen.emit(key))
            self._recent.addWidget(card)
            self.cards.append(card)
        self._no_studies.setVisible(not studies)


def _add(column: QVBoxLayout, part: QWidget | QVBoxLayout | QGridLayout) -> None:
    if isinstance(part, QWidget):
        column.addWidget(part)
    else:
        column.addLayout(part)


def _caption(text: str) -> QWidget:
    label = plain_label(text.upper(), "caption")
    label.setContentsMargins(0, pixels(12), 0, 0)
    return label


class _Card(PaintedButton):
    """Button with a title and a line of text, and a progress bar or a small picture."""

    def __init__(
        self, title: str, detail: str, *, share: float | None = None, when: str = "", picture: str = ""
    ) -> None:
        super().__init__()
        self._title, self._detail, self._share, self._when = title, detail, share, when
        self._picture = picture
        self.setText(title)
        self.setToolTip(plain_tip(f"{title}: {detail}" if detail else title))
        self.setAccessibleName(f"{title}, {detail}" if detail else title)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setMinimumHeight(self.sizeHint().height())
        self.setMinimumWidth(pixels(110))
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def set_detail(self, detail: str) -> None:
        """Set the line below the title."""
        if detail != self._detail:
            self._detail = detail
            self.setAccessibleName(f"{self._title}, {detail}")
            self.update()

    def sizeHint(self) -> QSize:
        """Return the size of a card; its width follows the column."""
        return QSize(pixels(200), pixels(_CARD + (_PICTURE if self._picture else 0)))

    def _paint(self, painter: QPainter) -> None:
        palette, box = theme.current(), enlarge(painter, self.rect())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        lit = self.hasFocus() or self.underMouse()
        painter.setPen(QPen(QColor(palette.accent if lit else palette.line), 1))
        painter.setBrush(QColor(palette.surface))
        painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 5, 5)
        words = box.adjusted(_EDGE, 8, -_EDGE, -8)
        if self._picture:
            picture = QRectF(words.left(), words.top(), words.width(), _PICTURE - 4)
            paint_sample(painter, picture, self._picture)
            words.setTop(words.top() + _PICTURE)
        if (self._share is not None or self._when) and words.width() > _ROOM:
            right = 190.0 if self._share is not None else 90.0
            self._paint_progress(painter, QRectF(words.right() - right, words.top(), right, words.height()))
            words.setRight(words.right() - right - 8)
        for text, size, colour, line in (
            (self._title, theme.BODY, palette.text, QRectF(words.left(), words.top(), words.width(), 20)),
            (
                self._detail,
                theme.CAPTION,
                palette.second,
                QRectF(words.left(), words.top() + 20, words.width(), 18),
            ),
        ):
            painter.setFont(theme.font(size))
            painter.setPen(QColor(colour))
            short = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, int(line.width()))
            painter.drawText(line, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, short)

    def _paint_progress(self, painter: QPainter, box: QRectF) -> None:
        palette = theme.current()
        painter.setFont(theme.font(theme.CAPTION))
        painter.setPen(QColor(palette.second))
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, self._when)
        if self._share is None:
            return
        bar = QRectF(box.left(), box.center().y() - 2, 96, 4)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(palette.line))
        painter.drawRoundedRect(bar, 2, 2)
        painter.setBrush(QColor(palette.accent))
        painter.drawRoundedRect(QRectF(bar.left(), bar.top(), bar.width() * self._share, 4), 2, 2)


def paint_sample(painter: QPainter, box: QRectF, kind: str) -> None:
    """Paint a small picture of a kind of annotation."""
    palette = theme.DARK
    painter.save()
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(palette.canvas))
    painter.drawRoundedRect(box, 4, 4)
    painter.setClipRect(box)
    accent, doubt = QColor(palette.accent), QColor(palette.disputed)
    centre, height = box.center(), box.height()
    if kind == "clicks":
        for at in range(5):
            spot = QPointF(
                box.left() + box.width() * (0.15 + 0.17 * at), centre.y() + 10 * math.sin(2.3 * at)
            )
            painter.setBrush(doubt if at == 3 else accent)
            for click in range(5):
                angle = 2.4 * click + at
                offset = QPointF(5 * math.cos(angle), 4 * math.sin(angle))
                painter.drawEllipse(spot + offset, 2, 2)
    elif kind == "masks":
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for at in range(4):
            painter.setPen(QPen(doubt if at == 3 else accent, 1.2))
            painter.drawEllipse(centre + QPointF(2.0 * at - 3, 1.2 * at - 2), 34 + 3 * at, height / 3 + at)
    elif kind == "labels":
        side = (height - 12) / 3
        for row in range(3):
            for column in range(3):
                shade = QColor(accent)
                shade.setAlphaF(0.9 if row == column else 0.15 + 0.1 * column)
                painter.setBrush(shade)
                corner = QPointF(centre.x() + (column - 1.5) * (side + 2), box.top() + 5 + row * (side + 2))
                painter.drawRect(QRectF(corner.x(), corner.y(), side, side))
    else:
        for at, length in enumerate((0.8, 0.62, 0.45, 0.2)):
            painter.setBrush(doubt if at == 3 else accent)
            top = box.top() + 8 + at * (height - 12) / 4
            painter.drawRect(QRectF(box.left() + 12, top, (box.width() - 24) * length, 5))
    painter.restore()
