"""Set-up: files of readers with nothing of others, orders from the seed, and the coordinator's key."""

import pytest

from raterscope.app.cli import main
from raterscope.app.errors import InputError, TableProblems
from raterscope.app.reader_studies.protocol import read_coordinator
from raterscope.app.reader_studies.reading_file import ReadingFile
from tests.app.reader_studies.making import comparisons, images, make, texts


def assignments(folder):
    for path in sorted((folder / "readers").glob("*.rsread")):
        with ReadingFile.open(path, to_read=True) as file:
            yield file.assignment


def test_each_reader_has_an_order_of_their_own_that_the_seed_determines(tmp_path):
    orders = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        out = make("clicks", tmp_path / name, seed=3, reads=2, repeated_cases=2)
        orders.append([[scheduled.case for scheduled in each.places] for each in assignments(out)])
        for order in orders[-1]:
            assert sorted(order[:4]) == ["c001", "c002", "c003", "c004"]
            assert len(set(order[4:])) == 2
        first, second = orders[-1]
        assert set(first[4:]) == set(second[4:])
    assert orders[0] == orders[1]
    assert orders[0][0] != orders[0][1]


def test_a_readers_file_shows_nothing_of_others_and_of_the_names_of_images(tmp_path):
    out = make("clicks", tmp_path, copy_images=True)
    files = sorted((out / "readers").iterdir())
    assert [file.name for file in files] == ["R01.rsread", "R02.rsread", "images"]
    for file in files[:2]:
        data = file.read_bytes()
        for word in (b"Anna", b"Ben", b"smear"):
            assert word not in data
    coordinator = read_coordinator(out / "coordinator.json")
    assert {entry.person for entry in coordinator.readers} == {"Anna", "Ben"}
    assert [coordinator.names[case.key] for case in coordinator.cases] == [
        (f"smear{number}.png",) for number in range(4)
    ]


def test_a_readers_file_has_the_texts_of_a_table_and_no_other_column(tmp_path):
    cases = [str(texts(tmp_path)), "smears/smear0.png"]
    out = make("labels", tmp_path, cases=cases, reads=2, repeated_cases=5)
    assignment = next(assignments(out))
    shown = [case.texts for case in assignment.cases]
    assert len(shown) == 5
    for expected in (
        {"text": "Text 0, on\ntwo lines"},
        {"markdown": "A **bold** answer"},
        {"response_a": "First answer", "response_b": "Second answer"},
        {},
    ):
        assert expected in shown
    assert [len(case.pictures) for case in assignment.cases] == [0, 0, 0, 0, 1]
    for path in (out / "readers").iterdir():
        assert b"malaria" not in path.read_bytes()
        assert b"answer 1" not in path.read_bytes()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            "annotator,task,label\nkim,a,yes\n",
            "tasks.csv: contains no tasks with texts or pictures; expected",
        ),
        ("task,text\na,\n", "tasks.csv"),
        ("task,audio\na,bird.wav\n", "a names a sound, bird.wav; readers can be shown texts and pictures"),
        ("task,front\na,smear9.png\n", "a: there is no picture smear9.png"),
        ("cell,note\na,b\n", "tasks.csv"),
    ],
)
def test_a_table_without_texts_is_named_and_nothing_is_written(tmp_path, content, problem):
    (tmp_path / "tasks.csv").write_text(content)
    with pytest.raises(TableProblems) as caught:
        make("labels", tmp_path, cases=["tasks.csv"])
    assert problem in caught.value.problems[0]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("content", "change", "problem"),
    [
        ("item,text\na,Fever\nb,Cough\n", {"pairs": 2}, "field pairs: 2 were requested, but there are 1"),
        ("item,text\na,Fever\n", {}, "field cases: contains 1 item; expected at least two"),
        ("item,a,b\nx,smear0.png,smear1.png\ny,smear2.png,\n", {}, "tasks.csv has items with 2 pictures"),
        ("annotator,left,right,choice\nkim,a,b,left\n", {}, "a has neither a text nor a picture"),
        ("item,text\na,Fever\nb,Cough\n", {"reads": 2, "repeated_cases": 5}, "is 5, but there are 1 case"),
    ],
)
def test_items_that_make_no_pairs_are_named(tmp_path, content, change, problem):
    (tmp_path / "tasks.csv").write_text(content)
    with pytest.raises(TableProblems) as caught:
        make("pairs", tmp_path, cases=["tasks.csv"], **change)
    assert problem in caught.value.problems[0]


def test_a_readers_file_has_the_texts_of_a_comparison_without_names_and_answers(tmp_path):
    out = make("pairs", tmp_path, cases=[comparisons(tmp_path).name])
    cases = next(assignments(out)).cases
    assert [case.texts["prompt"] for case in cases] == ["Fever?", "Fever?", "Cough?"]
    assert {frozenset(side.texts["text"] for side in case.sides) for case in cases} == {
        frozenset(("gpt on fever", "llama on fever")), frozenset(("claude on fever", "gpt on fever")),
        frozenset(("gpt on cough", "llama on cough")),
    }  # fmt: skip
    for path in (out / "readers").iterdir():
        for word in (b"task 1", b"judge", b"model_a"):
            assert word not in path.read_bytes()


def test_more_repeated_cases_than_texts_are_refused(tmp_path):
    with pytest.raises(TableProblems, match="is 5, but there are 4 cases"):
        make("labels", tmp_path, cases=[str(texts(tmp_path))], reads=2, repeated_cases=5)


def test_all_readers_compare_the_same_pairs_on_sides_of_their_own(tmp_path):
    out = make("pairs", tmp_path, readers=["A", "B", "C"], pairs=5, pseudonyms=False)
    first, *others = assignments(out)
    assert first.reader == "A"
    assert len(first.cases) == 5
    for other in others:
        assert other.cases == first.cases
    sides = {
        tuple(sorted((scheduled.case, scheduled.swapped) for scheduled in each.places))
        for each in (first, *others)
    }
    assert len(sides) > 1
    assert read_coordinator(out / "coordinator.json").seed == 0


def test_a_folder_with_files_is_refused_and_stays(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="choose a new or empty folder"):
        make("clicks", tmp_path)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_an_image_that_cannot_be_read_is_named_and_nothing_is_written(tmp_path):
    (tmp_path / "smears").mkdir()
    (tmp_path / "smears" / "torn.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(InputError, match=r"field cases: torn\.png"):
        make("clicks", tmp_path)
    assert not (tmp_path / "out").exists()


def test_the_command_lists_every_problem_and_writes_nothing(tmp_path, capsys):
    file = tmp_path / "protocol.toml"
    file.write_text('name = "x"\nkind = "clicks"\nreaders = []\ncases = ["none.png"]\n')
    assert main(["reader-study", "new", str(file), "-o", str(tmp_path / "out")]) == 1
    printed = capsys.readouterr()
    assert "protocol.toml: field readers: is empty" in printed.err
    assert "field cases: there is no file none.png" in printed.err
    assert not (tmp_path / "out").exists()


def test_the_command_names_the_files_that_it_made(tmp_path, capsys):
    images(tmp_path / "smears")
    file = tmp_path / "protocol.toml"
    file.write_text('name = "x"\nkind = "clicks"\nreaders = ["A", "B"]\ncases = ["smears/*.png"]\n')
    assert main(["reader-study", "new", str(file), "-o", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "4 cases, 4 reads by each reader" in printed
    assert str(tmp_path / "out" / "readers" / "R02.rsread") in printed
