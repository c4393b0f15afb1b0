import itertools

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFontMetrics, QPalette
from PySide6.QtWidgets import QCheckBox, QFileDialog, QLabel, QTableWidget, QTableWidgetItem, QToolButton

from raterscope.widgets import theme


def _luminance(token: str) -> float:
    colour = QColor(token)
    channels = [colour.redF(), colour.greenF(), colour.blueF()]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(first: str, second: str) -> float:
    dark, light = sorted((_luminance(first), _luminance(second)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("look", [theme.DARK, theme.LIGHT], ids=lambda look: look.name)
def test_words_keep_a_contrast_of_four_and_a_half(look):
    words = (look.text, look.second, look.third, look.accent, look.rejected, look.disputed)
    for word, ground in itertools.product(words, (look.window, look.surface, look.raised)):
        assert _contrast(word, ground) >= 4.5, (word, ground)
    assert _contrast(look.on_accent, look.accent) >= 4.5


def test_forty_annotators_differ_and_keep_their_style():
    styles = [theme.annotator_style(index) for index in range(40)]
    assert len(set(styles)) == 40
    assert len({colour for colour, _ in styles[:8]}) == 8
    assert all(first[1] != second[1] for first, second in itertools.pairwise(styles))
    assert theme.annotator_style(40) == theme.annotator_style(4999)
    assert theme.annotator_style(40) not in styles


@pytest.fixture
def restored(qapp):
    yield qapp
    theme.apply_theme(qapp, theme.DARK)


def test_a_theme_reaches_palette_style_and_those_who_paint_themselves(restored, qtbot):
    messages = []
    theme.notifier().changed.connect(messages.append)
    theme.apply_theme(restored, theme.LIGHT)
    theme.notifier().changed.disconnect(messages.append)
    assert messages == [theme.LIGHT]
    assert theme.current() is theme.LIGHT
    assert restored.palette().color(QPalette.ColorRole.Window) == QColor(theme.LIGHT.window)
    label = QLabel("words")
    qtbot.addWidget(label)
    theme.set_role(label, "rejected")
    label.ensurePolished()  # as Qt does before it shows a widget
    assert label.palette().color(QPalette.ColorRole.WindowText) == QColor(theme.LIGHT.rejected)


def test_a_ticked_box_shows_a_tick_and_not_a_colour_alone(restored, qtbot):
    theme.apply_theme(restored, theme.DARK)
    box = QCheckBox()
    qtbot.addWidget(box)
    box.setChecked(True)
    picture = box.grab().toImage()
    results = {picture.pixelColor(x, y).name() for x in range(16) for y in range(picture.height())}
    assert theme.DARK.accent in results
    assert any(_contrast(colour, theme.DARK.accent) > 4 for colour in results - {theme.DARK.window})


@pytest.mark.parametrize("look", [theme.DARK, theme.LIGHT], ids=lambda look: look.name)
@pytest.mark.parametrize(
    "state", [Qt.CheckState.Unchecked, Qt.CheckState.Checked], ids=lambda state: state.name
)
def test_a_box_in_a_table_is_seen_as_outside_of_one(restored, qtbot, look, state):
    theme.apply_theme(restored, look)
    table = QTableWidget(1, 1)
    qtbot.addWidget(table)
    item = QTableWidgetItem()
    item.setCheckState(state)
    table.setItem(0, 0, item)
    picture = table.viewport().grab(table.visualItemRect(item).adjusted(1, 1, -1, -1)).toImage()
    colours = {
        picture.pixelColor(x, y).name() for x in range(picture.width()) for y in range(picture.height())
    }
    assert (look.accent if state == Qt.CheckState.Checked else look.third) in colours


@pytest.mark.usefixtures("qapp")
def test_figures_all_have_one_width():
    metrics = QFontMetrics(theme.font(theme.FIGURE))
    assert len({metrics.horizontalAdvance(figure * 5) for figure in "0123456789"}) == 1


@pytest.mark.parametrize("look", [theme.DARK, theme.LIGHT], ids=lambda look: look.name)
def test_the_buttons_of_qts_own_file_dialog_show_what_they_are(qapp, qtbot, look):
    theme.apply_theme(qapp, look)
    dialog = QFileDialog()
    qtbot.addWidget(dialog)
    dialog.setOption(QFileDialog.Option.DontUseNativeDialog)
    dialog.show()
    up = dialog.findChild(QToolButton, "toParentButton")
    up.setEnabled(True)
    image = up.grab(up.rect().adjusted(5, 5, -5, -5)).toImage()
    observed = [
        image.pixelColor(x, y).lightness() for x in range(image.width()) for y in range(image.height())
    ]
    assert max(observed) - min(observed) > 100
