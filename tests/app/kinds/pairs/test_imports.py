"""Import of comparisons: distinguished from other tables, with pictures of the items, in any order."""

import pytest

from raterscope.app.formats import UnknownColumns
from raterscope.app.importing import read_files, store
from raterscope.app.kinds.masks.imports import StudyImages
from raterscope.app.kinds.pairs.imports import items_of
from raterscope.app.study.masks import mask_entries
from raterscope.app.study.pairs import item_pictures, pairs_of
from tests.app.kinds.pairs.made import HEADER
from tests.app.kinds.tables import digits, study
from tests.app.tables import write

__all__ = ["study"]

ROWS = [
    ("ann", "c0", "c1", "left"), ("ann", "c2", "c0", "right"), ("bob", "c1", "c2", "tie"),
    ("bob", "c0", "c2", "c0"),
]  # fmt: skip


@pytest.fixture
def import_files(study):
    def import_files(*paths, **options):
        at_hand = StudyImages(tuple(study.images()), study.path, items_of(study))
        return " ".join(store(read_files(paths, at_hand=at_hand, **options), study))

    return import_files


@pytest.fixture
def comparisons(tmp_path):
    return write(tmp_path / "better.csv", HEADER, ROWS)


def test_a_table_of_comparisons_is_distinguished_from_others(import_files, study, comparisons, tmp_path):
    votes = write(tmp_path / "votes.csv", ("annotator", "task", "label"), [("ann", "t1", "cat")])
    clicks = write(tmp_path / "clicks.csv", ("annotator", "image", "x", "y"), [("eve", "one.png", "3", "4")])
    output = import_files(votes, comparisons)
    assert "better.csv: 4 comparisons of 3 items by 2 annotators." in output
    assert read_files([clicks]).clicks
    (question,) = study.pair_questions()
    pairs = pairs_of(study, question.id)
    assert pairs.choice.tolist() == [1.0, -1.0, 0.0, 1.0]
    assert [pairs.items[at] for at in pairs.right] == ["c1", "c0", "c2", "c2"]
    assert [question.name for question in study.questions()] == ["labels"]


def test_comparisons_that_come_twice_are_reported(import_files, comparisons, tmp_path):
    """They count twice, with a notice."""
    assert "earlier file" not in import_files(comparisons)
    words = "of two items that the annotator also compares on these sides in an earlier file)"
    assert f"(all 4 {words}" in import_files(comparisons)
    rows = [("bob", "c2", "c1", "left"), ("ann", "c0", "c1", "right"), ("cid", "c0", "c1", "left")]
    assert f"(1 {words}" in import_files(write(tmp_path / "more.csv", HEADER, rows))
    assert "earlier file" not in import_files(
        write(tmp_path / "new.csv", HEADER, [("cid", "c2", "c3", "left")])
    )


def test_tables_without_a_question_imported_together_are_named_by_their_files(import_files, study, tmp_path):
    paths = [
        write(tmp_path / f"{name}.csv", HEADER, [("ann", f"{name} 1", f"{name} 2", "left")])
        for name in ("taste", "smell", "sound")
    ]
    import_files(*paths)
    assert [question.name for question in study.pair_questions()] == ["taste", "smell", "sound"]


def test_what_is_skipped_is_reported(import_files, study, tmp_path):
    rows = [*ROWS, ("cid", "c1", "c1", "left"), ("cid", "c0", "c1", "perhaps"), ("cid", "c0", "c2", "")]
    output = import_files(write(tmp_path / "odd.csv", HEADER, rows))
    assert "1 row skipped: line 6 compares an item with itself." in output
    assert 'line 7 has the choice "perhaps"' in output
    assert "1 row without an answer skipped." in output
    assert "4 comparisons of 3 items by 2 annotators." in output  # cid is left with none
    assert study.pair_questions()[0].name == "pairs"
    import_files(write(tmp_path / "others.csv", HEADER, [("ann", "x", "y", "left")]))
    assert study.pair_questions()[1].name == "others"


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("first", ["pictures", "pairs"])
def test_pictures_of_items_are_no_masks(import_files, study, comparisons, tmp_path, first, together):
    folder = digits(tmp_path / "cells", ["c0.png", "c2.png"])[0].parent
    order = [folder, comparisons] if first == "pictures" else [comparisons, folder]
    if together:
        assert "2 items have a picture now." in import_files(*order)
    elif first == "pairs":
        import_files(comparisons)
        assert "2 items have a picture now." in import_files(folder)
    else:
        import_files(*sorted(folder.iterdir()), kind="image")
        import_files(comparisons)
    assert not mask_entries(study)
    (question,) = study.pair_questions()
    assert {item: study.image(image).name for item, image in item_pictures(study, question.id).items()} == {
        0: "c0.png", 2: "c2.png",
    }  # fmt: skip


def test_columns_are_assigned_by_hand(import_files, study, tmp_path):
    path = write(tmp_path / "wer.csv", ("wer", "p", "q", "gesagt"), ROWS)
    with pytest.raises(UnknownColumns):
        import_files(path)
    assert not study.pair_questions()
    import_files(path, mappings={path: {"wer": "annotator", "p": "left", "q": "right", "gesagt": "choice"}})
    assert len(pairs_of(study, study.pair_questions()[0].id)) == 4


def test_a_table_that_looks_like_pairs_may_be_imported_as_labels(import_files, study, tmp_path):
    header = ("annotator", "a", "b", "label")
    path = write(tmp_path / "sides.csv", header, [("ann", "1", "2", "cat"), ("bob", "1", "3", "dog")])
    import_files(path, mappings={path: {"a": "task", "b": "ignore"}})
    assert not study.pair_questions()
    assert study.questions()[0].scheme.outputs == ("cat", "dog")


def test_labels_beside_sides_come_in_as_labels_with_a_notice(import_files, study, tmp_path):
    header = ("annotator", "image", "left", "right", "label")
    rows = [(annotator, f"p{n}", n, n + 40, "cat") for annotator in ("ann", "bob") for n in range(5)]
    path = write(tmp_path / "boxes.csv", header, rows)
    assert "boxes.csv was read as labels, because label does not choose" in import_files(path)
    assert not study.pair_questions()
    assert "was read as" not in import_files(path, kind="labels")
    assert len(study.questions()) == 1


@pytest.mark.parametrize(("name", "count"), [("worldcollege", 8823), ("lf_quality", 26580)])
def test_every_real_comparison_is_imported(import_files, study, real_data, name, count):
    import_files(real_data / "pairs" / f"{name}.csv")
    (question,) = study.pair_questions()
    assert len(pairs_of(study, question.id)) == count


def test_real_rows_without_an_answer_are_reported(import_files, study, real_data):
    output = import_files(real_data / "pairs" / "music_sigir2010.csv")
    assert "5 rows without an answer skipped" in output
    assert len(pairs_of(study, study.pair_questions()[0].id)) == 2805
