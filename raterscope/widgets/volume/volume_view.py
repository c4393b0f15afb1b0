"""Three linked orthogonal views with chips, dispute strip and tools."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QColor, QHideEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from raterscope.algorithms.masks.grid import Grid
from raterscope.widgets import theme
from raterscope.widgets.divider import Divider, Sides
from raterscope.widgets.hints import HEIGHT, ChipRow
from raterscope.widgets.layouts import WrappingRow, beside
from raterscope.widgets.theme import pixels
from raterscope.widgets.volume.overlay import EDGE, Measurement, RegionBox, describe, describe_voxel
from raterscope.widgets.volume.plane import PLANES, Index, Plane, Window, planes_of
from raterscope.widgets.volume.scene import Band, HeatMap, Layers, Outline, Outliner, Scene
from raterscope.widgets.volume.slice_painter import BELOW_TITLE, CHIP_GAP, SLABS, Projector
from raterscope.widgets.volume.slice_view import SliceView
from raterscope.widgets.volume.volume_controls import (
    STRIP,
    SURFACE,
    Cine,
    DisputeStrip,
    WindowControl,
    arrange,
)
from raterscope.widgets.volume.volume_controls import WIDTH as STRIP_WIDTH

if TYPE_CHECKING:
    from raterscope.widgets.volume.surface_view import SurfaceView

RADII = 0.5, 60.0
RADIUS_STEP = 1.2

NARROW = 300
"""Width, in unscaled pixels, below which one view is shown alone."""

LINE_STEP, LINE_WIDTHS = 1.3, (0.5, 3.0)

Tool = Literal["look", "brush", "eraser", "contour", "ruler", "roi"]


class VolumeView(QWidget):
    """Volume in three linked views, or in one large view, with the raters' marks and tools to correct them.

    An image in two dimensions has one view.
    """

    crosshair_moved = Signal(object)  # (slice, row, column)
    layout_changed = Signal(str)  # "three", or the name of the single plane
    painted = Signal(object)  # a `Stroke`, when the mouse is released
    box_clicked = Signal(int)
    outline_clicked = Signal(str)  # its key
    style_changed = Signal(str)  # "contour" or "fill"
    brush_radius_changed = Signal(float)  # millimetres
    measured = Signal(str)  # result of the measurement in progress; empty without one

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Volume")
        self._scene = Scene()
        self._outliner = Outliner(self)
        self._outliner.ready.connect(self._on_outlines)
        self.layout_name = "three"
        """Layout: "three", or the name of the single view."""
        self._projector = Projector(self)
        self._projector.ready.connect(self._on_projected)
        parts = self._scene, self._outliner, self._projector
        self._views = {name: SliceView(*parts, self) for name in PLANES}
        self._postponed = QTimer(self, singleShot=True, interval=0)
        self._postponed.timeout.connect(self._paint_postponed)
        self.windows = WindowControl(self)
        self._cine = Cine(self._next_slice, self)
        self._strip = DisputeStrip(self)
        self._strip.slice_chosen.connect(self._on_strip)
        self.divider = Divider(self)
        self.divider.moved.connect(self._on_divider)
        self.surface: SurfaceView | None = None
        """The 3-D view while it is open."""
        self._surface_alone = False
        self._style_chips = ChipRow(
            {"fill": ("fill", "Fill the masks with their colours"),
             "crosshair": ("crosshair", "Lines through the current voxel")}
        )  # fmt: skip
        self._style_chips.set_on("crosshair", True)
        self._style_chips.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.windows.chip.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._style_chips.toggled.connect(self._on_style_chip)
        self._brush_chips = ChipRow(
            {"solid": ("3-D", "Brush and eraser also cover neighbouring slices within the radius (Shift+B)"),
             "windowed": ("in window",
                          "Brush and eraser leave out what is black or white in the window (Shift+W)")}
        )  # fmt: skip
        self._brush_chips.toggled.connect(self._on_brush_chip)
        self._brush_chips.hide()
        rows = (self._brush_chips, beside(self.windows.chip, self._style_chips))
        self._chips = WrappingRow(rows, 8, 8, parent=self)
        self._set_grid(Grid.plain((1, 1, 1)))
        for name, view in self._views.items():
            view.setAccessibleName(f"{name.capitalize()} view")
            view.pointed.connect(self.go_to)
            view.enlarged.connect(self._on_enlarged)
            view.window_dragged.connect(self._on_window_dragged)
            view.window_settled.connect(self._on_window_settled)
            view.painted.connect(self.painted)
            view.radius_stepped.connect(self._on_radius_stepped)
            view.box_clicked.connect(self.box_clicked)
            view.outline_clicked.connect(self.outline_clicked)
            view.bared.connect(self.hide_overlays)
            view.hovered.connect(self._read_out)
            view.divider_moved.connect(self.divider.move)
            view.measured.connect(self._on_measured)
        self.windows.changed.connect(self._on_window)
        self._set_up_windows("", None)

    def _set_grid(self, grid: Grid) -> None:
        """Show the whole planes of another grid, with the crosshair at its centre."""
        self._grid = grid
        self._scene.measurement, self._scene.measured = None, ""
        self.set_cine(False)
        self._projector.forget()
        self._scene.calibrated = grid.calibrated
        self._scene.index = (grid.shape[0] // 2, grid.shape[1] // 2, grid.shape[2] // 2)
        self._outliner.set_shapes({})
        self._outliner.forget()
        self._planes = planes_of(grid)
        self._native = next(name for name, plane in self._planes.items() if plane.normal == 0)
        for name, plane in self._planes.items():
            self._views[name].give_up_stroke()  # it belongs to the previous volume
            self._views[name].set_plane(plane)
        self._has_dispute = False
        self._arrange()
        self._emit_index()

    @property
    def planes(self) -> dict[str, Plane]:
        """Planes by name: three, or one for an image in two dimensions."""
        return dict(self._planes)

    def view(self, name: str) -> SliceView:
        """Return the view of a plane."""
        return self._views[name]

    def set_dispute(self, dispute: NDArray[np.floating] | None) -> None:
        """Show beside the slices the dispute on each, (Z,); None hides the strip."""
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
        """The voxel (slice, row, column) that all views intersect."""
        return self._scene.index

    def go_to(self, index: Index) -> None:
        """Move the crosshair within the volume; the views follow."""
        shape = self._planes[self._native].shape
        clamped = [min(max(int(index), 0), size - 1) for index, size in zip(index, shape, strict=True)]
        old, new = self._scene.index, (clamped[0], clamped[1], clamped[2])
        if new == old:
            return
        self._scene.index = new
        for name, plane in self._planes.items():
            if new[plane.normal] != old[plane.normal]:
                self._views[name].changed()
            self._views[name].keep_visible()
            self._views[name].update()
        self._redraw_surface()
        self._emit_index()
        self.crosshair_moved.emit(new)

    def look_at(self, origin: Index, shape: Index) -> None:
        """Pan every view to a part of the volume, with the crosshair at its centre."""
        middle = [index + size // 2 for index, size in zip(origin, shape, strict=True)]
        self.go_to((middle[0], middle[1], middle[2]))
        for name in self._planes:
            self._views[name].look_at(origin, shape)

    def paint_large_first(self) -> None:
        """Paint changes that follow in the large view, those of the others a turn of the event loop later."""
        for name, view in self._views.items():
            view.setUpdatesEnabled(name == self._large())
        self._postponed.start()

    def _paint_postponed(self) -> None:
        for view in self._views.values():
            view.setUpdatesEnabled(True)

    def expect(self, origin: Index, shape: Index) -> None:
        """Find the outlines of the slices through a part of the volume that is likely to be next."""
        keys, index = self._scene.shape_keys(), self._scene.index
        for plane in self._planes.values():
            middle = origin[plane.normal] + shape[plane.normal] // 2
            self._outliner.expect(plane, index[plane.normal], middle, keys)

    # Arrangement -------------------------------------------------------------------------------

    def set_layout(self, layout: str) -> None:
        """Show all three views, or one of them large."""
        if layout != "three" and layout not in PLANES:
            raise ValueError(f"layout {layout!r}; expected three, axial, coronal or sagittal")
        if layout != self.layout_name or self._surface_alone:
            self.layout_name, self._surface_alone = layout, False
            self._arrange()
            self.layout_changed.emit(layout)

    def open_surface(self) -> SurfaceView:
        """Open the 3-D view beside the others, empty."""
        from raterscope.widgets.volume.surface_view import SurfaceView  # loads the modules for OpenGL

        if self.surface is None:
            self.surface = SurfaceView(self._scene, self)
            self.surface.pointed.connect(self.go_to)
            self.surface.enlarged.connect(self._on_surface_enlarged)
            self.surface.menu.report_through(self._views[self._native].menu)
            self._arrange()
            self.surface.show()
        return self.surface

    def close_surface(self) -> None:
        """Close the 3-D view."""
        surface, self.surface, self._surface_alone = self.surface, None, False
        if surface is not None:
            had_focus = surface.hasFocus()
            surface.hide()
            surface.deleteLater()
            self._arrange()
            if had_focus:
                self.setFocus()

    def _on_surface_enlarged(self) -> None:
        self._surface_alone = not self._surface_alone
        self._arrange()

    def _large(self) -> str:
        return self.layout_name if self.layout_name in self._planes else self._native

    def _arrange(self) -> None:
        """Place the views, and the chips below them, so that they cover no part of the volume."""
        large = self._large()
        narrow = self.width() < pixels(NARROW)
        alone = narrow or self.layout_name in self._planes or len(self._planes) == 1
        strip = STRIP_WIDTH if self._has_dispute else 0
        others = [] if alone else [name for name in self._planes if name != large]
        room = max(self.width() - 2 * EDGE, 1)
        bar = max(self._chips.heightForWidth(room), pixels(HEIGHT))
        high = max(self.height() - bar - 2 * CHIP_GAP, 1)
        places = arrange(self.width(), high, large, others, strip=strip, surface=self.surface is not None)
        self.setFocusProxy(self._views[large])
        self._strip.setGeometry(places[STRIP])
        self._strip.setVisible(bool(strip))
        for name, view in self._views.items():
            view.set_large(name == large)
            if name in places:
                view.setGeometry(places[name])
            view.setVisible(name in places)
        self._chips.setGeometry(EDGE, high + CHIP_GAP, room, bar)
        index = places[large]
        self.divider.place(index, index.top() + pixels(BELOW_TITLE))
        entry = self.windows.entry
        entry.move(EDGE, high - CHIP_GAP - entry.height())
        if self.surface is not None:
            self.surface.setGeometry(self.rect() if self._surface_alone else places[SURFACE])
            if self._surface_alone:
                self.surface.raise_()

    def resizeEvent(self, _event: QResizeEvent) -> None:
        """Lay out the views."""
        self._arrange()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the lines between the views, and the background of the chips."""
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), QColor(theme.DARK.line))
            below = self.rect().adjusted(0, self._chips.y() - CHIP_GAP, 0, 0)
            painter.fillRect(below, QColor(theme.DARK.canvas))

    def hideEvent(self, event: QHideEvent) -> None:
        """Stop work for hidden views."""
        self._outliner.stop()
        self._projector.stop()
        self.set_cine(False)
        super().hideEvent(event)

    # The volume --------------------------------------------------------------------------------

    def set_volume(
        self,
        values: NDArray[np.generic] | None,
        grid: Grid,
        *,
        modality: str = "",
        window: Window | None = None,
        unit: str = "",
    ) -> None:
        """Show another volume as a whole, with the crosshair at its centre, and remove all marks.

        `values`, `modality`, `window`, `unit`: see `set_pixels`.
        """
        scene = self._scene
        scene.outlines, scene.hidden, scene.solo, scene.beside = (), frozenset(), None, frozenset()
        scene.heat = scene.band = scene.edit = scene.selected = None
        self.set_sides(None)
        scene.boxes, scene.notice = (), ""
        scene.values, scene.empty = None, False
        self._set_grid(grid)
        self.set_pixels(values, modality=modality, window=window, unit=unit)

    def set_problem(self, text: str) -> None:
        """Show why there are no pixels."""
        self._scene.problem = text
        self._update_views()

    def clear(self) -> None:
        """Clear the views until the volume is known."""
        self.set_volume(None, Grid.plain((1, 1, 1)))
        self._scene.empty = True

    def set_pixels(
        self,
        values: NDArray[np.generic] | None,
        *,
        modality: str = "",
        window: Window | None = None,
        unit: str = "",
    ) -> None:
        """Set the values of the visible volume, which may be read after it is shown.

        `values`: (Z, Y, X) or (Z, Y, X, 3), or None without pixels; the raters' marks are then shown on a
        neutral background. `modality`: as in DICOM. "CT" has presets in Hounsfield units; an empty name has
        them too, because it may be CT. `window`: (centre, width), preferred display window of the file.
        `unit`: unit of the values, if not HU.
        """
        shape = self._planes[self._native].shape
        if values is not None and (values.shape[:3] != shape or values.shape[3:] not in ((), (3,))):
            raise ValueError(f"voxels of shape {values.shape} on a grid of {shape}")
        self._scene.values, self._scene.unit, self._scene.problem = values, unit, ""
        self._set_up_windows(modality, window)
        self._arrange()

    def _set_up_windows(self, modality: str, window: Window | None) -> None:
        self._projector.forget()
        self.windows.offer(self._scene.values, modality, window)
        self._emit_index()

    # Marks -----------------------------------------------------------------------------------

    def set_outlines(self, outlines: Sequence[Outline]) -> None:
        """Show the outlines of masks, the last on top."""
        before, self._scene.outlines = self._scene.outlines, tuple(outlines)
        self._outliner.set_shapes(self._scene.shapes())
        if [outline.style for outline in outlines] != [outline.style for outline in before]:
            self._changed()
        else:
            for view in self._views.values():
                view.find_outlines()

    def set_hidden(self, keys: Iterable[str]) -> None:
        """Hide some outlines."""
        self._scene.hidden = frozenset(keys)
        self._changed()

    def hide_overlays(self, bare: bool) -> None:
        """Show the image without or with its overlays."""
        self._scene.bare = bare
        self._changed(below=True)

    def set_solo(self, key: str | None, *, beside: Iterable[str] = ()) -> None:
        """Show one outline alone, or with some others; None shows the previous outlines."""
        self._scene.solo, self._scene.beside = key, frozenset(beside)
        self._changed()

    def set_style(self, style: Literal["contour", "fill"]) -> None:
        """Show masks as lines, or also as areas."""
        self._scene.filled = style == "fill"
        self._style_chips.set_on("fill", style == "fill")
        self._changed()

    def set_opacity(self, opacity: float) -> None:
        """Set the opacity of areas and heat maps, 0 to 1."""
        self._scene.opacity = min(max(float(opacity), 0.0), 1.0)
        self._changed()

    def set_heat_map(self, heat: HeatMap | None) -> None:
        """Show a heat map with a colour bar; None removes it."""
        if heat is not self._scene.heat:
            self._scene.heat = heat
            self._changed(below=True)

    def set_sides(self, sides: Sides | None, layers: tuple[Layers, Layers] | None = None) -> None:
        """Show other outlines and maps left and right of the divider; None shows the common ones again."""
        if sides is None and self._scene.sides is None:
            return
        self.divider.set_sides(sides)
        self._scene.sides = None if sides is None else layers
        self._shapes_changed()

    def _on_divider(self) -> None:
        self._scene.divider = self.divider.share
        self._update_views()

    def set_band(
        self,
        values: NDArray[np.float32] | None,
        low: float = 0.0,
        high: float = 1.0,
        origin: Index = (0, 0, 0),
    ) -> None:
        """Show the area with a probability between two levels; None shows none."""
        if values is not None or self._scene.band is not None:
            self._scene.band = None if values is None else Band(values, origin, low, high)
            self._shapes_changed()

    def set_boxes(self, boxes: Sequence[RegionBox], selected: int | None = None) -> None:
        """Show disputed regions, the selected one with its description."""
        self._scene.boxes, self._scene.selected = tuple(boxes), selected
        self._update_views()

    def set_edit(self, values: NDArray[np.bool_] | None, origin: Index = (0, 0, 0)) -> None:
        """Show the mask being edited; None shows none."""
        if values is not None or self._scene.edit is not None:
            self._scene.edit = None if values is None else (values, origin)
            self._shapes_changed()

    # Window ------------------------------------------------------------------------------------

    def type_window(self) -> None:
        """Open fields for width and level of the window, or close them."""
        self.windows.toggle_entry()
        self._arrange()

    def _on_window(self) -> None:
        self._scene.levels = self.windows.levels
        self._arrange()
        self._changed(below=True)

    # Tools -------------------------------------------------------------------------------------

    @property
    def tool(self) -> str:
        """Tool used by a drag: "look", "brush", "eraser", "contour", "ruler" or "roi"."""
        return self._scene.tool

    def set_tool(self, tool: Tool) -> None:
        """Set the effect of a drag with the left button; a stroke in progress is cancelled."""
        if tool not in get_args(Tool):
            raise ValueError(f"tool {tool!r}; expected one of {', '.join(get_args(Tool))}")
        self._scene.tool = tool
        self._brush_chips.setVisible(tool in ("brush", "eraser"))
        self._on_measured(None)
        for view in self._views.values():
            view.give_up_stroke()
            view.show_cursor()
            view.update()
        self._arrange()

    def toggle_solid_brush(self) -> None:
        """Let brush and eraser also cover neighbouring slices within the radius, or only one slice."""
        self._on_brush_chip("solid", not self._scene.solid)

    def toggle_windowed_brush(self) -> None:
        """Let brush and eraser skip voxels that are black or white in the window, or cover all."""
        self._on_brush_chip("windowed", not self._scene.windowed)

    def _on_brush_chip(self, name: str, on: bool) -> None:
        setattr(self._scene, name, on)
        self._brush_chips.set_on(name, on)

    def set_brush_radius(self, millimetres: float) -> None:
        """Set the size of brush and eraser."""
        radius = min(max(float(millimetres), RADII[0]), RADII[1])
        if radius != self._scene.radius:
            self._scene.radius = radius
            self._update_views()
            self.brush_radius_changed.emit(radius)

    # Reactions ---------------------------------------------------------------------------------

    def _shapes_changed(self) -> None:
        self._outliner.set_shapes(self._scene.shapes())
        self._changed()

    def _changed(self, *, below: bool = False) -> None:
        for view in self._views.values():
            view.changed(below=below)
        self._redraw_surface()

    def _update_views(self) -> None:
        for view in self._views.values():
            view.update()

    def _redraw_surface(self) -> None:
        if self.surface is not None:
            self.surface.changed()

    def _emit_index(self) -> None:
        index = self._scene.index
        if self._has_dispute:
            self._strip.set_slice(index[0])
        titles = ", ".join(
            " ".join((self._views[name].title().lower(), self._views[name].remark())).strip()
            for name in self._planes
        )
        self._read_out(None)
        self.setAccessibleDescription(", ".join(part for part in (titles, self._scene.readout) if part))

    def _on_outlines(self, name: str) -> None:
        self._views[name].changed()

    def _on_strip(self, index: int) -> None:
        self.go_to((index, *self._scene.index[1:]))

    def _on_enlarged(self) -> None:
        view = self.sender()
        name = next(name for name, each in self._views.items() if each is view)
        if len(self._planes) > 1:
            self.set_layout("three" if self.layout_name == name else name)

    def _on_window_dragged(self, right: float, up: float) -> None:
        self._scene.notice = self.windows.drag(right, up)

    def _on_window_settled(self) -> None:
        self.windows.end_drag()
        self._scene.notice = ""
        self._update_views()

    def _on_radius_stepped(self, direction: int) -> None:
        self.set_brush_radius(self._scene.radius * RADIUS_STEP**direction)

    # Reading and display ----------------------------------------------------------------------

    def _on_measured(self, measurement: Measurement | None) -> None:
        scene, text = self._scene, ""
        if measurement is not None:
            text = describe(
                measurement, self._planes[measurement.plane], scene.values,
                calibrated=scene.calibrated, value_unit=self._value_unit,
            )  # fmt: skip
        if (measurement, text) != (scene.measurement, scene.measured):
            scene.measurement, scene.measured = measurement, text
            self._update_views()
            self.measured.emit(text)

    @property
    def _value_unit(self) -> str:
        return self._scene.unit or ("HU" if self.windows.modality == "CT" else "")

    def _read_out(self, index: Index | None) -> None:
        """Show value and position of a voxel, by default that under the crosshair, in the large view."""
        at = index or self._scene.index
        text = describe_voxel(self._scene.values, self._grid, at, self._value_unit)
        if text != self._scene.readout:
            self._scene.readout = text
            self._views[self._large()].update()

    def set_cross_hair(self, shown: bool) -> None:
        """Show or hide the crosshair."""
        self._scene.cross_hair = shown
        self._style_chips.set_on("crosshair", shown)
        self._update_views()
        self._redraw_surface()

    def toggle_cross_hair(self) -> None:
        """Hide the crosshair, or show it."""
        self.set_cross_hair(not self._scene.cross_hair)

    def next_layout(self) -> None:
        """Show the next layout: all views, then each alone."""
        layouts = ["three", *(name for name in PLANES if name in self._planes)]
        if len(self._planes) > 1:
            self.set_layout(layouts[(layouts.index(self.layout_name) + 1) % len(layouts)])

    def step_line_width(self, direction: int) -> None:
        """Make all outlines thicker or thinner."""
        width = self._scene.line_width * LINE_STEP**direction
        self._scene.line_width = min(max(width, LINE_WIDTHS[0]), LINE_WIDTHS[1])
        self._changed()

    def next_slab(self) -> None:
        """Show the next slab: slices, then maximum intensity projections of 10 mm and the whole volume."""
        self._scene.slab = SLABS[(SLABS.index(self._scene.slab) + 1) % len(SLABS)]
        self._changed(below=True)

    def set_cine(self, on: bool) -> None:
        """Play the slices of the large view in a loop; or stop."""
        self._cine.play(on and self._planes[self._large()].slices > 1)

    @property
    def cine(self) -> bool:
        """Whether the slices are being played."""
        return self._cine.isActive()

    def toggle_cine(self) -> None:
        """Play the slices of the large view, or stop."""
        self.set_cine(not self.cine)

    def _next_slice(self) -> None:
        plane, index = self._planes[self._large()], list(self._scene.index)
        index[plane.normal] = (index[plane.normal] + 1) % plane.slices
        self.go_to((index[0], index[1], index[2]))

    def _on_projected(self) -> None:
        for view in self._views.values():
            view.projected()

    def _on_style_chip(self, name: str, on: bool) -> None:
        if name == "crosshair":
            self.set_cross_hair(on)
            return
        self.set_style("fill" if on else "contour")
        self.style_changed.emit("fill" if on else "contour")
