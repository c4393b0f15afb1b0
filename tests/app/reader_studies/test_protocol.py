"""Protocols: what a TOML file describes, and every problem of one that is wrong."""

import pytest

from raterscope.app.errors import InputError, TableProblems
from raterscope.app.reader_studies.protocol import check_protocol, read_protocol
from tests.app.reader_studies.making import fields, images


def problems(values, folder):
    with pytest.raises(TableProblems) as caught:
        check_protocol(values, folder, folder / "protocol.toml")
    return caught.value.problems


def test_a_file_describes_a_study(tmp_path):
    images(tmp_path / "smears")
    file = tmp_path / "protocol.toml"
    file.write_text(
        'name = "Cells"\nkind = "labels"\nreaders = ["Anna", "Ben"]\ncases = ["smears/*.png"]\nreads = 2\n'
        'washout_days = 28\nrepeated_cases = 3\nseed = 5\n[[questions]]\nname = "infected"\n'
        'classes = ["yes", "no"]\ntext = "Is it infected?"\n'
    )
    protocol = read_protocol(file)
    assert [case.name for case in protocol.cases] == [f"smear{number}.png" for number in range(4)]
    assert (protocol.reads, protocol.washout_days, protocol.repeated_cases, protocol.seed) == (2, 28, 3, 5)
    (question,) = protocol.questions
    assert (question.name, question.classes, question.text) == ("infected", ("yes", "no"), "Is it infected?")
    assert protocol.blinding
    assert protocol.pseudonyms


def test_every_problem_names_its_field(tmp_path):
    values = fields("masks", tmp_path, name=" ", readers=["Anna", "anna"], reads=0, seed=-1, blinding="yes",
                    bliding=True, structures=[], cases=["nothing/*.png"])  # fmt: skip
    found = problems(values, tmp_path)
    names = [sentence.split(":")[0].removeprefix("field ") for sentence in found]
    expected = {"name", "readers", "reads", "seed", "blinding", "bliding", "structures", "cases"}
    assert set(names) == expected
    assert len(names) == len(expected)


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        ("clicks", {"kind": "polygons"}, "field kind: \"polygons\" is not a kind"),
        ("clicks", {"structures": ["cell"]}, "field structures: belongs to masks, not to clicks"),
        ("labels", {"questions": []}, "field questions: is missing"),
        ("labels", {"questions": [{"name": "a", "classes": ["x"]}]}, "questions, number 1, classes: has 1"),
        ("labels", {"questions": [{"name": "a", "classes": ["x", "y"]}] * 2}, "two have the same name"),
        ("clicks", {"washout_days": 3}, "field washout_days: needs at least 2 reads"),
    ],
)  # fmt: skip
def test_contradictions_are_named(kind, change, words, tmp_path):
    (sentence,) = problems(fields(kind, tmp_path) | change, tmp_path)
    assert words in sentence


def test_what_is_no_toml_is_refused(tmp_path):
    file = tmp_path / "protocol.toml"
    file.write_text("readers = [")
    with pytest.raises(InputError, match="is not a TOML file"):
        read_protocol(file)
