"""Pictures of the window: one size, one font, one time zone."""

import time

import pytest
from PySide6.QtGui import QCursor, QFont, QFontInfo
from PySide6.QtWidgets import QApplication

from raterscope.app.window.main_window import MainWindow
from raterscope.widgets import theme
from tests.app.conftest import forgetful, hurried
from tests.pictures.studies import make_study
from tests.qt_leaks import nothing_is_left
from tests.waiting import qtbot

__all__ = ["forgetful", "hurried", "nothing_is_left", "qtbot"]

FONT = "DejaVu Sans"
SIZE = (1280, 800)


@pytest.fixture
def pinned_font(qapp):
    """The program in DejaVu Sans without hinting, which the system's libraries bring along."""
    before = QApplication.font()
    font = QFont(FONT)
    font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    font.setStyleStrategy(QFont.StyleStrategy.NoSubpixelAntialias)
    assert QFontInfo(font).family() == FONT, "install fonts-dejavu-core: pictures are compared in its font"
    QApplication.setFont(font)
    yield
    QApplication.setFont(before)


@pytest.fixture
def in_utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def picture_window(qapp, qtbot, pinned_font, in_utc):
    """The window in the dark theme."""
    theme.apply_theme(qapp, theme.DARK)
    QCursor.setPos(0, 0)  # other tests leave the pointer where it would highlight a card
    window = MainWindow(remembers=False)
    window.resize(*SIZE)
    with qtbot.waitActive(window):
        window.show()
        window.activateWindow()
    yield window
    window.close()
    window.deleteLater()


@pytest.fixture(scope="session")
def studies(tmp_path_factory):
    """Make the study of a kind when it is first asked for."""
    created = {}

    def study(kind):
        if kind not in created:
            created[kind] = make_study(kind, tmp_path_factory.mktemp(kind))
        return created[kind]

    return study
