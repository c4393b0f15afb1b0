"""The preview of an import in the window: Enter imports, Cancel leaves nothing behind, names and columns."""

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from raterscope.app.formats.tables import UnknownColumns
from raterscope.app.study import Study
from raterscope.app.study.masks import mask_entries
from raterscope.app.window.import_reading import table_kinds
from raterscope.widgets.dialogs.import_dialogs import ColumnChoices, ColumnMappingDialog
from raterscope.widgets.dialogs.import_preview import ImportDialog, ImportOffer, NamesOffer
from tests.app.driving import idle
from tests.waiting import LONG

VOTES = "worker,item,answer\n" + "".join(
    f"{worker},t{task},{answer}\n" for worker, answer in (("ann", "Cat"), ("bob", "cat")) for task in range(4)
)


@pytest.fixture
def offered(window, qtbot, folder, imports_confirmed):
    """Show the preview of files with these texts."""
    imports_confirmed()

    def show(**texts):
        paths = []
        for name, text in texts.items():
            paths.append(folder / f"{name}.csv")
            paths[-1].write_text(text, encoding="utf-8")
        window.open_paths(paths)
        return wait_for_dialog(window, qtbot)

    return show


def wait_for_dialog(window, qtbot, before=None):
    def shown():
        dialogs = [dialog for dialog in window.findChildren(ImportDialog) if dialog is not before]
        return bool(dialogs) and dialogs[-1].isVisible()

    qtbot.waitUntil(shown, timeout=LONG)
    return window.findChildren(ImportDialog)[-1]


def imported(window, qtbot):
    qtbot.waitUntil(
        lambda: window.document.contents is not None and window.workspace is not None, timeout=LONG
    )
    return window.document.contents


def test_columns_of_annotators_need_no_choice_each(qtbot, tmp_path):
    unknown = UnknownColumns(
        tmp_path / "breit.csv", ("Bild", "Jo", "Wu"), [("a", "Käfer", "")], {}, ("label",)
    )
    kinds, chosen = table_kinds(unknown)
    choices = ColumnChoices(unknown.header, unknown.rows, kinds, chosen)
    qtbot.addWidget(choices)
    choices.kind.setCurrentText("labels, one column per annotator")
    assert choices.mapping == {"Bild": "task", "Jo": "votes", "Wu": "votes"}
    assert not choices.problem()


def test_enter_imports_what_the_preview_lists(window, qtbot, offered, folder):
    dialog = offered(votes="worker,item,answer\nann,t1,a\nbob,t1,b\n")
    assert dialog.study == folder / "votes.rscope"
    assert not dialog.study.exists()
    qtbot.keyClick(dialog, Qt.Key.Key_Return)
    assert imported(window, qtbot).path == folder / "votes.rscope"
    qtbot.waitUntil(lambda: "2 votes by 2 annotators" in window.status.message, timeout=LONG)


def test_cancel_leaves_no_study(window, qtbot, offered, folder):
    dialog = offered(votes=VOTES)
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: window.status.message == "Nothing was imported.", timeout=LONG)
    assert window.document.contents is None
    assert list(folder.glob("*.rscope")) == []


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_offered(window, qtbot, offered, folder):
    dialog = offered(notes="Dear all,\nplease note\n", votes="worker,item,answer\nann,t1,a\nbob,t1,b\n")
    labels = [label.text() for label in dialog.findChildren(QLabel)]
    assert "Skipped, because they cannot be read: notes.csv (see Notices)" in labels
    assert dialog.study == folder / "votes.rscope"
    dialog.accepting.click()
    imported(window, qtbot)
    qtbot.waitUntil(lambda: "2 votes by 2 annotators" in window.status.message, timeout=LONG)


def test_positions_in_micrometres_are_asked_about_without_a_scale(window, qtbot, folder, imports_confirmed):
    imports_confirmed()
    (folder / "c.csv").write_text("annotator,image,x_um,y_um\nann,one.png,5,5\nbob,one.png,6,5\n")
    Image.new("L", (20, 20)).save(folder / "one.png")
    window.open_paths([folder / "c.csv", folder / "one.png"])
    qtbot.waitUntil(lambda: bool(window.findChildren(ColumnMappingDialog)), timeout=LONG)
    (question,) = window.findChildren(ColumnMappingDialog)
    labels = " ".join(label.text() for label in question.findChildren(QLabel))
    assert "in µm, and the size of a pixel of one.png is unknown" in labels
    assert question.mapping == {"annotator": "annotator", "image": "image", "x_um": "x", "y_um": "y"}
    question.accepting.click()
    dialog = wait_for_dialog(window, qtbot)
    dialog.accepting.click()
    imported(window, qtbot)
    qtbot.waitUntil(lambda: "Read as pixels, as you named them" in window.status.message, timeout=LONG)


def masks_of_cells(folder):
    """Write a photograph, and masks of it by two annotators: one as JPEG, one by its opacity."""
    grey = np.random.default_rng(0).integers(0, 255, (60, 80), dtype=np.uint8)
    Image.fromarray(grey).save(folder / "cell.png")
    inside = np.zeros((60, 80), dtype=np.uint8)
    inside[20:40, 24:56] = 255
    Image.fromarray(inside).convert("RGB").save(folder / "cell_mask_anna.jpg", quality=75)
    opaque = np.dstack([np.zeros((60, 80, 3), dtype=np.uint8), inside])
    Image.fromarray(opaque).save(folder / "cell_mask_ben.png")
    return [folder / name for name in ("cell.png", "cell_mask_anna.jpg", "cell_mask_ben.png")]


def tab_titles(dialog):
    return [dialog.tabs.tabText(at) for at in range(dialog.tabs.count())]


def notices_of(dialog):
    at = next(at for at, title in enumerate(tab_titles(dialog)) if title.startswith("Notices"))
    table = dialog.tabs.widget(at)
    return " ".join(table.item(row, 0).text() for row in range(table.rowCount()))


def test_a_file_read_as_mask_can_be_an_image_and_a_mask_again(window, qtbot, folder, imports_confirmed):
    imports_confirmed()
    window.open_paths(masks_of_cells(folder))
    dialog = wait_for_dialog(window, qtbot)
    assert {"Images (1)", "Masks (2)", "Types (3)"} <= set(tab_titles(dialog))
    assert "cell_mask_anna.jpg: Its edges are blurred by JPEG" in notices_of(dialog)
    assert "cell_mask_ben.png: Its pixels have one colour" in notices_of(dialog)

    def toggle(name, checked):
        (row,) = (at for at in range(3) if dialog.types.item(at, 0).text() == name)
        assert dialog.types.item(row, 1).checkState() != checked
        dialog.types.item(row, 1).setCheckState(checked)
        assert dialog.accepting.text() == "Read again"
        dialog.accepting.click()
        return wait_for_dialog(window, qtbot, dialog)

    dialog = toggle("cell_mask_anna.jpg", Qt.CheckState.Unchecked)
    assert {"Images (2)", "Masks (1)"} <= set(tab_titles(dialog))
    dialog = toggle("cell_mask_anna.jpg", Qt.CheckState.Checked)
    assert dialog.accepting.text() == "Import"
    dialog.accepting.click()
    contents = imported(window, qtbot)
    idle(window, qtbot)
    assert sorted(contents.annotators) == ["anna", "ben"]
    with Study.open(contents.path, to_read=True) as study:
        assert all(abs(entry.voxels - 640) <= 2 for entry in mask_entries(study))


def test_new_readings_of_tables_are_named_before_the_import(window, qtbot, folder, imports_confirmed):
    imports_confirmed()
    Image.new("L", (400, 300)).save(folder / "one.png")
    clicks = "annotator,image,x,y\n" + "".join(f"ann,one.png,{9 * n},{95 - 9 * n}\n" for n in range(8))
    labels = "annotator,task,label,confidence\nann,t1,cat,0.5\nann,t2,skip,0.1\nann,t3,dog,1\n"
    games = "annotator,left,right,result\nann,x,y,1\nbob,x,y,0.5\neve,x,y,0\n"
    (folder / "clicks.csv").write_text(clicks)
    (folder / "labels.csv").write_text(labels)
    (folder / "games.csv").write_text(games)
    window.open_paths([folder / name for name in ("one.png", "clicks.csv", "labels.csv", "games.csv")])
    notices = notices_of(wait_for_dialog(window, qtbot))
    assert "clicks.csv: all positions lie between 0 and 100" in notices
    assert "labels.csv: skip is a class." in notices
    assert "labels.csv: confidence is not used" in notices
    assert "games.csv: The choices 1, 0.5 and 0 are read as left, tie and right." in notices


def test_a_class_without_a_name_is_no_answer(window, qtbot, offered, folder):
    labels = "annotator,task,label\nann,t1,cat\nann,t2,skip\nbob,t1,dog\nbob,t2,cat\neve,t1,skip\n"
    dialog = offered(votes=labels)
    names = dialog.names["class"]
    (row,) = (at for at in range(names.rowCount()) if names.item(at, 0).text() == "skip")
    names.item(row, 2).setText("")
    assert dialog.accepting.isEnabled()
    dialog.accepting.click()
    contents = imported(window, qtbot)
    qtbot.waitUntil(lambda: "3 votes by 3 annotators" in window.status.message, timeout=LONG)
    assert "2 votes skipped: its class has no name" in window.status.message
    with Study.open(contents.path, to_read=True) as study:
        (question,) = study.questions()
        assert set(question.scheme.outputs) == {"cat", "dog"}


def test_clicks_can_be_read_as_percent_of_their_images(window, qtbot, folder, imports_confirmed):
    imports_confirmed()
    Image.new("L", (400, 300)).save(folder / "one.png")
    lines = [f"ann,one.png,{10 * n},{90 - 10 * n}" for n in range(8)]
    (folder / "clicks.csv").write_text("\n".join(["annotator,image,x,y", *lines]))
    window.open_paths([folder / "one.png", folder / "clicks.csv"])
    before = wait_for_dialog(window, qtbot)
    (table,) = before.tables
    table.kind.setCurrentText("clicks in percent")
    assert table.mapping == {"annotator": "annotator", "image": "image", "x": "x_percent", "y": "y_percent"}
    before.accepting.click()
    dialog = wait_for_dialog(window, qtbot, before)
    (table,) = dialog.tables
    assert table.kind.currentText() == "clicks in percent"
    assert "Positions in percent were multiplied by the image's width and height" in notices_of(dialog)
    assert "all positions lie between" not in notices_of(dialog)
    dialog.accepting.click()
    contents = imported(window, qtbot)
    idle(window, qtbot)
    with Study.open(contents.path, to_read=True) as study:
        clicks = study.clicks(contents.images[0].id)
    assert sorted(zip(clicks.x, clicks.y, strict=True)) == [(40 * n, 270 - 30 * n) for n in range(8)]


def test_spellings_are_joined_and_can_be_kept_apart(window, qtbot, offered, folder):
    dialog = offered(votes=VOTES)
    assert dialog.new_names("class") == {"cat": "Cat"}
    names = dialog.names["class"]
    (row,) = (at for at in range(names.rowCount()) if names.item(at, 0).text() == "cat")
    names.item(row, 2).setText("tomcat")
    dialog.accepting.click()
    imported(window, qtbot)
    window.document.leave()
    window.jobs.close()
    with Study.open(folder / "votes.rscope", to_read=True) as study:
        (question,) = study.questions()
        assert set(question.scheme.outputs) == {"Cat", "tomcat"}


def test_changed_columns_are_read_again(window, qtbot, offered, folder):
    dialog = offered(votes="worker,item,answer,grade\nann,t1,a,1\nbob,t1,b,2\n")
    (table,) = dialog.tables
    assert table.mapping["answer"] == "label"
    table.choices[2].setCurrentIndex(0)
    assert not dialog.accepting.isEnabled()
    table.choices[3].setCurrentIndex(table.choices[3].findData("label"))
    assert dialog.accepting.text() == "Read again"
    dialog.accepting.click()
    again = wait_for_dialog(window, qtbot, before=dialog)
    assert set(again.names["class"].changes()) == set()
    assert again.tables[0].mapping == {"worker": "annotator", "item": "task", "grade": "label"}
    again.accepting.click()
    assert imported(window, qtbot).path == folder / "votes.rscope"


def test_cells_read_as_tags_can_be_kept_whole(window, qtbot, offered):
    """Six texts, of which all have two tags: a question a tag, unless the user chooses labels."""
    dialog = offered(votes="worker,item,answer\n" + "".join(f"ann,t{task},sport;war\n" for task in range(6)))
    (table,) = dialog.tables
    assert table.kind.currentText() == "labels, several tags each"
    assert table.mapping == {"worker": "annotator", "item": "task", "answer": "tags"}
    table.kind.setCurrentIndex(table.kind.findText("labels"))
    dialog.accepting.click()
    again = wait_for_dialog(window, qtbot, before=dialog)
    assert again.tables[0].mapping["answer"] == "label"
    again.accepting.click()
    assert [entry.name for entry in imported(window, qtbot).of("labels")] == ["labels"]


def test_clicks_without_pictures_get_the_proposed_size(window, qtbot, offered):
    dialog = offered(clicks="annotator,image,x,y\nann,a.png,99,20\nbob,a.png,90,50\n")
    dialog.width_field.setValue(300)
    dialog.accepting.click()
    (image,) = imported(window, qtbot).images
    assert (image.width, image.height) == (300, 51)


def test_a_study_that_cannot_be_created_leaves_nothing_and_asks_again(window, qtbot, offered, folder):
    dialog = offered(votes=VOTES)
    dialog.study_field.setText(str(folder / "missing" / "votes"))
    dialog.accepting.click()
    again = wait_for_dialog(window, qtbot, before=dialog)
    assert "there is no folder" in window.notice.text
    assert window.document.contents is None
    again.study_field.setText(str(folder / "there"))
    again.accepting.click()
    assert imported(window, qtbot).path == folder / "there.rscope"
    qtbot.waitUntil(lambda: "8 votes" in window.status.message, timeout=LONG)
    assert not window.notice.isVisible()


def test_names_that_are_not_edited_keep_their_spaces(qtbot):
    offer = ImportOffer((), names=(NamesOffer("class", "Classes", {"ring  form": 2, "cat": 1}, {}),))
    dialog = ImportDialog(offer)
    qtbot.addWidget(dialog)
    assert dialog.new_names("class") == {}
    row = next(at for at in range(2) if dialog.names["class"].item(at, 0).text() == "cat")
    dialog.names["class"].item(row, 2).setText(" tom  cat ")
    assert dialog.new_names("class") == {"cat": "tom cat"}


def test_names_are_sorted_by_a_click_and_counted_as_they_are_imported(qtbot):
    names = {"bob": 12, "Zoe": 9, "anna.m": 7, "Anna": 100}
    dialog = ImportDialog(
        ImportOffer((), names=(NamesOffer("annotator", "Annotators", names, {}, frozenset()),))
    )
    qtbot.addWidget(dialog)
    table = dialog.names["annotator"]

    def listed():
        return [table.item(row, 0).text() for row in range(4)]

    assert dialog.tabs.tabText(0) == "Annotators (4)"
    assert listed() == ["Anna", "bob", "Zoe", "anna.m"]
    table.horizontalHeader().sectionClicked.emit(0)
    assert listed() == ["Anna", "anna.m", "bob", "Zoe"]
    table.item(1, 2).setText("Anna ")
    assert dialog.tabs.tabText(0) == "Annotators (4 as 3)"
    table.horizontalHeader().sectionClicked.emit(1)
    assert listed() == ["Anna", "bob", "Zoe", "anna.m"]
    assert dialog.new_names("annotator") == {"anna.m": "Anna"}


def test_the_order_of_grades_is_declared(window, qtbot, offered):
    words = ("low", "medium", "high")
    rows = [f"{worker},t{task},{words[task % 3]}\n" for worker in ("ann", "bob") for task in range(6)]
    dialog = offered(votes="worker,item,answer\n" + "".join(rows))
    dialog.scale.grades.setText("low, medium, hi")
    assert "no class hi" in dialog.problem()
    assert not dialog.accepting.isEnabled()
    dialog.scale.grades.setText("low, medium, high")
    dialog.accepting.click()
    path = imported(window, qtbot).path
    idle(window, qtbot)
    window.document.close()
    idle(window, qtbot)
    with Study.open(path) as study:
        (question,) = study.questions()
        labels = study.vote_set(question.id).labels(study.annotators())
    assert (labels.classes, labels.ordered) == (words, True)
    assert [labels.outputs[label] for label in labels.label[:6]] == [*words, *words]


def test_the_separator_of_a_hierarchy_is_declared(qtbot):
    names = {"bird - owl": 3, "bird - crow": 2, "fish": 1, "-": 1}
    offer = ImportOffer((), names=(NamesOffer("class", "Classes", names, {}),), labelled=True)
    dialog = ImportDialog(offer)
    qtbot.addWidget(dialog)
    dialog.scale.separator.setText("- ")
    dialog.scale.separator.setText("r")
    dialog.scale.separator.setText("-")
    assert dialog.new_names("class") == {"bird - owl": "bird/owl", "bird - crow": "bird/crow"}
    dialog.scale.grades.setText("bird/owl; fish; fish")
    assert "twice" in dialog.problem()
