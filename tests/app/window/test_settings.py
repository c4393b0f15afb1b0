"""Settings of the program: changed in a dialog, applied at once, kept for the next start."""

import os
import shutil

import pytest

from raterscope.app.formats.pyramids.container import PyramidCache
from raterscope.app.program_files import CACHE, EXPERT, login_name, user_name
from raterscope.app.window import preferences
from raterscope.widgets import theme
from raterscope.widgets.dialogs.settings_dialog import SettingsDialog
from raterscope.widgets.theme import set_text_size, text_size
from tests.app.driving import command, idle, open_study


@pytest.fixture(autouse=True)
def usual(qapp, monkeypatch):
    for variable in (EXPERT, CACHE):
        monkeypatch.delenv(variable, raising=False)
    theme.apply_theme(qapp, theme.DARK)
    yield
    for variable in (EXPERT, CACHE):
        os.environ.pop(variable, None)
    set_text_size(1.0)
    theme.apply_theme(qapp, theme.DARK)


def open_dialog(window):
    command(window, "Settings…")
    (dialog,) = window.findChildren(SettingsDialog)
    return dialog


def test_settings_are_applied_and_kept(window, qtbot, tmp_path):
    dialog = open_dialog(window)
    fields = (dialog.theme, dialog.expert, *dialog.algorithms.values())
    assert len({field.x() for field in fields}) == 1
    dialog.theme.setCurrentIndex(dialog.theme.findData("light"))
    dialog.text_percent.setValue(130)
    dialog.expert.setText(" Dr. Ada ")
    dialog.cache.text = str(tmp_path / "caches")
    dialog.accept()
    idle(window, qtbot)
    assert theme.current() is theme.LIGHT
    assert text_size() == pytest.approx(1.3)
    assert user_name() == "Dr. Ada"
    assert PyramidCache.of_user().folder == tmp_path / "caches" / "pyramids"
    kept = preferences.program_settings()
    assert (kept.theme, kept.text_percent, kept.expert) == ("light", 130, "Dr. Ada")
    os.environ.pop(EXPERT)
    preferences.apply_names()  # as at the next start
    assert user_name() == "Dr. Ada"


def test_new_studies_are_fused_with_the_algorithms_chosen_in_the_settings(
    opened, qtbot, study_fused, tmp_path
):
    def choose(**titles):
        dialog = open_dialog(opened)
        for choice, title in titles.items():
            dialog.algorithms[f"clicks/{choice}"].setCurrentText(title)
        dialog.accept()
        idle(opened, qtbot)

    def chosen():
        request = opened.workspace.fuse_panel.request()
        return request.algorithm, request.detector

    choose(algorithm="DBSCAN", detector="majority vote")
    assert chosen() == ("dbscan", "majority")
    open_study(opened, qtbot, shutil.copy(study_fused, tmp_path / "fused.rscope"))
    assert chosen() == ("oem", "dem")  # as it was fused
    open_study(opened, qtbot, tmp_path / "small.rscope")
    assert chosen() == ("dbscan", "majority")
    choose(algorithm="OEM clustering (recommended)")
    assert chosen() == ("oem", "majority")


def test_cancel_changes_nothing_and_empty_fields_are_the_defaults(window, qtbot):
    dialog = open_dialog(window)
    dialog.expert.setText("Ada")
    dialog.reject()
    idle(window, qtbot)
    assert user_name() == login_name()
    dialog = open_dialog(window)
    dialog.accept()
    idle(window, qtbot)
    assert user_name() == login_name()
    assert CACHE not in os.environ


def test_a_name_of_the_environment_counts_more(monkeypatch):
    preferences.remember(preferences.NAMES[EXPERT], "Ada")
    monkeypatch.setenv(EXPERT, "Ben")
    preferences.apply_names()
    assert user_name() == "Ben"


def test_saving_another_setting_keeps_a_name_of_the_environment(window, qtbot, monkeypatch):
    monkeypatch.setenv(EXPERT, "Ben")
    dialog = open_dialog(window)
    dialog.text_percent.setValue(110)
    dialog.accept()
    idle(window, qtbot)
    assert user_name() == "Ben"
