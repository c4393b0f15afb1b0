"""Sources of clicks that grow: a file or a folder that is written to while it is read."""

from raterscope.app.formats.growing.looking import Growth, look
from raterscope.app.formats.growing.positions import Position

__all__ = ["Growth", "Position", "look"]
