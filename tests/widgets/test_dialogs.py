import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QPushButton

from raterscope.widgets.dialogs.answers import Answers, AnswersDialog
from raterscope.widgets.dialogs.import_dialogs import (
    AnnotatorNamesDialog,
    ColumnMappingDialog,
    MappingField,
    TableKind,
)
from raterscope.widgets.dialogs.import_preview import ImportDialog, ImportOffer, NamesOffer, TableOffer
from raterscope.widgets.dialogs.review_dialogs import ReasonDialog, RegistrationDialog

FIELDS = [
    MappingField("annotator", "annotator"),
    MappingField("x", "x"),
    MappingField("y", "y"),
    MappingField("time", "time", required=False),
]


@pytest.fixture
def dialog_opener(qapp):
    """Return a function that opens a dialog, and the list of its answers: a closed dialog deletes itself."""
    answers = []

    def ask(dialog: QDialog, read):
        dialog.accepted.connect(lambda: answers.append(read(dialog)))
        dialog.open()
        return dialog

    return ask, answers


def test_a_common_reason_takes_two_keys(dialog_opener, qtbot):
    ask, answers = dialog_opener
    dialog = ask(ReasonDialog("w-1004"), lambda d: d.reason)
    assert not dialog.accepting.isEnabled()
    dialog.buttons[1].click()
    qtbot.keyClick(dialog.edit, Qt.Key.Key_Return)
    assert answers == ["marks very little"]


def test_ones_own_words_do_too_but_blanks_do_not(dialog_opener, qtbot):
    ask, answers = dialog_opener
    dialog = ask(ReasonDialog("w-1004"), lambda d: d.reason)
    qtbot.keyClicks(dialog.edit, "   ")
    assert not dialog.accepting.isEnabled()
    qtbot.keyClicks(dialog.edit, "left-handed ")
    dialog.accepting.click()
    assert answers == ["left-handed"]


def test_escape_excludes_no_annotator(dialog_opener, qtbot):
    ask, answers = dialog_opener
    dialog = ask(ReasonDialog("w-1004"), lambda d: d.reason)
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert answers == []


def _columns():
    return ColumnMappingDialog(("a", "b"), [("1", "2")], [TableKind("clicks", tuple(FIELDS), {})])


def _preview():
    table = TableOffer("t.csv", ("a", "b"), [("1", "2")], [TableKind("clicks", tuple(FIELDS), {})], 0)
    names = NamesOffer("annotator", "Annotators", {"ann": 2, "bob": 1}, {}, frozenset())
    return ImportDialog(ImportOffer((), (table,), (names,), listed={"Images": (("Image",), [("a.png",)])}))


def _answers():
    return AnswersDialog("Infected?", Answers(("no", "yes"), ("healthy", "infected"), (0, 1)))


def _annotators():
    return AnnotatorNamesDialog(["a.csv", "b.csv"], ["ann", "bob"], lambda _row, text: text)


@pytest.mark.parametrize("make", [_columns, _preview, _answers, _annotators])
def test_tab_leaves_the_tables_of_a_dialog(make, qtbot):
    dialog = make()
    qtbot.addWidget(dialog)
    dialog.show()
    dialog.activateWindow()
    qtbot.waitUntil(dialog.isActiveWindow)
    cancel = next(button for button in dialog.findChildren(QPushButton) if button.text() == "Cancel")
    for at in range(dialog.tabs.count() if make is _preview else 1):
        if make is _preview:
            dialog.tabs.setCurrentIndex(at)
        cancel.setFocus()
        visited = []
        for _ in range(60):
            qtbot.keyClick(dialog.focusWidget(), Qt.Key.Key_Tab)
            visited.append(dialog.focusWidget())
        assert visited.count(cancel) > 1, [type(widget).__name__ for widget in visited[-3:]]


def clicks(guess):
    return [TableKind("clicks", tuple(FIELDS), guess)]


def test_a_table_may_be_imported_as_another_kind(dialog_opener):
    ask, answers = dialog_opener
    truths = (MappingField("task", "task"), MappingField("truth", "true label"))
    kinds = [*clicks({"cell": "x"}), TableKind("true labels", truths, {"cell": "task"})]
    dialog = ask(ColumnMappingDialog(["cell", "said"], [["c1", "ring"]], kinds), lambda d: d.mapping)
    assert dialog.mapping == {"cell": "x"}
    dialog.columns.kind.setCurrentIndex(1)
    assert dialog.columns.problem() == "No column is selected for true label."
    dialog.columns.choices[1].setCurrentIndex(dialog.columns.choices[1].findData("truth"))
    dialog.accepting.click()
    assert answers == [{"cell": "task", "said": "truth"}]


def test_columns_are_mapped_by_hand(dialog_opener):
    ask, answers = dialog_opener
    dialog = ask(
        ColumnMappingDialog(
            ["wer", "px", "py", "note"], [["anna", "1", "2"]] * 9, clicks({"px": "x", "py": "y"})
        ),
        lambda d: d.mapping,
    )
    assert dialog.columns.problem() == "No column is selected for annotator."
    assert not dialog.accepting.isEnabled()
    choice = dialog.columns.choices[0]
    choice.setCurrentIndex(choice.findData("annotator"))
    assert dialog.columns.problem() == ""
    dialog.accepting.click()
    assert answers == [{"wer": "annotator", "px": "x", "py": "y"}]


def test_one_field_in_two_columns_is_refused(dialog_opener):
    ask, _ = dialog_opener
    dialog = ask(
        ColumnMappingDialog(["a", "b", "c"], [], clicks({"a": "annotator", "b": "x", "c": "y"})), str
    )
    choice = dialog.columns.choices[2]
    choice.setCurrentIndex(choice.findData("x"))
    assert dialog.columns.problem() == "No column is selected for y."
    dialog.columns.choices[0].setCurrentIndex(dialog.columns.choices[0].findData("y"))
    choice.setCurrentIndex(choice.findData("y"))
    dialog.columns.choices[1].setCurrentIndex(dialog.columns.choices[1].findData("annotator"))
    assert dialog.columns.problem() == "No column is selected for x."
    dialog.reject()


def test_missing_parts_are_listed_in_words(dialog_opener):
    names = (("annotator", "annotator"), ("x", "x, pixels"), ("y", "y, pixels"))
    kind = TableKind("clicks", tuple(MappingField(*name) for name in names), {})
    ask, _ = dialog_opener
    dialog = ask(ColumnMappingDialog(["1", "2", "3"], [], [kind]), str)
    assert dialog.columns.problem() == "No column is selected for annotator, x and y."
    dialog.reject()


def test_long_and_many_lined_cells_stay_one_short_line(qtbot):
    dialog = ColumnMappingDialog(["x" * 500], [["a\nb" * 400]], clicks({}))
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    qtbot.addWidget(dialog)
    assert len(dialog.columns._table.item(1, 0).text()) <= 60
    assert "\n" not in dialog.columns._table.item(1, 0).text()


def names_of(pattern):
    def named(row, text):
        if text.count("{") != text.count("}"):
            raise ValueError("That is no pattern.")
        return ["anna", "ben", None, None][row] if text == pattern else None

    return named


def test_who_marked_each_file_is_named_by_hand(dialog_opener):
    ask, answers = dialog_opener
    dialog = ask(
        AnnotatorNamesDialog(["a.nii", "b.nii", "c.nii"], ["", "b", "c"], names_of("")), lambda d: d.names
    )
    assert "a.nii" in dialog.problem()
    assert not dialog.accepting.isEnabled()
    dialog.table.item(0, 1).setText(" Anna  Arber ")
    dialog.truths[2].click()
    dialog.accepting.click()
    assert answers == [["Anna Arber", "b", None]]


def test_a_pattern_names_all_that_it_fits(dialog_opener, qtbot):
    ask, answers = dialog_opener
    dialog = ask(
        AnnotatorNamesDialog(["a", "b", "c"], ["x", "y", "z"], names_of("{item}_{annotator}")),
        lambda d: (d.names, d.pattern),
    )
    qtbot.keyClicks(dialog.pattern_field, "{item")
    assert not dialog.accepting.isEnabled()
    qtbot.keyClicks(dialog.pattern_field, "}_{annotator}")
    qtbot.keyClick(dialog.pattern_field, Qt.Key.Key_Return)
    assert answers == [(["anna", "ben", "z"], "{item}_{annotator}")]


def test_files_that_a_pattern_does_not_fit_keep_name_and_tick(dialog_opener, qtbot):
    ask, answers = dialog_opener
    dialog = ask(
        AnnotatorNamesDialog(["ct_a", "ct_b", "c", "d"], ["w", "x", "y", ""], names_of("ct_{annotator}")),
        lambda d: (d.names, d.pattern),
    )
    dialog.truths[2].click()
    dialog.table.item(3, 1).setText("dora")
    qtbot.keyClicks(dialog.pattern_field, "ct_{annotator}")
    dialog.accepting.click()
    assert answers == [(["anna", "ben", None, "dora"], "ct_{annotator}")]


def test_one_name_for_all(dialog_opener, qtbot):
    ask, answers = dialog_opener
    dialog = ask(AnnotatorNamesDialog(["a", "b"], ["x", "y"], names_of("")), lambda d: (d.names, d.pattern))
    qtbot.keyClicks(dialog.pattern_field, "anna")
    dialog.accepting.click()
    assert answers == [(["anna", "anna"], "")]


def test_the_dialog_of_a_registration_grows_with_its_sentence(qtbot):
    dialog = RegistrationDialog("CT", {2: "PET"}, 2)
    qtbot.addWidget(dialog)
    dialog.show_motion((0, 0, 0), (0, 0, 0), "Placed by the positions in the files.", moved=False)
    dialog.show()
    words = "Moved by 12.0 mm and rotated by 0.0°, as typed; 94 % of the smaller volume overlaps. " * 2
    dialog.show_motion((12, 0, 0), (0, 0, 0), words, moved=True)
    qtbot.waitUntil(
        lambda: dialog.position.height() >= dialog.position.heightForWidth(dialog.position.width())
    )
    assert min(editor.height() for editor in dialog.rotation) >= dialog.rotation[0].sizeHint().height()
