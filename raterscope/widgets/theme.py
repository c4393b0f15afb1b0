"""Colours, type and the style sheet: every widget asks here, none carries a colour of its own."""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QPalette
from PySide6.QtWidgets import QApplication, QWidget

from raterscope.figures.colours import ANNOTATOR_COLOURS, ANNOTATOR_SYMBOLS, DARK, LIGHT, UNNAMED, Theme
from raterscope.widgets.style_sheet import style_sheet
from raterscope.widgets.text_size import follow_lengths, pixels

__all__ = [
    "BODY",
    "CAPTION",
    "DARK",
    "DECIDING",
    "FIGURE",
    "LIGHT",
    "Theme",
    "annotator_style",
    "apply_theme",
    "colour",
    "current",
    "font",
    "notifier",
    "set_role",
    "style_sheet",
    "system_theme",
    "widget_font",
]

CAPTION, BODY, FIGURE, DECIDING = 11, 13, 15, 30
"""Sizes of type, in pixels of the usual size."""

STYLED = "styled"


class _Notifier(QObject):
    changed = Signal(object)


class _State:
    theme: Theme = DARK
    notifier: _Notifier | None = None


def current() -> Theme:
    """Give the theme in use; what paints itself asks at every paint."""
    return _State.theme


def notifier() -> _Notifier:
    """Give the object whose signal ``changed(Theme)`` tells those who keep painted things."""
    if _State.notifier is None:
        _State.notifier = _Notifier()
    return _State.notifier


def annotator_style(index: int) -> tuple[str, str]:
    """Give an annotator's colour and symbol, the same everywhere and for good.

    Parameters
    ----------
    index : int
        Place in the order of first appearance.

    Returns
    -------
    colour, symbol : str
        Hexadecimal colour of the palette by Okabe and Ito, and the name of a shape. Both go on with
        every annotator, so that whoever is not told from a neighbour by colour is by shape; as 8 and 5 have
        no divisor in common, no combination comes twice. Beyond all of them everyone is a grey disc.
    """
    colours, symbols = len(ANNOTATOR_COLOURS), len(ANNOTATOR_SYMBOLS)
    if not 0 <= index < colours * symbols:
        return UNNAMED, "o"
    return ANNOTATOR_COLOURS[index % colours], ANNOTATOR_SYMBOLS[index % symbols]


def colour(token: str, alpha: int = 255) -> QColor:
    """Make a colour of a token, see-through where `alpha` is below 255."""
    made = QColor(token)
    made.setAlpha(alpha)
    return made


@lru_cache(maxsize=64)
def font(size: int = BODY, *, bold: bool = False) -> QFont:
    """Give the system's font in a size in pixels, its figures all of one width; it is for what is painted.

    A painter enlarges it as the text's size asks; a widget that writes by itself needs `widget_font`.
    """
    made = QFont(QApplication.font())
    made.setPixelSize(size)
    made.setBold(bold)
    made.setFeature(QFont.Tag("tnum"), 1)
    return made


def widget_font(size: int = BODY, *, bold: bool = False) -> QFont:
    """Give the same font for a widget that writes by itself: as large as the text's size asks."""
    return font(pixels(size), bold=bold)


def set_role(widget: QWidget, role: str) -> None:
    """Name the part a widget plays for the style sheet: caption, number, accepted, rejected ..."""
    if widget.property("role") == role:
        return
    widget.setProperty("role", role)
    style = widget.style()
    style.unpolish(widget)
    style.polish(widget)
    widget.update()


def apply_theme(application: QApplication, theme: Theme) -> None:
    """Give the whole program a theme: style, palette, style sheet, and word to whoever paints itself.

    The text's size is that of `text_size`, which everything follows by this too.
    """
    # Once is enough, and under a style sheet the style does not tell its name any more.
    if not application.property(STYLED):
        application.setStyle("Fusion")
        application.setProperty(STYLED, True)
    _State.theme = theme
    font.cache_clear()
    application.setStyleSheet("")  # taken off and put on again it takes a quarter of the time
    application.setFont(widget_font())
    application.setPalette(_palette(theme))
    application.setStyleSheet(style_sheet(theme))
    follow_lengths()
    notifier().changed.emit(theme)


def system_theme(application: QApplication) -> Theme:
    """Give the theme that the system asks for; dark where it does not say."""
    scheme = application.styleHints().colorScheme()
    return LIGHT if scheme == Qt.ColorScheme.Light else DARK


def _palette(theme: Theme) -> QPalette:
    palette = QPalette()
    role = QPalette.ColorRole
    roles = {
        role.Window: theme.window,
        role.WindowText: theme.text,
        role.Base: theme.surface,
        role.AlternateBase: theme.raised,
        role.Text: theme.text,
        role.Button: theme.raised,
        role.ButtonText: theme.text,
        role.BrightText: theme.text,
        role.ToolTipBase: theme.raised,
        role.ToolTipText: theme.text,
        role.PlaceholderText: theme.third,
        role.Highlight: theme.accent,
        role.HighlightedText: theme.on_accent,
        role.Link: theme.accent,
        role.LinkVisited: theme.accent,
        role.Light: theme.line,
        role.Midlight: theme.line,
        role.Mid: theme.line,
        role.Dark: theme.line,
        role.Shadow: theme.window,
    }
    for name, token in roles.items():
        palette.setColor(name, QColor(token))
    for name in (role.WindowText, role.Text, role.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, name, QColor(theme.third))
    return palette
