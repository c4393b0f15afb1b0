"""Which part of the image the widget shows: a value, changed by making another."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["FIT_MARGIN", "Rect", "Viewport"]

SMALLEST_SCALE, LARGEST_SCALE = 1e-3, 200.0
FIT_MARGIN, LOOK_MARGIN = 12.0, 60.0

SPOT_ON_SCREEN = (14.0, 90.0)
"""Radii on the screen between which a spot is easily judged; outside them `looking_at` changes the scale."""

Rect = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Viewport:
    """A window onto the image.

    Attributes
    ----------
    width, height : int
        Of the widget, in its pixels.
    scale : float
        Widget's pixels a unit of the image.
    across, down : int
        The image's origin in the widget. Whole pixels, so that painted tiles fit without a seam.
    """

    width: int
    height: int
    scale: float = 1.0
    across: int = 0
    down: int = 0

    def to_screen(self, x: float, y: float) -> tuple[float, float]:
        """Turn a place in the image into one in the widget."""
        return x * self.scale + self.across, y * self.scale + self.down

    def to_image(self, across: float, down: float) -> tuple[float, float]:
        """Turn a place in the widget into one in the image."""
        return (across - self.across) / self.scale, (down - self.down) / self.scale

    @property
    def visible(self) -> Rect:
        """Left, top, right, bottom of what is shown, in the image's units."""
        return *self.to_image(0, 0), *self.to_image(self.width, self.height)

    @property
    def centre(self) -> tuple[float, float]:
        """The place in the middle, in the image's units."""
        return self.to_image(self.width / 2, self.height / 2)

    def panned(self, across: float, down: float) -> Viewport:
        """Move what is shown by some of the widget's pixels."""
        return replace(self, across=self.across + round(across), down=self.down + round(down))

    def centred(self, x: float, y: float, scale: float | None = None) -> Viewport:
        """Put a place of the image in the middle."""
        scale = min(max(self.scale if scale is None else scale, SMALLEST_SCALE), LARGEST_SCALE)
        across, down = round(self.width / 2 - x * scale), round(self.height / 2 - y * scale)
        return replace(self, scale=scale, across=across, down=down)

    def zoomed(self, factor: float, across: float, down: float) -> Viewport:
        """Enlarge about a place of the widget, which keeps its place in the image."""
        x, y = self.to_image(across, down)
        scale = min(max(self.scale * factor, SMALLEST_SCALE), LARGEST_SCALE)
        return replace(self, scale=scale, across=round(across - x * scale), down=round(down - y * scale))

    def framing(self, rect: Rect, margin: float = 0.0) -> Viewport:
        """Show the whole of a rectangle, with a margin in the widget's pixels."""
        left, top, right, bottom = rect
        room_across = max(1.0, self.width - 2 * margin)
        room_down = max(1.0, self.height - 2 * margin)
        scale = min(room_across / max(right - left, 1e-9), room_down / max(bottom - top, 1e-9))
        return self.centred((left + right) / 2, (top + bottom) / 2, scale)

    def resized(self, width: int, height: int) -> Viewport:
        """Keep the middle in the middle of a widget of another size."""
        x, y = self.centre
        return replace(self, width=width, height=height).centred(x, y)

    def kept_on(self, extent: Rect, margin: float) -> Viewport:
        """Pan back so that no more ground than a margin is seen beside the image, or centre a small image."""

        def keep(origin: int, first: float, last: float, room: int) -> int:
            start, stop = first * self.scale, last * self.scale
            if stop - start + 2 * margin <= room:
                return round((room - start - stop) / 2)
            return round(min(max(origin, room - stop - margin), margin - start))

        across = keep(self.across, extent[0], extent[2], self.width)
        down = keep(self.down, extent[1], extent[3], self.height)
        return replace(self, across=across, down=down)

    def looking_at(self, x: float, y: float, radius: float, extent: Rect) -> Viewport:
        """Bring a spot into sight with what surrounds it.

        The scale stays when the spot is easily judged at it, and nothing moves when it also lies well inside.
        """
        smallest, largest = SPOT_ON_SCREEN
        on_screen = max(radius, 1e-9) * self.scale
        if not smallest <= on_screen <= largest:
            wanted = (2.5 * smallest if on_screen < smallest else 0.6 * largest) / max(radius, 1e-9)
            scale = max(wanted, self.framing(extent, FIT_MARGIN).scale)
            if scale != self.scale:
                return self.centred(x, y, scale).kept_on(extent, LOOK_MARGIN)
        across, down = self.to_screen(x, y)
        if 0.15 < across / self.width < 0.85 and 0.15 < down / self.height < 0.85:
            return self
        return self.centred(x, y).kept_on(extent, LOOK_MARGIN)

    def share_of(self, extent: Rect) -> float:
        """Tell which share of the image fits into the widget, 1 at most."""
        left, top, right, bottom = extent
        return min(1.0, self.width * self.height / self.scale**2 / ((right - left) * (bottom - top)))

    def held_to(self, extent: Rect) -> Viewport:
        """Pan back so that the middle of the widget stays on the image."""
        x, y = self.centre
        inside_x = min(max(x, extent[0]), extent[2])
        inside_y = min(max(y, extent[1]), extent[3])
        return self if (x, y) == (inside_x, inside_y) else self.centred(inside_x, inside_y)
