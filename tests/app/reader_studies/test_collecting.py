"""Collection: marks of all kinds in one study, blinding, and everything that does not fit by name."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from raterscope.algorithms.progress import silent
from raterscope.app.cli import main
from raterscope.app.errors import InputError
from raterscope.app.formats.records import TaskContents
from raterscope.app.formats.sources import Source
from raterscope.app.kinds.pairs.annotators import agreement_on_pairs, consistency_of
from raterscope.app.reader_studies.collecting import collect
from raterscope.app.reader_studies.reading_file import ReadingFile
from raterscope.app.reader_studies.set_up import read_comparison_cases, read_task_cases
from raterscope.app.study import Study, StudyError
from raterscope.app.study.labels import add_contents, labels_of, pictures_of, read_all_contents
from raterscope.app.study.masks import read_masks
from raterscope.app.study.pairs import item_pictures, pairs_of
from tests.app.reader_studies.making import comparisons, images, make, read, texts

KINDS = ("clicks", "masks", "labels", "pairs")


def files(out):
    return sorted((out / "readers").glob("*.rsread"))


@pytest.fixture
def complete(request, tmp_path):
    """A study of a kind with two reads of two readers, collected."""
    out = make(request.param, tmp_path, reads=2, repeated_cases=2)
    for path in files(out):
        read(path)
        read(path, session=2, answer=1, clicks=3)
    target = tmp_path / "study.rscope"
    return request.param, out, target, collect([out], target)


@pytest.mark.parametrize("complete", KINDS, indirect=True)
def test_reads_become_annotators_and_a_second_collection_adds_nothing(complete):
    kind, out, target, collected = complete
    assert collected.problems == []
    assert [entry[:2] for entry in collected.added] == [("R01", 1), ("R01", 2), ("R02", 1), ("R02", 2)]
    with Study.open(target) as study:
        assert study.annotators() == ["R01", "R01 (read 2)", "R02", "R02 (read 2)"]
        before = study.last_import()
    again = collect([out], target)
    assert again.added == []
    with Study.open(target) as study:
        assert study.last_import() == before
        assert study.items()[kind]


@pytest.mark.parametrize("complete", ["clicks"], indirect=True)
def test_clicks_are_where_the_reader_clicked(complete):
    _, _, target, _ = complete
    with Study.open(target) as study:
        assert [entry.name for entry in study.images()] == [f"smear{number}.png" for number in range(4)]
        per_image = [study.clicks(entry.id) for entry in study.images()]
        assert sorted(len(clicks) for clicks in per_image) == [4, 4, 10, 10]
        assert set(per_image[0].y.tolist()) == {7.5}


@pytest.mark.parametrize("complete", ["masks"], indirect=True)
def test_masks_are_what_the_reader_drew_and_empty_where_nothing_was(complete):
    _, _, target, _ = complete
    with Study.open(target) as study:
        for number, entry in enumerate(study.images()):
            drawn = read_masks(study, entry.id, "nucleus")["R01"]
            assert drawn.origin == (0, 3, 4)
            assert drawn.values.shape == (1, 10 + number, 10)
            assert drawn.values.all()
            assert not read_masks(study, entry.id, "cell")["R01"].values.size


@pytest.mark.parametrize("complete", ["labels"], indirect=True)
def test_labels_keep_questions_and_the_order_of_classes(complete):
    _, _, target, _ = complete
    with Study.open(target) as study:
        infected, sharp = study.questions()
        assert infected.scheme.outputs == ("yes", "no", "unsure")
        assert (infected.name, sharp.name) == ("infected", "sharp")
        labels = labels_of(study, infected.id)
        assert len(labels) == 2 * 4 + 2 * 2
        of_second = labels.annotator == labels.annotators.index("R01 (read 2)")
        assert set(labels.label[of_second].tolist()) == {1}


@pytest.mark.parametrize("complete", ["pairs"], indirect=True)
def test_pairs_keep_the_sides_on_which_the_reader_saw_them(complete):
    from raterscope.app.reader_studies.protocol import read_coordinator

    _, out, target, _ = complete
    coordinator = read_coordinator(out / "coordinator.json")
    expected = {}
    for entry in coordinator.readers:
        for scheduled in entry.places:
            if scheduled.session == 1:
                names = coordinator.names[scheduled.case]
                expected[entry.reader, *(reversed(names) if scheduled.swapped else names)] = 1.0
    with Study.open(target) as study:
        (question,) = study.pair_questions()
        pairs = pairs_of(study, question.id)
        found = {}
        for at, who in enumerate(pairs.annotator):
            if "read" not in pairs.annotators[who]:
                sides = pairs.items[pairs.left[at]], pairs.items[pairs.right[at]]
                found[pairs.annotators[who], *sides] = float(np.sign(pairs.choice[at]))
    assert found == expected


@pytest.mark.parametrize("complete", ["clicks"], indirect=True)
def test_the_export_lists_reader_case_position_and_time(complete, tmp_path, capsys):
    _, _, target, _ = complete
    table = tmp_path / "reading.csv"
    assert main(["export", str(target), "--what", "reading", "-o", str(table)]) == 0
    rows = [line.split(",") for line in table.read_text().splitlines()]
    assert rows[0][:5] == ["reader", "read", "case", "position", "seconds"]
    assert len(rows) == 1 + 2 * (4 + 2)
    first = [row for row in rows if row[:2] == ["R02", "1"]]
    assert [row[4] for row in first] == ["5", "6", "7", "8"]


def test_an_unfinished_study_is_closed_and_lists_progress(tmp_path, capsys):
    out, target = make("clicks", tmp_path), tmp_path / "study.rscope"
    one, two = files(out)
    read(one)
    read(two, cases=3, finish=False)
    assert main(["reader-study", "collect", str(out), "-o", str(target)]) == 0
    printed = capsys.readouterr().out
    assert "R01, read 1: 4 cases added" in printed
    assert "not finished: R02, read 1: 3 of 4 cases" in printed
    with pytest.raises(StudyError, match=r"is blinded until every reader has finished \(R02, read 1: 3 of 4"):
        Study.open(target)
    assert main(["run", str(target), "oem"]) == 1
    assert "--unblind" in capsys.readouterr().err
    assert main(["reader-study", "collect", str(out), "-o", str(target), "--unblind", " "]) == 1
    assert "--unblind is empty" in capsys.readouterr().err
    collected = collect([out], target, unblind="interim analysis")
    assert collected.state.unblinded == "interim analysis"
    with Study.open(target) as study:
        assert study.annotators() == ["R01"]


def test_blinding_ends_with_the_last_reader(tmp_path):
    out, target = make("clicks", tmp_path), tmp_path / "study.rscope"
    one, two = files(out)
    read(one)
    collect([out], target)
    read(two)
    collected = collect([two], target)
    assert collected.added == [("R02", 1, 4)]
    with Study.open(target) as study:
        assert study.annotators() == ["R01", "R02"]


def test_without_blinding_the_study_is_open_at_once(tmp_path):
    out, target = make("clicks", tmp_path, blinding=False), tmp_path / "study.rscope"
    read(files(out)[0])
    collect([out], target)
    Study.open(target).close()


def test_a_file_of_another_study_is_named_and_the_others_are_taken(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    out = make("clicks", tmp_path / "a")
    other = make("clicks", tmp_path / "b", name="Second study")
    for path in (*files(out), *files(other)):
        read(path)
    shutil.copy(files(other)[0], out / "readers" / "stranger.rsread")
    collected = collect([out], tmp_path / "study.rscope")
    assert collected.problems == [
        "stranger.rsread: belongs to another reader study, Second study; expected Study of clicks."
    ]
    assert len(collected.added) == 2
    (tmp_path / "c").mkdir()
    (again,) = files(make("clicks", tmp_path / "c", seed=9))[:1]
    (problem,) = collect([out / "coordinator.json", again], tmp_path / "study.rscope").problems
    assert "Study of clicks, set up separately; expected Study of clicks" in problem


def test_a_second_read_of_the_same_session_is_named_and_the_first_stays(tmp_path):
    out, target = make("clicks", tmp_path), tmp_path / "study.rscope"
    one, two = files(out)
    shutil.copy(one, out / "readers" / "R01-again.rsread")
    for path in (one, two):
        read(path)
    read(out / "readers" / "R01-again.rsread", clicks=5)
    collected = collect([one, two, out / "readers" / "R01-again.rsread"], target)
    assert collected.problems == ["R01-again.rsread: is a second read 1 of R01; that of R01.rsread was taken"]
    later = collect([out / "readers" / "R01-again.rsread"], target)
    assert later.problems == [
        "R01-again.rsread: read 1 of R01 was collected before with other marks, which stay"
    ]
    with Study.open(target) as study:
        assert len(study.clicks(study.images()[0].id)) == 4


def test_cases_that_were_left_out_are_named(tmp_path):
    out = make("clicks", tmp_path)
    one, two = files(out)
    read(one, cases=3)
    read(two)
    collected = collect([out], tmp_path / "study.rscope")
    (problem,) = collected.problems
    assert problem.startswith("R01.rsread: read 1 was finished without 1 case (c00")
    assert collected.added == [("R01", 1, 3), ("R02", 1, 4)]


def test_a_changed_image_is_named_and_its_reads_come_once_it_is_restored(tmp_path):
    out, target = make("clicks", tmp_path), tmp_path / "study.rscope"
    for path in files(out):
        read(path)
    image = tmp_path / "smears" / "smear1.png"
    shutil.copy(image, tmp_path / "kept.png")
    Image.new("L", (60, 41)).save(image)
    collected = collect([out], target)
    assert collected.problems == [
        "smear1.png: has changed since the study was set up; its reads are not collected"
    ]
    assert [cases for _, _, cases in collected.added] == [3, 3]
    shutil.copy(tmp_path / "kept.png", image)
    restored = collect([out], target)
    assert restored.problems == []
    assert [cases for _, _, cases in restored.added] == [1, 1]
    with Study.open(target) as study:
        assert [len(study.clicks(entry.id)) for entry in study.images()] == [4] * 4


def contents(target):
    with Study.open(target) as study:
        return read_all_contents(study, [])


def test_texts_come_back_with_the_answers_and_begin_another_study(tmp_path):
    out, target = make("labels", tmp_path, cases=[str(texts(tmp_path))]), tmp_path / "study.rscope"
    for path in files(out):
        read(path)
    assert collect([out], target).problems == []
    assert contents(target) == {
        "answer 0": {"text": "Text 0, on\ntwo lines"},
        "answer 1": {"markdown": "A **bold** answer"},
        "answer 2": {"response_a": "First answer", "response_b": "Second answer"},
        "answer 3": {"text": "Text 3, on\ntwo lines"},
    }
    with Study.open(target) as study:
        labels = labels_of(study, study.questions()[0].id)
        assert sorted(labels.tasks) == sorted(read_all_contents(study, []))
        assert len(labels) == 8
    again = tmp_path / "again"
    again.mkdir()
    second = make("labels", again, cases=[str(target), "smears/smear0.png"])
    for path in files(second):
        read(path)
    assert collect([second], again / "study.rscope").problems == []
    assert contents(again / "study.rscope") == contents(target)
    with Study.open(again / "study.rscope") as study:
        assert [entry.name for entry in study.images()] == ["smear0.png"]


def test_tasks_with_pictures_and_text_come_back_and_a_changed_picture_is_named(tmp_path):
    (tmp_path / "tasks.csv").write_text(
        "task,text,front,side\npatient 1,Fever,smear0.png,smear1.png\npatient 2,,smear2.png,\n"
    )
    out, target = make("labels", tmp_path, cases=["tasks.csv"], copy_images=True), tmp_path / "study.rscope"
    with ReadingFile.open(files(out)[0], to_read=True) as file:
        cases = file.assignment.cases
    assert [(case.texts, len(case.pictures)) for case in cases] == [({"text": "Fever"}, 2), ({}, 1)]
    for path in files(out):
        read(path)
    Image.new("L", (60, 40)).save(tmp_path / "smears" / "smear1.png")
    collected = collect([out], target)
    assert collected.problems == [
        "patient 1 (picture 2): has changed since the study was set up; its reads are not collected"
    ]
    images(tmp_path / "smears")
    assert collect([out], target).problems == []
    assert contents(target) == {"patient 1": {"text": "Fever"}}
    with Study.open(target) as study:
        question = study.questions()[0].id
        linked = pictures_of(study, question)
        tasks = study.vote_set(question).tasks
        assert {tasks[task]: Path(study.image(image).path).name for task, image in linked.items()} == {
            "patient 1": "smear0.png",
            "patient 2": "smear2.png",
        }
    cases = read_task_cases(Source(target), silent)
    assert [(case.name, case.texts, [image.path.name for image in case.images]) for case in cases] == [
        ("patient 1", {"text": "Fever"}, ["smear0.png"]),
        ("patient 2", {}, ["smear2.png"]),
    ]


def test_a_changed_text_is_named_and_its_reads_come_once_it_is_restored(tmp_path):
    out, target = make("labels", tmp_path, cases=[str(texts(tmp_path))]), tmp_path / "study.rscope"
    for path in files(out):
        read(path)
    kept = (out / "coordinator.json").read_text()
    (out / "coordinator.json").write_text(kept.replace("**bold**", "bald"))
    collected = collect([out], target)
    assert collected.problems == [
        f"{name}: the text of answer 1 is not that of coordinator.json; its reads are not collected"
        for name in ("R01.rsread", "R02.rsread")
    ]
    assert [cases for _, _, cases in collected.added] == [3, 3]
    (out / "coordinator.json").write_text(kept)
    restored = collect([out], target)
    assert restored.problems == []
    assert [cases for _, _, cases in restored.added] == [1, 1]
    assert contents(target)["answer 1"] == {"markdown": "A **bold** answer"}


def test_items_with_texts_and_pictures_come_back_with_the_comparisons(tmp_path):
    (tmp_path / "items.csv").write_text("item,text,photo\na,Fever,\nb,Cough,smear0.png\nc,,smear1.png\n")
    out, target = make("pairs", tmp_path, cases=["items.csv"], seed=4), tmp_path / "study.rscope"
    for path in files(out):
        read(path)
    assert collect([out], target).problems == []
    with Study.open(target) as study:
        (question,) = study.pair_questions()
        pairs = pairs_of(study, question.id)
        pictures = item_pictures(study, question.id)
        named = {pairs.items[item]: Path(study.image(image).path).name for item, image in pictures.items()}
    assert contents(target) == {"a": {"text": "Fever"}, "b": {"text": "Cough"}}
    assert named == {"b": "smear0.png", "c": "smear1.png"}
    assert len(pairs) == 6
    cases = read_comparison_cases(Source(target), silent)
    assert [[(item.name, item.texts, len(item.images)) for item in case.items] for case in cases] == [
        [("a", {"text": "Fever"}, 0), ("b", {"text": "Cough"}, 1)],
        [("a", {"text": "Fever"}, 0), ("c", {}, 1)],
        [("b", {"text": "Cough"}, 1), ("c", {}, 1)],
    ]


def test_comparisons_come_back_with_their_prompts_and_a_changed_answer_is_named(tmp_path):
    table = comparisons(tmp_path)
    out, target = make("pairs", tmp_path, cases=[table.name], reads=2), tmp_path / "study.rscope"
    for path in files(out):
        read(path)
        read(path, session=2)
    kept = (out / "coordinator.json").read_text()
    (out / "coordinator.json").write_text(kept.replace("gpt on fever", "another"))
    assert (
        "R01.rsread: the text of task 1: gpt and llama is not that of" in collect([out], target).problems[0]
    )
    (out / "coordinator.json").write_text(kept)
    collected = collect([out], target)
    assert collected.problems == []
    assert collected.state.reads[0].cases[-1].case.startswith("task ")
    with Study.open(target) as study:
        (question,) = study.pair_questions()
        compared = study.comparison_set(question.id)
        pairs = pairs_of(study, question.id)
        stored = read_all_contents(study, [question.id])
    assert sorted(compared.tasks) == ["task 1", "task 2"]
    assert len(pairs) == 12
    assert stored["task 2"] == {"prompt": "Cough?", "gpt": "gpt on cough", "llama": "llama on cough"}
    # Every answer was "left", so a comparison that changed sides contradicts itself.
    repeats = consistency_of(pairs)[0]
    assert repeats.same_repeats + repeats.swapped_repeats == 6
    assert repeats.same.value == 1
    assert repeats.swapped.value == 0
    assert agreement_on_pairs(pairs).tasks == 3


def test_a_text_that_was_replaced_in_the_study_is_named(tmp_path):
    out, target = make("labels", tmp_path, cases=[str(texts(tmp_path))]), tmp_path / "study.rscope"
    one, two = files(out)
    read(one)
    collect([out], target, unblind="check")
    with Study.open(target) as study:
        add_contents(study, TaskContents(target, {"text": {"answer 3": "Another text"}}))
    read(two)
    collected = collect([out], target)
    assert collected.problems == [
        "answer 3: its text in the study is not that of coordinator.json; its reads are not collected"
    ]
    assert collected.added == [("R02", 1, 3)]


def test_a_failed_collection_leaves_the_study_as_it_was(tmp_path, monkeypatch):
    from raterscope.app.reader_studies import collecting

    out, target = make("clicks", tmp_path), tmp_path / "study.rscope"
    one, two = files(out)
    read(one)
    collect([out], target)
    read(two)

    def fail(*_):
        raise InputError("the disk is full")

    monkeypatch.setattr(collecting, "store_marks", fail)
    with pytest.raises(StudyError, match=r"R02\.rsread: the disk is full"):
        collect([out], target)
    with Study.open(target, blinded=True) as study:
        assert study.annotators() == ["R01"]
        assert len(study.settings.reader_study.reads) == 1


def test_without_a_coordinators_file_nothing_is_collected(tmp_path):
    out = make("clicks", tmp_path)
    (out / "coordinator.json").unlink()
    with pytest.raises(InputError, match=r"there is no coordinator\.json"):
        collect([out], tmp_path / "study.rscope")
    assert not (tmp_path / "study.rscope").exists()


def test_another_study_is_no_target(tmp_path):
    out, target = make("clicks", tmp_path), tmp_path / "study.rscope"
    Study.create(target).close()
    with pytest.raises(StudyError, match="is not a collected reader study"):
        collect([out], target)


def test_a_readers_file_is_not_imported_but_collected(tmp_path, capsys):
    out = make("clicks", tmp_path)
    assert main(["import", str(tmp_path / "study.rscope"), str(files(out)[0])]) == 1
    assert "R01.rsread: is a reader's file" in capsys.readouterr().err
