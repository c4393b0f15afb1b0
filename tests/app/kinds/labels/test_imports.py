"""Labels come into a study: with truths, pictures, marks beside them, in any order."""

import json

import pytest

from raterscope.app.cli import main
from raterscope.app.errors import InputError
from raterscope.app.formats import UnknownColumns
from raterscope.app.importing import read_files, store
from raterscope.app.kinds.labels.imports import tasks_of
from raterscope.app.kinds.masks.attribution import MaskOptions
from raterscope.app.kinds.masks.imports import StudyImages
from raterscope.app.study.labels import labels_of, pictures_of
from raterscope.app.study.masks import mask_entries
from tests.app.kinds.tables import digits, study

__all__ = ["study"]

LABELS = ("cat", "dog", "cat", "cat")


@pytest.fixture
def import_files(study):
    def import_files(*paths, **options):
        at_hand = StudyImages(tuple(study.images()), study.path, tasks_of(study))
        return " ".join(store(read_files(paths, at_hand=at_hand, **options), study))

    return import_files


def written(path, *lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def votes(path, header="annotator,task,label", tasks=LABELS):
    rows = [f"{annotator},c{at},{label}" for annotator in ("ann", "bob") for at, label in enumerate(tasks)]
    return written(path, header, *rows)


def truths(path, header="task,label"):
    return written(path, header, "c0,cat", "c1,dog")


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_votes_and_truths_in_whichever_order(import_files, study, tmp_path, order):
    files = [votes(tmp_path / "votes.csv"), truths(tmp_path / "truth.csv")]
    output = import_files(*(files[at] for at in order))
    assert "votes.csv: 8 votes by 2 annotators on 4 tasks." in output
    assert "truth.csv: the truth of 2 tasks." in output
    (question,) = study.questions()
    assert question.scheme.outputs == ("cat", "dog")
    assert labels_of(study, question.id).label.tolist() == [0, 1, 0, 0] * 2
    assert study.vote_set(question.id).truth.tolist() == [0, 1, -1, -1]


@pytest.mark.parametrize(("name", "is_true"), [("ann.csv", False), ("gold.csv", True)])
def test_labels_without_an_annotator_are_votes_of_a_given_one(import_files, study, tmp_path, name, is_true):
    import_files(votes(tmp_path / "votes.csv"))
    path = written(tmp_path / name, "task,label", "c0,dog", "c1,dog", "c2,")
    output = import_files(path, reading=MaskOptions(annotator="cy"))
    (question,) = study.questions()
    labels = labels_of(study, question.id)
    if is_true:
        assert "the truth of 2 tasks" in output
    else:
        assert "2 votes by 1 annotator on 3 tasks. 1 row skipped: no label." in output
        assert study.annotators() == ["ann", "bob", "cy"]
        assert labels.label[labels.annotator == 2].tolist() == [1, 1]
    assert (study.vote_set(question.id).truth >= 0).any() == is_true


def test_truths_of_several_questions_about_the_same_tasks_go_to_their_own(import_files, study, tmp_path):
    tasks = [
        f"{annotator},{question},c{at},{label}"
        for question, labels in (("species", ("cat", "dog")), ("age", ("old", "young")))
        for annotator in ("ann", "bob")
        for at, label in enumerate(labels)
    ]
    votes = written(tmp_path / "votes.csv", "annotator,question,task,label", *tasks)
    named = written(tmp_path / "named.csv", "question,task,label", "age,c0,young", "species,c1,cat")
    import_files(votes, named)
    species, age = study.questions()
    assert (species.scheme.classes, age.scheme.classes) == (("cat", "dog"), ("old", "young"))
    assert study.vote_set(species.id).truth.tolist() == [-1, 0]
    assert study.vote_set(age.id).truth.tolist() == [1, -1]
    import_files(written(tmp_path / "unnamed_truth.csv", "task,label", "c1,old"))
    assert study.vote_set(species.id).truth.tolist() == [-1, 0]
    assert study.vote_set(age.id).truth.tolist() == [1, 0]


def test_truths_without_votes_are_refused_in_one_sentence(import_files, tmp_path):
    with pytest.raises(InputError, match="import the votes first"):
        import_files(truths(tmp_path / "truth.csv"))


def test_declared_truth_is_no_vote(import_files, study, tmp_path):
    import_files(votes(tmp_path / "votes.csv"))
    expert = written(tmp_path / "expert.csv", "annotator,task,label", "eve,c2,dog")
    import_files(expert, kind="true-labels")
    (question,) = study.questions()
    assert len(study.vote_set(question.id).task) == 8
    assert study.vote_set(question.id).truth.tolist() == [-1, -1, 1, -1]
    assert "eve" not in study.annotators()


class TestPictures:
    @pytest.mark.parametrize("first", ["pictures", "votes", "together"])
    def test_pictures_show_the_tasks_of_their_names(self, import_files, study, tmp_path, first):
        pictures = digits(tmp_path / "pictures", [f"c{at}.png" for at in range(4)])
        table = votes(tmp_path / "votes.csv")
        if first == "together":
            import_files(table, tmp_path / "pictures")
        elif first == "votes":
            import_files(table)
            assert "4 tasks have a picture now." in import_files(*pictures)
        else:
            import_files(*pictures, kind="image")
            import_files(table)
        (question,) = study.questions()
        names = {entry.id: entry.name for entry in study.images()}
        picture_names = {task: names[image] for task, image in pictures_of(study, question.id).items()}
        assert picture_names == {at: f"c{at}.png" for at in range(4)}
        assert not study.items()["clicks"]
        assert not study.items()["masks"]

    def test_the_table_may_name_the_pictures(self, import_files, study, tmp_path):
        digits(tmp_path / "pictures", ["one.png", "two.png"])
        table = written(
            tmp_path / "votes.csv", "annotator,task,label,image_url",
            "ann,c0,cat,https://example.org/a/one.png", "bob,c0,dog,https://example.org/a/one.png",
            "ann,c1,cat,two.png",
        )  # fmt: skip
        import_files(tmp_path / "pictures", table)
        (question,) = study.questions()
        assert sorted(pictures_of(study, question.id)) == [0, 1]

    def test_masks_beside_labels_are_still_masks(self, import_files, study, tmp_path):
        masks = digits(tmp_path / "masks", ["case7_anna.png", "case7_bob.png"])
        import_files(votes(tmp_path / "votes.csv"), *masks)
        assert not any(pictures_of(study, question.id) for question in study.questions())
        (image,) = study.items()["masks"]
        assert {entry.annotator for entry in mask_entries(study, image.id)} == {"anna", "bob"}


class TestBothAtOnce:
    def test_choices_and_brushes_of_one_file(self, import_files, study, tmp_path):
        box = {"original_width": 40, "original_height": 30, "type": "rectanglelabels", "to_name": "image",
               "from_name": "where", "value": {"x": 10, "y": 10, "width": 30, "height": 40, "rotation": 0,
                                               "rectanglelabels": ["cell"]}}  # fmt: skip
        of_region = {**box, "type": "choices", "from_name": "sure", "value": {
            **box["value"], "choices": ["very"]}}  # fmt: skip
        choice = {"type": "choices", "from_name": "stage", "to_name": "image", "value": {"choices": ["ring"]}}
        task = {"id": 1, "data": {"image": "/a/b.png"}, "annotations": [
            {"completed_by": annotator, "result": [box, of_region, choice]} for annotator in (1, 2)
        ]}  # fmt: skip
        path = written(tmp_path / "export.json", json.dumps([task]))
        import_files(path)
        (question,) = study.questions()
        assert question.name == "stage"  # the answer on a region is no answer on the picture
        assert labels_of(study, question.id).annotators == ("annotator 1", "annotator 2")
        assert len(study.items()["masks"]) == 1

    def test_questions_and_marks_of_a_zooniverse_export(self, import_files, study, tmp_path):
        header = "classification_id,user_name,metadata,annotations,subject_data,subject_ids"
        size = {"subject_dimensions": [{"naturalWidth": 90, "naturalHeight": 60}]}

        def row(number, annotator):
            tasks = [
                {"task": "T0", "task_label": "Any?", "value": "Yes"},
                {"task": "T1", "value": [{"tool": 0, "frame": 0, "x": 10.0, "y": 12.0, "details": []}]},
            ]
            cells = [str(number), annotator, json.dumps(size), json.dumps(tasks),
                     json.dumps({"5": {"filename": "s.png"}}), "5"]  # fmt: skip
            return ",".join('"' + cell.replace('"', '""') + '"' for cell in cells)

        output = import_files(written(tmp_path / "export.csv", header, row(1, "ann"), row(2, "bob")))
        assert "2 clicks" in output
        assert "2 votes by 2 annotators on 1 task" in output
        (question,) = study.questions()
        assert question.name.endswith("Any?")
        assert len(study.clicks(study.images()[0].id)) == 2


class TestColumns:
    def test_labels_of_an_unknown_header_are_offered_as_labels(self, tmp_path):
        path = votes(tmp_path / "a.csv", "wer,was,label")
        with pytest.raises(UnknownColumns) as caught:
            read_files([path])
        assert "x" not in caught.value.missing
        assert {"annotator", "task"} <= set(caught.value.missing)

    def test_positions_of_an_unknown_header_are_offered_as_clicks(self, tmp_path):
        path = written(tmp_path / "a.csv", "wer,bild,links,oben", "ann,a.png,3,4", "bob,a.png,5,6")
        with pytest.raises(UnknownColumns) as caught:
            read_files([path])
        assert {"x", "y"} <= set(caught.value.missing)

    def test_columns_named_by_hand_show_the_kind(self, import_files, study, tmp_path):
        path = votes(tmp_path / "a.csv", "wer,was,gesagt")
        import_files(path, mappings={path: {"wer": "annotator", "was": "task", "gesagt": "label"}})
        assert len(study.vote_set(study.questions()[0].id).task) == 8

    def test_one_column_named_by_hand_makes_no_truth_of_votes(self, import_files, study, tmp_path):
        path = votes(tmp_path / "a.csv", "worker,task,gesagt")
        import_files(path, mappings={path: {"gesagt": "label"}})
        assert len(study.vote_set(study.questions()[0].id).task) == 8

    def test_two_sides_without_a_choice_are_offered_as_pairs(self, tmp_path):
        path = written(tmp_path / "a.csv", "annotator,left,right,gesagt", "ann,a,b,left")
        with pytest.raises(UnknownColumns) as caught:
            read_files([path])
        assert caught.value.missing == ("choice",)


def test_files_of_different_answers_are_different_questions(import_files, study, tmp_path):
    import_files(votes(tmp_path / "pets.csv"))
    more = written(tmp_path / "stages.csv", "annotator,task,label", "ann,c0,ring", "bob,c0,none")
    import_files(more)
    assert [question.name for question in study.questions()] == ["labels", "stages"]
    import_files(written(tmp_path / "more.csv", "annotator,task,label", "cid,c0,dog"))
    assert [len(study.vote_set(question.id).task) for question in study.questions()] == [9, 2]


def test_the_command_line_imports_labels(tmp_path, capsys):
    study, path = tmp_path / "a.rscope", votes(tmp_path / "a.csv", "wer,was,gesagt")
    pairs = ["wer=annotator", "was=task", "gesagt=label"]
    assert main(["import", str(study), str(path), "--map", *pairs]) == 0
    assert main(["import", str(study), str(truths(tmp_path / "t.csv", "task,kind")),
                 "--kind", "true-labels", "--map", "kind=label"]) == 0  # fmt: skip
    assert "the truth of 2 tasks" in capsys.readouterr().out


class TestRealCrowds:
    @pytest.mark.parametrize(("name", "count"), [("bluebirds", 4212), ("duchenne", 30319), ("adult2", 92721)])
    def test_every_vote_is_imported(self, import_files, study, real_data, name, count):
        folder = real_data / "labels"
        import_files(folder / f"{name}_truth.csv", folder / f"{name}.csv")
        (question,) = study.questions()
        assert len(study.vote_set(question.id).task) == count


def test_votes_that_come_twice_are_reported(import_files, tmp_path):
    """They count twice, as repeated votes do, with a notice."""
    first = votes(tmp_path / "votes.csv")
    assert "earlier file" not in import_files(first)
    again = import_files(first)
    assert "all 8 on a task that the annotator also labels in an earlier file" in again
    assert "They count again; the setting Repeated votes of the fusion changes that." in again
    rows = ["cid,c0,cat", "ann,c0,cat", "ann,c9,dog", "bob,c1,dog"]
    other_file = written(tmp_path / "other.csv", "annotator,task,label", *rows)
    assert "(2 on a task that the annotator also labels in an earlier file)" in import_files(other_file)
    third = written(tmp_path / "third.csv", "annotator,task,label", "dan,c0,cat", "ann,c20,dog")
    assert "earlier file" not in import_files(third)


def test_a_short_table_of_numbers_is_asked_about_as_labels_and_not_as_clicks(tmp_path):
    table = tmp_path / "short.csv"
    table.write_text("image,anna,ben\ni1,1,2\ni2,2,2\ni3,3,1\n")
    with pytest.raises(UnknownColumns, match="the labels of 3 tasks do not show whether anna, ben are annot"):
        read_files([table])
    table.write_text("image,a,b\ni1,10.5,20\ni2,44,7.25\ni3,3,99\n")
    with pytest.raises(UnknownColumns, match="annotator or x or y"):
        read_files([table])
