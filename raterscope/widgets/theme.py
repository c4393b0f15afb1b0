"""Colours, fonts and style sheet of the dark and the light theme, and the scale of the interface text.

Painted widgets work in unscaled pixels and let the painter scale. Qt layouts get scaled lengths from
`set_lengths`.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from PySide6.QtCore import QObject, QPointF, QRect, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFont, QPainter, QPalette
from PySide6.QtWidgets import QApplication, QWidget

from raterscope import resources
from raterscope.figures.colours import ANNOTATOR_COLOURS, ANNOTATOR_SYMBOLS, UNNAMED, Symbol, Theme
from raterscope.figures.colours import DARK as DARK
from raterscope.figures.colours import LIGHT as LIGHT

NAME = 22
"""Maximum width of the program's name in the top bar, next to tabs and buttons."""


def style_sheet(theme: Theme) -> str:
    """Return the style sheet of a theme at the current text scale."""
    t = theme
    caption, body, title, deciding, line, header, box = map(pixels, (11, 13, 15, 30, 18, 20, 12))
    under_black = t.second if t.dark else t.raised  # Qt's own icons are black in every theme
    tick, down = _icon(f"tick_{t.name}"), _icon(f"down_{t.name}")
    return f"""
* {{ font-size: {body}px; }}
QWidget {{ color: {t.text}; selection-background-color: {t.accent}; selection-color: {t.on_accent}; }}
QMainWindow, QDialog {{ background: {t.window}; }}
QDialogButtonBox {{ dialogbuttonbox-buttons-have-icons: 0; }}
QLabel {{ background: transparent; }}
QToolTip {{ color: {t.text}; background: {t.raised}; border: 1px solid {t.line}; padding: 4px; }}

QLabel[role="caption"] {{ color: {t.third}; font-size: {caption}px; font-weight: bold;
    letter-spacing: 0.4px; }}
QLabel[role="second"] {{ color: {t.second}; }}
QLabel[role="small"] {{ color: {t.second}; font-size: {caption}px; }}
QLabel[role="hint"] {{ color: {t.third}; font-size: {caption}px; }}
QLabel[role="error"] {{ color: {t.rejected}; font-size: {caption}px; }}
QLabel[role="title"] {{ font-size: {title}px; font-weight: bold; }}
QLabel[role="accent"] {{ color: {t.accent}; }}
QLabel[role="rejected"] {{ color: {t.rejected}; }}
QLabel[role="disputed"] {{ color: {t.disputed}; }}
QLabel[role="number-accent"] {{ color: {t.accent}; font-size: {deciding}px; font-weight: bold; }}
QLabel[role="number-rejected"] {{ color: {t.rejected}; font-size: {deciding}px; font-weight: bold; }}
QLabel[role="number-disputed"] {{ color: {t.disputed}; font-size: {deciding}px; font-weight: bold; }}
QLabel[role="number-plain"] {{ color: {t.text}; font-size: {deciding}px; font-weight: bold; }}
QFrame[role="panel"], QWidget[role="panel"] {{ background: {t.surface}; }}
QWidget[role="popover"] {{ background: {t.surface}; border: 1px solid {t.line}; }}
QFrame[role="rule"] {{ background: {t.line}; border: none; min-height: 1px; max-height: 1px; }}

QPushButton, QToolButton {{ background: {t.raised}; border: 1px solid {t.line}; border-radius: 5px;
    padding: 4px 12px; min-height: {line}px; }}
QPushButton:hover, QToolButton:hover {{ border-color: {t.third}; }}
QPushButton:pressed, QToolButton:pressed {{ background: {t.line}; }}
QPushButton:focus, QToolButton:focus {{ border-color: {t.accent}; }}
QPushButton:disabled, QToolButton:disabled {{ color: {t.third}; background: transparent; }}
QPushButton[role="primary"] {{ background: {t.accent}; color: {t.on_accent};
    border-color: {t.accent}; font-weight: bold; }}
QPushButton[role="primary"]:hover {{ border-color: {t.text}; }}
QPushButton[role="primary"]:focus {{ border-color: {t.text}; }}
QPushButton[role="primary"]:disabled {{ background: {t.raised}; color: {t.third}; border-color: {t.line}; }}
QPushButton[role="narrow"] {{ padding-left: 6px; padding-right: 6px; }}
QPushButton[role="link"], QToolButton[role="link"] {{ background: transparent; border: 1px solid transparent;
    color: {t.accent}; padding: 2px 0; text-align: left; }}
QPushButton[role="link"]:hover, QToolButton[role="link"]:hover {{ border-color: {t.line}; }}
QPushButton[role="link"]:focus, QToolButton[role="link"]:focus {{ border-color: {t.accent}; }}
QPushButton[role="link"]:disabled, QToolButton[role="link"]:disabled {{ color: {t.third}; }}
QToolButton::menu-indicator {{ image: none; width: 0; }}

QLineEdit, QPlainTextEdit, QTextEdit, QComboBox, QAbstractSpinBox {{ background: {t.window};
    border: 1px solid {t.line}; border-radius: 4px; padding: 3px 8px; min-height: {line}px;
    placeholder-text-color: {t.third}; }}
QLineEdit:focus, QPlainTextEdit:focus, QTextEdit:focus, QComboBox:focus, QAbstractSpinBox:focus {{
    border-color: {t.accent}; }}
QAbstractSpinBox::up-button, QAbstractSpinBox::down-button {{ width: 0; border: none; }}
QAbstractSpinBox:disabled {{ color: {t.third}; background: transparent; }}
QLineEdit[wrong="true"] {{ border-color: {t.rejected}; }}
QLineEdit:disabled, QComboBox:disabled {{ color: {t.third}; background: transparent; }}
QComboBox::drop-down {{ border: none; width: 24px; }}
QComboBox::down-arrow {{ image: url({down}); width: 12px; height: 12px; }}
QComboBox QAbstractItemView {{ background: {t.raised}; border: 1px solid {t.line};
    selection-background-color: {t.accent}; selection-color: {t.on_accent}; outline: none; }}

QCheckBox, QRadioButton {{ background: transparent; spacing: 8px; }}
QCheckBox:focus, QRadioButton:focus {{ color: {t.accent}; }}
QCheckBox::indicator, QRadioButton::indicator, QAbstractItemView::indicator {{ width: {box}px;
    height: {box}px; background: {t.window}; border: 1px solid {t.third}; border-radius: 3px; }}
QRadioButton::indicator {{ border-radius: {box // 2 + 1}px; }}
QCheckBox::indicator:checked, QRadioButton::indicator:checked, QAbstractItemView::indicator:checked {{
    background: {t.accent}; border-color: {t.accent}; }}
QCheckBox::indicator:checked, QAbstractItemView::indicator:checked {{ image: url({tick}); }}
QCheckBox::indicator:focus, QRadioButton::indicator:focus {{ border-color: {t.text}; }}
QCheckBox::indicator:disabled, QRadioButton::indicator:disabled {{ border-color: {t.line}; }}

QProgressBar {{ background: {t.line}; border: none; border-radius: 3px; min-height: 6px; max-height: 6px; }}
QProgressBar::chunk {{ background: {t.accent}; border-radius: 3px; }}

QAbstractItemView, QGraphicsView, QSlider {{ border: 1px solid transparent; }}
QAbstractItemView:focus, QGraphicsView:focus, QSlider:focus {{ border-color: {t.accent}; }}
QAbstractItemView {{ background: {t.surface}; outline: none;
    selection-background-color: {t.raised}; selection-color: {t.text}; }}
QHeaderView, QHeaderView::section {{ background: {t.surface}; color: {t.third}; border: none;
    font-size: {caption}px; min-height: {header}px; }}
QHeaderView::section {{ border-bottom: 1px solid {t.line}; padding: 2px 8px; }}
QTableView {{ gridline-color: {t.line}; alternate-background-color: {t.surface}; }}
QTableView[role="lines"] {{ selection-background-color: transparent; }}
QTableCornerButton::section {{ background: {t.surface}; border: none; }}

QMenu, QMenuBar {{ background: {t.raised}; }}
QMenu {{ border: 1px solid {t.line}; padding: 4px; }}
QMenu::item {{ padding: 5px 24px 5px 12px; border-radius: 4px; }}
QMenu::item:selected {{ background: {t.accent}; color: {t.on_accent}; }}
QMenu::item:disabled {{ color: {t.third}; }}
QMenu::separator {{ height: 1px; background: {t.line}; margin: 4px 8px; }}

QTabWidget::pane {{ border: none; }}
QTabBar::tab {{ background: transparent; color: {t.second}; padding: 5px 7px; border-radius: 4px; }}
QFileDialog QToolButton {{ padding: 2px; min-height: 0; background: {under_black}; }}
QTabBar QToolButton {{ padding: 0; min-height: 0; border-radius: 0; }}
QTabBar::tab:selected {{ background: {t.raised}; color: {t.text}; font-weight: bold; }}
QTabBar::tab:focus {{ color: {t.accent}; }}

QScrollArea {{ background: transparent; border: none; }}
QAbstractScrollArea::corner {{ background: transparent; border: none; }}
QScrollBar {{ background: transparent; border: none; margin: 0; }}
QScrollBar:vertical {{ width: 10px; }}
QScrollBar:horizontal {{ height: 10px; }}
QScrollBar::handle {{ background: {t.line}; border-radius: 3px; margin: 2px; }}
QScrollBar::handle:vertical {{ min-height: 24px; }}
QScrollBar::handle:horizontal {{ min-width: 24px; }}
QScrollBar::handle:hover {{ background: {t.third}; }}
QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
QSplitter::handle {{ background: {t.line}; }}
QSplitter::handle:hover {{ background: {t.accent}; }}
QSplitter::handle:horizontal {{ width: 1px; }}
QSplitter::handle:vertical {{ height: 1px; }}

QWidget#topBar, QWidget#statusLine {{ background: {t.surface}; }}
QWidget#topBar {{ border-bottom: 1px solid {t.line}; }}
QWidget#statusLine {{ border-top: 1px solid {t.line}; }}
QToolButton#menuButton {{ background: transparent; border-color: transparent; font-size: {min(title, NAME)}px;
    font-weight: bold; padding: 4px 22px 4px 6px; }}
QToolButton#menuButton::menu-indicator {{ image: url({down}); width: {box}px; subcontrol-origin: padding;
    subcontrol-position: right center; right: 6px; }}
QToolButton#menuButton:hover {{ background: {t.raised}; }}
QToolButton#menuButton:focus {{ border-color: {t.accent}; }}
QLabel#studyName, QLabel#progressWords {{ color: {t.second}; }}
QPushButton#workspaceTab {{ background: transparent; border: 1px solid transparent; color: {t.second};
    padding: 4px 14px; }}
QPushButton#workspaceTab:hover {{ color: {t.text}; }}
QPushButton#workspaceTab:checked {{ background: {t.raised}; color: {t.text}; font-weight: bold; }}
QPushButton#workspaceTab:focus {{ border-color: {t.accent}; }}
QLabel#statusMessage {{ font-size: {caption}px; }}
QLabel#statusText, QLabel#statusBackground, QLabel#statusSaved {{
    color: {t.second}; font-size: {caption}px; }}
QWidget#workspaceNotes {{ background: {t.raised}; border-bottom: 1px solid {t.line}; }}
QLabel#workspaceTag {{ font-weight: bold; color: {t.surface}; background: {t.disputed}; border-radius: 3px;
    padding: 1px 6px; }}
QWidget#noticeBar {{ background: {t.raised}; border-bottom: 1px solid {t.line}; }}
QLabel#noticeTone {{ font-weight: bold; color: {t.accent}; }}
QLabel#noticeTone[tone="error"] {{ color: {t.rejected}; }}
"""


def _icon(name: str) -> str:
    path = Path(resources.__path__[0]) / "icons" / f"{name}.svg"
    return f'"{path.as_posix()}"'


CAPTION, BODY, FIGURE = 11, 13, 15
"""Font sizes, in unscaled pixels."""

STYLED = "styled"


class _Notifier(QObject):
    changed = Signal(object)


class _State:
    theme: Theme = DARK
    notifier: _Notifier | None = None


def current() -> Theme:
    """Return the current theme."""
    return _State.theme


def notifier() -> _Notifier:
    """Return the object whose signal ``changed(Theme)`` invalidates painted caches."""
    if _State.notifier is None:
        _State.notifier = _Notifier()
    return _State.notifier


def annotator_style(index: int) -> tuple[str, Symbol]:
    """Return the fixed colour and symbol of an annotator.

    `index`: index in the order of first appearance. The colour is hexadecimal, from the palette of Okabe and
    Ito; the symbol is the name of a shape. Both change with every annotator: neighbours differ in colour and
    shape. Since 8 and 5 have no common divisor, no combination repeats. Annotators beyond all combinations
    have a grey disc.
    """
    colours, symbols = len(ANNOTATOR_COLOURS), len(ANNOTATOR_SYMBOLS)
    if not 0 <= index < colours * symbols:
        return UNNAMED, "disc"
    return ANNOTATOR_COLOURS[index % colours], ANNOTATOR_SYMBOLS[index % symbols]


def colour(token: str, alpha: int = 255) -> QColor:
    """Return the colour of a token; translucent if `alpha` is below 255."""
    color = QColor(token)
    color.setAlpha(alpha)
    return color


@lru_cache(maxsize=64)
def font(size: int = BODY, *, bold: bool = False) -> QFont:
    """Return the system font in unscaled pixels with tabular figures, for painting.

    Widgets need `widget_font`.
    """
    qt_font = QFont(QApplication.font())
    qt_font.setPixelSize(size)
    qt_font.setBold(bold)
    qt_font.setFeature(QFont.Tag("tnum"), 1)
    return qt_font


def widget_font(size: int = BODY, *, bold: bool = False) -> QFont:
    """Return the same font for a widget, at the current text scale."""
    return font(pixels(size), bold=bold)


def set_role(widget: QWidget, role: str) -> None:
    """Set the style sheet role of a widget: caption, number, accepted, rejected ..."""
    if widget.property("role") == role:
        return
    widget.setProperty("role", role)
    if role == "panel":
        widget.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)  # else QWidgets paint no background
    if widget.testAttribute(Qt.WidgetAttribute.WA_WState_Polished):  # Qt styles others when it shows them
        style = widget.style()
        style.unpolish(widget)
        style.polish(widget)
        widget.update()


def apply_theme(application: QApplication, theme: Theme) -> None:
    """Apply a theme to the application: style, palette, style sheet, text scale; notify painted widgets."""
    # Only once, because under a style sheet the style no longer reports its name.
    if not application.property(STYLED):
        application.setStyle("Fusion")
        application.setProperty(STYLED, True)
    _State.theme = theme
    font.cache_clear()
    application.setStyleSheet("")  # removing it first takes a quarter of the time
    application.setFont(widget_font())
    application.setPalette(_palette(theme))
    application.setStyleSheet(style_sheet(theme))
    follow_lengths()
    notifier().changed.emit(theme)


def system_theme(application: QApplication) -> Theme:
    """Return the system's theme; dark if it is unknown."""
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


SMALLEST, LARGEST = 0.8, 2.0
LENGTHS = "lengths"


class _Scale:
    size = 1.0


def text_size() -> float:
    """Return the text scale; 1 is the default."""
    return _Scale.size


def set_text_size(size: float) -> None:
    """Set the text scale, clipped to its range; `theme.apply_theme` applies it."""
    _Scale.size = min(max(size, SMALLEST), LARGEST)


def pixels(length: float) -> int:
    """Convert unscaled to window pixels."""
    return round(length * _Scale.size)


def enlarge(painter: QPainter, box: QRect | QRectF) -> QRectF:
    """Scale a painter; return the box in unscaled pixels."""
    painter.scale(_Scale.size, _Scale.size)
    size = _Scale.size
    return QRectF(box.x() / size, box.y() / size, box.width() / size, box.height() / size)


def usual(position: QPointF) -> QPointF:
    """Convert a widget position to unscaled pixels."""
    return QPointF(position.x() / _Scale.size, position.y() / _Scale.size)


def set_lengths(widget: QWidget, **lengths: int) -> None:
    """Set lengths of a widget that follow the text scale.

    `lengths`: properties of Qt (minimumWidth, maximumHeight, defaultSectionSize ...), or `width` and `height`
    for fixed lengths, in unscaled pixels. Lengths set earlier are kept.
    """
    stored = {**(widget.property(LENGTHS) or {}), **lengths}
    widget.setProperty(LENGTHS, stored)
    _apply(widget, stored)


def follow_lengths() -> None:
    """Update the lengths of all widgets."""
    for widget in QApplication.allWidgets():
        lengths = widget.property(LENGTHS)
        if lengths:
            _apply(widget, lengths)


def _apply(widget: QWidget, lengths: dict[str, int]) -> None:
    # Shrink minimum lengths first: a length below the old minimum would be raised to it.
    # Enlarge them last: otherwise each of the thousands of rows of a list is resized separately.
    least = {name for name in lengths if name.startswith("minimum")}
    grow = any(pixels(lengths[name]) > widget.property(name) for name in least)
    for name, length in sorted(lengths.items(), key=lambda item: (item[0] in least) == grow):
        if name == "width":
            widget.setFixedWidth(pixels(length))
        elif name == "height":
            widget.setFixedHeight(pixels(length))
        else:
            widget.setProperty(name, pixels(length))
