"""Growing sources of clicks: a file or a folder that is written to while it is read."""

from raterscope.app.formats.growing_files.source import Growth, look
from raterscope.app.formats.growing_files.state import Position

__all__ = ["Growth", "Position", "look"]
