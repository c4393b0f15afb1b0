"""The views of a volume side by side, linked by a cross-hair: everything but what lies over the volume."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRect, Signal
from PySide6.QtGui import QColor, QHideEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

from raterscope.algorithms.masks.grid import Grid
from raterscope.widgets import theme
from raterscope.widgets.volume.dispute_strip import WIDTH as STRIP_WIDTH
from raterscope.widgets.volume.dispute_strip import DisputeStrip
from raterscope.widgets.volume.outlines import Outliner
from raterscope.widgets.volume.overlay import EDGE
from raterscope.widgets.volume.plane import PLANES, Index, Plane, planes_of
from raterscope.widgets.volume.scene import Scene
from raterscope.widgets.volume.slice_view import SliceView

__all__ = ["LinkedViews"]

LARGE_SHARE = 0.64
"""Of the width, what the large one of three views has."""

RULE = 1


class LinkedViews(QWidget):
    """Three linked views, or one large; of an image in two dimensions, one.

    Signals
    -------
    crosshair_moved : object
        (slice, row, column).
    layout_changed : str
        "three", or the name of the plane that is alone.
    """

    crosshair_moved = Signal(object)
    layout_changed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Volume")
        self._scene = Scene()
        self._outliner = Outliner(self)
        self._outliner.ready.connect(self._on_outlines)
        self._planes: dict[str, Plane] = {}
        self._native = "axial"
        self._layout = "three"
        self._views = {name: SliceView(self._scene, self._outliner, self) for name in PLANES}
        for name, view in self._views.items():
            view.setAccessibleName(f"{name.capitalize()} view")
        for view in self._views.values():
            view.pointed.connect(self.go_to)
            view.enlarged.connect(self._on_enlarged)
        self._strip = DisputeStrip(self)
        self._strip.slice_chosen.connect(self._on_strip)
        self._has_dispute = False
        self._chips = QWidget(self)
        self._chip_row = QHBoxLayout(self._chips)
        self._chip_row.setContentsMargins(0, 0, 0, 0)
        self._chip_row.setSpacing(8)
        self._set_grid(Grid.plain((1, 1, 1)))

    def _set_grid(self, grid: Grid) -> None:
        """Show the planes of another grid, whole, its middle under the cross-hair."""
        self._scene.calibrated = grid.calibrated
        self._scene.index = (grid.shape[0] // 2, grid.shape[1] // 2, grid.shape[2] // 2)
        self._outliner.set_shapes({})
        self._outliner.forget()
        self._planes = planes_of(grid)
        self._native = next(name for name, plane in self._planes.items() if plane.normal == 0)
        for name, plane in self._planes.items():
            self._views[name].give_up_stroke()  # it is of the volume before
            self._views[name].set_plane(plane)
        self._has_dispute = False
        self._arrange()
        self._tell_index()

    @property
    def planes(self) -> dict[str, Plane]:
        """The planes by name: three, or that of an image in two dimensions."""
        return dict(self._planes)

    def view(self, name: str) -> SliceView:
        """Give the view of a plane."""
        return self._views[name]

    def set_dispute(self, dispute: NDArray[np.floating] | None) -> None:
        """Show beside the slices how much is disputed on each, (Z,); None hides that."""
        self._has_dispute = dispute is not None and self._planes[self._native].slices > 1
        if dispute is not None and self._has_dispute:
            if len(dispute) != self._planes[self._native].slices:
                raise ValueError(f"dispute of {len(dispute)} slices; expected one number a slice")
            self._strip.set_dispute(dispute, upward=self._planes[self._native].reversed[0])
            self._strip.set_slice(self._scene.index[0])
        self._arrange()

    # Where it is looked at ---------------------------------------------------------------------

    @property
    def crosshair(self) -> Index:
        """The voxel (slice, row, column) that all views go through."""
        return self._scene.index

    def go_to(self, index: Index) -> None:
        """Move the cross-hair, held to the volume; the views follow."""
        shape = self._planes[self._native].shape
        held = [min(max(int(at), 0), size - 1) for at, size in zip(index, shape, strict=True)]
        old, new = self._scene.index, (held[0], held[1], held[2])
        if new == old:
            return
        self._scene.index = new
        for name, plane in self._planes.items():
            if new[plane.normal] != old[plane.normal]:
                self._views[name].changed()
            self._views[name].keep_in_sight()
            self._views[name].update()
        self._tell_index()
        self.crosshair_moved.emit(new)

    def look_at(self, origin: Index, shape: Index) -> None:
        """Bring a part of the volume into sight in every view, the cross-hair in its middle."""
        middle = [at + size // 2 for at, size in zip(origin, shape, strict=True)]
        self.go_to((middle[0], middle[1], middle[2]))
        for name in self._planes:
            self._views[name].look_at(origin, shape)

    # Arrangement -------------------------------------------------------------------------------

    @property
    def layout_name(self) -> str:
        """Which views are in sight: "three", or the name of one."""
        return self._layout

    def set_layout(self, layout: str) -> None:
        """Show all three views, or one of them large."""
        if layout != "three" and layout not in PLANES:
            raise ValueError(f"layout {layout!r}; expected three, axial, coronal or sagittal")
        if layout != self._layout:
            self._layout = layout
            self._arrange()
            self.layout_changed.emit(layout)

    def add_chips(self, chips: QWidget) -> None:
        """Put something more beside the chips at the lower edge."""
        self._chip_row.addWidget(chips)
        self._place_chips()

    def _large(self) -> str:
        return self._layout if self._layout in self._planes else self._native

    def _arrange(self) -> None:
        large = self._large()
        alone = self._layout in self._planes or len(self._planes) == 1
        wide, high = self.width(), self.height()
        strip = STRIP_WIDTH if self._has_dispute else 0
        room = wide - strip if alone else round((wide - strip) * LARGE_SHARE)
        self.setFocusProxy(self._views[large])
        self._views[large].setGeometry(QRect(0, 0, room, high))
        self._strip.setGeometry(QRect(room, 0, strip, high))
        self._strip.setVisible(bool(strip))
        left = room + strip + RULE
        upper = (high - RULE) // 2
        rooms = [
            QRect(left, 0, wide - left, upper), QRect(left, upper + RULE, wide - left, high - upper - RULE),
        ]  # fmt: skip
        for name, view in self._views.items():
            view.set_large(name == large)
            if name != large and name in self._planes and not alone:
                view.setGeometry(rooms.pop(0))
            view.setVisible(name == large or (name in self._planes and not alone))
        self._place_chips()

    def _place_chips(self) -> None:
        self._chips.adjustSize()
        at = self._views[self._large()].geometry()
        self._chips.move(at.left() + EDGE, at.bottom() + 1 - EDGE - self._chips.height())
        self._chips.raise_()

    def resizeEvent(self, _event: QResizeEvent) -> None:
        """Give every view its room."""
        self._arrange()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the lines between the views."""
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), QColor(theme.DARK.line))

    def hideEvent(self, event: QHideEvent) -> None:
        """Leave what nobody sees."""
        self._outliner.stop()
        super().hideEvent(event)

    # What follows ------------------------------------------------------------------------------

    def _changed(self, *, below: bool = False) -> None:
        for view in self._views.values():
            view.changed(below=below)

    def _tell_index(self) -> None:
        index = self._scene.index
        if self._has_dispute:
            self._strip.set_slice(index[0])
        titles = ", ".join(self._views[name].title().lower() for name in self._planes)
        self.setAccessibleDescription(titles)

    def _on_outlines(self, name: str) -> None:
        self._views[name].changed()

    def _on_strip(self, index: int) -> None:
        self.go_to((index, *self._scene.index[1:]))

    def _on_enlarged(self) -> None:
        view = self.sender()
        name = next(name for name, each in self._views.items() if each is view)
        if len(self._planes) > 1:
            self.set_layout("three" if self._layout == name else name)
