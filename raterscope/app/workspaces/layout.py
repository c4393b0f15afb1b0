"""Layout of every workspace: queue, middle, evidence and bottom, with sizes, folding and keyboard focus."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QByteArray, QEvent, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QKeySequence, QResizeEvent, QShortcut, QShowEvent
from PySide6.QtWidgets import QAbstractItemView, QApplication, QSplitter, QTabWidget, QWidget

from raterscope.widgets import theme
from raterscope.widgets.hints import KeyHelp, WorkspaceNotes
from raterscope.widgets.layouts import ScrollRegion, TabPages, vertical
from raterscope.widgets.parts import without_checked
from raterscope.widgets.theme import text_size

if TYPE_CHECKING:
    from raterscope.app.document import Document
    from raterscope.app.jobs import Jobs
    from raterscope.app.study import RunEntry
    from raterscope.app.workspaces.screen import BlindMode

ActionEntry = tuple[str, str, Callable[[], object]]

TABS, SIDES = "tabs", "sides"
"""Keys under which visible tabs, and sizes of the sides with normal text, are stored."""
QUEUE_WIDTH, EVIDENCE_WIDTH, BOTTOM_HEIGHT = 236, 360, 212
QUEUE_SHARE, EVIDENCE_SHARE, BOTTOM_SHARE = 0.26, 0.6, 0.45
"""Maximum shares of the regions with larger text; the canvas keeps the rest."""
_USUAL = {
    (0, Qt.Orientation.Horizontal): QUEUE_WIDTH,
    (1, Qt.Orientation.Horizontal): EVIDENCE_WIDTH,
    (1, Qt.Orientation.Vertical): BOTTOM_HEIGHT,
}
"""Default size of a side that was never shown."""
NARROW, LOW = 880, 460
"""Width and height of the screen, with normal text, below which some sides are folded."""
MIN_CANVAS = 180
"""Minimum height of the canvas with large text, in pixels."""
BOTTOM_PART = 0.25
"""Share of the height for the bottom, unless the user moves its edge."""


class WorkspaceLayout(QWidget):
    """Queue on the left, canvas in the middle, evidence on the right, history and other parts below.

    It is empty until the steps of `build` are done.
    """

    status_changed = Signal(str)  # item and run on screen
    # message, refused: messages and errors
    message = Signal(str)
    refused = Signal(str)
    fusing_changed = Signal(object)  # the current fusion
    stale_changed = Signal(str)  # why to fuse again; empty without a reason
    escaped = Signal()  # Esc was pressed and there was no mode or panel to leave

    PARTS = ("whole", "middle", "upper", "bottom")
    FOLDED = ("whole", "middle")
    """Parts whose side is folded if large text leaves too little room: queue and bottom."""
    CRAMPED_BOTTOM: float | None = None
    """Share of the height for the first part of the bottom alone in that case; None to fold the bottom."""
    CANVAS_SCROLLS = False
    """Whether the middle shows figures, which may exceed it, instead of an image."""
    FUSES = False
    """Whether the workspace fuses annotations and has a Fuse panel, runs and a blind mode."""

    def __init__(self, document: Document, jobs: Jobs, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document, self._jobs = document, jobs

    def set_default_algorithms(self, algorithm: str, detector: str) -> None:
        """Do nothing: this workspace does not fuse."""

    def build(self) -> Iterator[None]:
        """Make the screen in short steps; the window stays responsive between them.

        Nothing observes the study before the last step, which connects all parts.
        """
        raise NotImplementedError

    def place_regions(
        self,
        queue: QWidget,
        canvas: QWidget,
        evidence: QWidget,
        below: Sequence[QWidget],
        widths: Sequence[int],
    ) -> Iterator[None]:
        """Place the regions, in steps.

        `below`: widgets beside history and jobs at the bottom. Fill tabs afterwards, because Qt restyles all
        contents of a moved widget. `widths`: widths of the bottom's parts, the history first.
        """
        from raterscope.widgets.panels.activity_panels import HistoryPanel, JobsPanel

        self.queue, self.canvas, self.evidence = queue, canvas, evidence
        self.left_tabs = TabPages()
        self.left_tabs.tabBar().setAccessibleName("History and jobs")
        self.actions_made: list[QAction] = []
        """Actions of the Review menu."""
        self.digits: KeyHelp | None = None
        """Help on the keys 1 to 9."""
        self._tabs: list[QTabWidget] = []
        """All tab widgets, set when the actions are added."""
        self._regions = (queue, canvas, evidence, self.left_tabs, *below)
        # Parents before children: Qt restyles all descendants for each new parent.
        across, down = Qt.Orientation.Horizontal, Qt.Orientation.Vertical
        self.notes = WorkspaceNotes(self)
        self.whole = _splitter(across, self)
        vertical(self.notes, (self.whole, 1), inside=self, spacing=None)
        ScrollRegion(queue, self.whole)
        yield
        self.middle = _splitter(down, self.whole)
        self.upper, self.bottom = _splitter(across, self.middle), _splitter(across, self.middle)
        if self.CANVAS_SCROLLS:
            ScrollRegion(canvas, self.upper)
        else:
            self.upper.addWidget(canvas)
        ScrollRegion(evidence, self.upper)
        yield
        self._lower = tuple(ScrollRegion(part, self.bottom) for part in (self.left_tabs, *below))
        self.whole.setStretchFactor(1, 1)
        self.middle.setStretchFactor(0, 1)
        self.upper.setStretchFactor(0, 1)
        for index in range(len(self._lower)):
            self.bottom.setStretchFactor(index, 1)
        self.divisions: dict[QSplitter, Sequence[int]] = {
            self.whole: [QUEUE_WIDTH, 1200],
            self.upper: [840, EVIDENCE_WIDTH],
            self.middle: [640, BOTTOM_HEIGHT],
            self.bottom: widths,
        }
        """Initial sizes, unless a layout is restored."""
        self._sides = {
            self.whole: (0, QUEUE_SHARE),
            self.upper: (1, EVIDENCE_SHARE),
            self.middle: (1, BOTTOM_SHARE),
        }
        self._enlarged: QWidget | None = None
        self._bottom_sizes: list[int] = []
        self._cramped = False
        """Whether sides are folded because the window is too small for its text."""
        self._cramped_sides: list[QSplitter] = []
        self._is_new = True
        self._text_size = text_size()
        self._normal_sizes: dict[QSplitter, float] = {}
        """Sizes of the sides with text of normal size."""
        self._stored_sizes: dict[QSplitter, float] = {}
        """Sizes of the last session; those of a splitter are limited by the room that large text leaves."""
        for splitter in self._sides:
            splitter.splitterMoved.connect(partial(self._on_divided, splitter))
        self.setFocusProxy(canvas)
        theme.notifier().changed.connect(self._on_look)
        yield
        self.history, self.job_list = HistoryPanel(), JobsPanel()
        self.left_tabs.addTab(self.history, "History")
        self.left_tabs.addTab(self.job_list, "Jobs")

    def event(self, event: QEvent) -> bool:
        """Leave keys to an open menu: a letter selects an entry, and makes no decision."""
        if event.type() == QEvent.Type.ShortcutOverride and QApplication.activePopupWidget() is not None:
            event.accept()
            return True
        return super().event(event)

    def put_first_below(self) -> None:
        """Move the first widget of `below` to the left of history and jobs."""
        self.bottom.insertWidget(0, self._lower[1])

    def add_shortcuts(self, described: Sequence[ActionEntry], navigable: Sequence[QWidget]) -> None:
        """Add actions to the Review menu, and actions that move the focus.

        `navigable`: widgets in which Tab goes to the next disputed item, as in lists; in forms Tab moves the
        focus.
        """
        everywhere: tuple[ActionEntry, ...] = (
            ("Next region of the window", "F6", partial(self.go_to_region, 1)),
            ("Previous region of the window", "Shift+F6", partial(self.go_to_region, -1)),
            ("Fold or show the queue", "F2", partial(self.fold, self.whole)),
            ("Fold or show the evidence", "F3", partial(self.fold, self.upper)),
            ("Fold or show the panels below", "F4", partial(self.fold, self.middle)),
            ("Enlarge the panel, or show all again", "F8", self.enlarge),
            ("Next part of the region", "Ctrl+F6", partial(self.go_to_part, 1)),
            ("Previous part of the region", "Ctrl+Shift+F6", partial(self.go_to_part, -1)),
        )
        with_tab = (*navigable, *self._navigable_lists())
        for words, keys, slot in (*described, *everywhere):
            action = QAction(words, self)
            action.setShortcut(QKeySequence(keys))
            action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            leaves = keys == "Esc"
            action.triggered.connect(
                without_checked(partial(self._leave_or_focus_canvas, slot) if leaves else slot)
            )
            for widget in with_tab if "Tab" in keys else (self,):
                widget.addAction(action)
            self.actions_made.append(action)
        self._tabs = self.findChildren(QTabWidget)
        for tabs in self._tabs:  # F8 enlarges the panel of the tab that was clicked
            tabs.tabBar().setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def _navigable_lists(self) -> Sequence[QWidget]:
        """Return the lists in which Tab goes to the next disputed item."""
        return [view for view in self.findChildren(QAbstractItemView) if in_place(view, self)]

    def add_digits(self, slot: Callable[[int], object], text: str, *, first: int = 1) -> None:
        """Connect the keys 1 to 9, or 0 to 9, with a slot that gets the digit minus one."""
        self.digits = KeyHelp("", ((f"{first} ... 9", text),))
        for digit in range(first, 10):
            shortcut = QShortcut(QKeySequence(str(digit)), self)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(partial(slot, digit - 1))

    @property
    def has_to_leave(self) -> bool:
        """Whether there is a mode or a panel for Esc to leave."""
        return False

    def _leave_or_focus_canvas(self, slot: Callable[[], object]) -> None:
        """Leave the mode or panel, else move the focus to the canvas, else leave full screen."""
        if self.has_to_leave:
            slot()
        elif self._enlarged is not None:
            self.enlarge()
        elif not contains(self.canvas, self.focusWidget()):
            self.canvas.setFocus(Qt.FocusReason.TabFocusReason)
        else:
            self.escaped.emit()

    # Interface of every workspace for the window

    @property
    def blind_mode(self) -> BlindMode | None:
        """The blind mode; None for a workspace without one."""
        return None

    @property
    def run_on_screen(self) -> RunEntry | None:
        """The run whose result is on screen."""
        return None

    @property
    def notices(self) -> str:
        """The notices of the run on screen."""
        return ""

    def stop_fusing(self) -> None:
        """Stop the running fusion."""

    def show_outdated(self) -> None:
        """Show whether and why to fuse again."""
        self.stale_changed.emit("")

    def toggle_fuse_panel(self) -> None:
        """Open or close the Fuse panel."""

    def current_item(self) -> int | None:
        """Return the number of the item on screen in the study."""
        return None

    def go_to(self, _item: int) -> None:
        """Show an image, a case, a question."""

    def annotators_on_screen(self) -> Sequence[str]:
        """Return the names of the annotators of the item on screen."""
        raise NotImplementedError

    def choose_annotator(self, name: str) -> None:
        """Choose an annotator everywhere."""
        raise NotImplementedError

    def view_state(self) -> dict[str, Any]:
        """Return selection, view and visible tabs, for session restore."""
        return {TABS: self._visible_tabs()}

    def restore_view(self, state: Mapping[str, Any]) -> None:
        """Restore a view as far as its objects still exist; the state comes from an untrusted file."""
        tabs = state.get(TABS)
        if isinstance(tabs, str):
            self.restore_layout(TABS, QByteArray(tabs.encode()))

    # Layout

    def layout_state(self) -> dict[str, QByteArray]:
        """Return the sizes of the regions and the visible tabs, to be stored."""
        if self._enlarged is not None:
            self.enlarge()
        cramped = self._cramped
        self._set_cramped(False)
        divided = {name: getattr(self, name).saveState() for name in self.PARTS}
        self._set_cramped(cramped)
        sizes = " ".join(f"{self._normal_sizes.get(splitter, 0.0):.2f}" for splitter in self._sides)
        words = {TABS: self._visible_tabs(), SIDES: sizes}
        return {**divided, **{name: QByteArray(text.encode()) for name, text in words.items()}}

    def _visible_tabs(self) -> str:
        return "\n".join(tabs.tabText(tabs.currentIndex()) for tabs in self._tabs)

    def restore_layout(self, name: str, state: QByteArray) -> None:
        """Restore sizes or visible tabs."""
        if name == TABS:
            visible = bytes(state.data()).decode(errors="replace").split("\n")
            for tabs in self._tabs:
                titles = [tabs.tabText(index) for index in range(tabs.count())]
                tabs.setCurrentIndex(next((titles.index(title) for title in visible if title in titles), 0))
            return
        if name == SIDES:
            numbers = re.findall(r"\d{1,4}\.\d\d(?!\S)", bytes(state.data()).decode(errors="replace"))
            sizes = dict(zip(self._sides, map(float, numbers), strict=False))
            self._stored_sizes = {splitter: size for splitter, size in sizes.items() if size}
            return
        splitter = getattr(self, name)
        if splitter.restoreState(state):
            self.divisions.pop(splitter, None)
            if splitter in self._sides:
                self._on_divided(splitter)

    def fold(self, splitter: QSplitter) -> None:
        """Fold the queue, the evidence or the bottom, or show it with its former size."""
        index, sizes = self._sides[splitter][0], splitter.sizes()
        if self._enlarged is not None:
            self.enlarge()
        elif sizes[index]:
            self._on_divided(splitter)
            self._collapse(splitter)
        else:
            self.unfold(splitter)

    def _collapse(self, splitter: QSplitter) -> None:
        index, total = self._sides[splitter][0], sum(splitter.sizes())
        side = splitter.widget(index)
        if side is not None and contains(side, self.focusWidget()):
            self.canvas.setFocus()
        splitter.setSizes([0, total] if index == 0 else [total, 0])

    def unfold(self, splitter: QSplitter) -> None:
        """Show a side that is folded, with its former size."""
        index, sizes = self._sides[splitter][0], splitter.sizes()
        if not sizes[index]:
            normal = self._normal_sizes.get(splitter, 0.0) or _USUAL[index, splitter.orientation()]
            self._normal_sizes[splitter] = normal
            size = round(normal * text_size())
            splitter.setSizes([size, sum(sizes) - size] if index == 0 else [sum(sizes) - size, size])
            self._resize_side(splitter, normal)

    def enlarge(self) -> None:
        """Enlarge the panel with the focus over the whole workspace, or show all panels again."""
        splitters = (*self._sides, self.bottom)
        region = self.region_of(self.focusWidget() or self.canvas) or self.canvas
        self._enlarged = region if self._enlarged is None else None
        for splitter in splitters:
            for index in range(splitter.count()):
                part = splitter.widget(index)
                if part is not None:
                    part.setVisible(self._enlarged is None or contains(part, self._enlarged))
        self.message.emit("F8 shows all panels again." if self._enlarged is not None else "")

    def panels(self) -> Iterator[tuple[str, Callable[[], object]]]:
        """List the tabs of the workspace by name, each with a function that shows it."""
        for tabs in self.findChildren(QTabWidget):
            for index in range(tabs.count()):
                yield tabs.tabText(index), partial(self._show_tab, tabs, index)

    def _show_tab(self, tabs: QTabWidget, index: int) -> None:
        if self._enlarged is not None:
            self.enlarge()
        if contains(self.bottom, tabs):
            self.unfold(self.middle)
            self._set_bottom_alone(False)
        tabs.setCurrentIndex(index)
        tabs.tabBar().setFocus()

    def region_of(self, widget: QWidget) -> QWidget | None:
        """Return the region of the screen that contains a widget."""
        return next((region for region in self._regions if contains(region, widget)), None)

    def go_to_region(self, step: int) -> None:
        """Move the focus to the next region with a focusable widget, cyclically."""
        regions = self._regions
        focus = self.focusWidget()
        start = next((i for i, region in enumerate(regions) if contains(region, focus)), 0)
        for distance in range(1, len(regions)):
            region = regions[(start + distance * step) % len(regions)]
            first = region
            while (proxy := first.focusProxy()) is not None:
                first = proxy
            takers = (first, *region.findChildren(QWidget))
            taker = next((widget for widget in takers if _takes_keys(widget)), None)
            if taker is not None:
                taker.setFocus(Qt.FocusReason.TabFocusReason)
                return

    def go_to_part(self, step: int) -> None:
        """Move the focus to the next focusable widget of the region, where Tab has another meaning."""
        region, focus = self.region_of(self.focusWidget() or self.canvas), self.focusWidget()
        if region is None or focus is None:
            return
        chain, widget = [], focus.nextInFocusChain()
        while widget is not None and widget is not focus:
            chain.append(widget)
            widget = widget.nextInFocusChain()
        for widget in chain[::step]:
            if contains(region, widget) and _takes_keys(widget) and widget.focusProxy() is None:
                widget.setFocus(Qt.FocusReason.TabFocusReason)
                return

    def showEvent(self, event: QShowEvent) -> None:
        """Set the initial sizes when the widget is first shown: earlier, its parts have other proportions."""
        super().showEvent(event)
        if self._is_new:
            QTimer.singleShot(0, self, self._divide)

    def _divide(self) -> None:
        self._is_new = False
        for splitter in self._sides:
            self._on_divided(splitter)
        if abs(self.middle.sizes()[1] - self._usual_bottom()) <= 1:  # restored as it was
            self._normal_sizes[self.middle] = BOTTOM_HEIGHT
        for splitter, normal in self._stored_sizes.items():
            if splitter not in self.divisions:
                self._resize_side(splitter, normal)
        for splitter, sizes in self.divisions.items():
            splitter.setSizes(list(sizes))
            if splitter in self._sides:
                self._resize_side(splitter, sizes[self._sides[splitter][0]])
        self.divisions = {}
        self._make_room()

    def _make_room(self) -> None:
        """Fold sides while the window is too small for its text."""
        size = text_size()
        cramped = self.width() < NARROW * size or self.height() < LOW * size
        if cramped != self._cramped:
            self._set_cramped(cramped)
            QTimer.singleShot(0, self, self._fit_sides)
            if cramped and self.isVisible():
                self.message.emit("F2 to F4 show the folded panels.")

    def _set_cramped(self, cramped: bool) -> None:
        """Fold sides, or restore them; the picture and the keys of decisions stay visible."""
        if cramped == self._cramped:
            return
        self._cramped = cramped
        if self.CRAMPED_BOTTOM is not None:
            self.upper.setMinimumHeight(MIN_CANVAS if cramped else 0)
        if cramped:
            sides = [getattr(self, name) for name in self.FOLDED]
            self._cramped_sides = [side for side in sides if side.sizes()[self._sides[side][0]]]
        for splitter in self._cramped_sides:
            if cramped:
                self._collapse(splitter)
            else:
                self.unfold(splitter)
        for splitter in self._sides:
            self._resize_side(splitter, self._normal_sizes[splitter])
        if self.CRAMPED_BOTTOM is not None:
            self._set_bottom_alone(cramped)

    def _set_bottom_alone(self, alone: bool) -> None:
        """Show only the first part of the bottom, or all its parts."""
        if alone:
            self._bottom_sizes = self.bottom.sizes()
            self.bottom.setSizes([sum(self._bottom_sizes), *[0] * (self.bottom.count() - 1)])
        elif self._bottom_sizes and not all(self.bottom.sizes()):
            self.bottom.setSizes(self._bottom_sizes)

    def _on_look(self) -> None:
        """Resize the sides after a change of the text size, in proportion to the sizes set by the user."""
        previous, self._text_size = self._text_size, text_size()
        if self._text_size == previous:
            return
        for splitter, (index, _) in self._sides.items():
            self._resize_side(splitter, self._normal_sizes.get(splitter, splitter.sizes()[index] / previous))
        if not self._is_new:
            self._make_room()
            QTimer.singleShot(0, self, self._fit_sides)
        self.place_panel()

    def _on_divided(self, splitter: QSplitter, *_: int) -> None:
        """Store the size of a side that the user set."""
        self._normal_sizes[splitter] = splitter.sizes()[self._sides[splitter][0]] / self._text_size

    def _resize_side(self, splitter: QSplitter, normal: float) -> None:
        """Set the size of a side from its size with normal text; a collapsed side stays collapsed."""
        index, share = self._sides[splitter]
        total = sum(splitter.sizes())
        size = min(round(normal * text_size()), max(round(share * total), round(normal)))
        if splitter is self.middle and normal <= BOTTOM_HEIGHT:
            usual = min(self._usual_bottom(), max(round(share * total), BOTTOM_HEIGHT))
            size = usual if normal == BOTTOM_HEIGHT else min(size, usual)
        if splitter is self.middle and self._cramped and self.CRAMPED_BOTTOM is not None:
            size = round(self.CRAMPED_BOTTOM * total)
        if splitter.sizes()[index] and size:
            splitter.setSizes([size, total - size] if index == 0 else [total - size, size])
        self._normal_sizes[splitter] = normal

    def _usual_bottom(self) -> int:
        """Return the bottom's default height: a share of the window, or its minimum height."""
        height = round(BOTTOM_PART * sum(self.middle.sizes()) * max(1.0, text_size()))
        return max(height, self.bottom.minimumSizeHint().height())

    def _fit_sides(self) -> None:
        """Resize the sides after their parts got new text.

        Qt does not notify layouts of changes in hidden widgets: a layout would keep their former minimum
        sizes.
        """
        for part in self.findChildren(QWidget):
            part.updateGeometry()
        for splitter in self._sides:
            self._resize_side(splitter, self._normal_sizes[splitter])

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep a panel at its edge, and give the evidence the full height of a low window."""
        super().resizeEvent(event)
        if not self._is_new:
            self._resize_side(self.middle, self._normal_sizes[self.middle])
        if not self._is_new:
            self._make_room()
        self.place_panel()

    def place_panel(self) -> None:
        """Place an overlay panel at the edge of the workspace."""


def split_widgets(
    direction: Qt.Orientation, widgets: Sequence[QWidget], sizes: Sequence[int] = ()
) -> QSplitter:
    """Place widgets side by side or one below the other, with handles between them."""
    splitter = QSplitter(direction, handleWidth=1)
    for widget in widgets:
        splitter.addWidget(widget)
    if sizes:
        splitter.setSizes(list(sizes))
    return splitter


def _splitter(direction: Qt.Orientation, parent: QWidget) -> QSplitter:
    return QSplitter(direction, parent, handleWidth=1, childrenCollapsible=True)


def _takes_keys(widget: QWidget) -> bool:
    by_tab = bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus)
    return by_tab and widget.isVisible() and widget.isEnabled()


def in_place(view: QAbstractItemView, screen: QWidget) -> bool:
    """Return whether a list is part of the screen, not of a popup."""
    parent: QWidget | None = view
    while parent is not None and parent is not screen and not parent.isWindow():
        parent = parent.parentWidget()
    return parent is screen


def contains(region: QWidget, widget: QWidget | None) -> bool:
    """Return whether a widget is a region, or within it."""
    return widget is not None and (region is widget or region.isAncestorOf(widget))
