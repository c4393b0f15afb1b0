"""Names that two experts joined, each on a copy of the study."""

import shutil

from raterscope.app.cli.program import main
from raterscope.app.review import Decision, fold
from raterscope.app.study import Study


def merged(study, first, second, folder):
    """Merge two copies, after a decision on each."""
    copies = [folder / "a.rscope", folder / "b.rscope"]
    for copy, decision in zip(copies, (first, second), strict=True):
        shutil.copy(study, copy)
        if decision is not None:
            with Study.open(copy) as opened:
                opened.record(decision)
    assert main(["merge", *map(str, copies), "-o", str(folder / "c.rscope")]) == 0
    with Study.open(folder / "c.rscope") as opened:
        return fold(opened.decisions())


def test_a_join_of_one_expert_and_an_exclusion_of_the_other_both_stand(four_study, tmp_path):
    join = Decision(verb="join", who="anna", annotators=("Anna K.", "anna"))
    exclude = Decision(verb="exclude", who="ben", annotators=("anna",), reason="test account")
    state = merged(four_study, join, exclude, tmp_path)
    assert state.aliases == {"anna": "Anna K."}
    assert set(state.excluded) == {"anna", "Anna K."}


def test_names_that_two_experts_join_differently_are_separate_again(four_study, tmp_path, capsys):
    first = Decision(verb="join", who="anna", annotators=("Anna K.", "eve"))
    second = Decision(verb="join", who="ben", annotators=("dan", "eve"))
    state = merged(four_study, first, second, tmp_path)
    assert state.aliases == {}
    assert "name eve" in capsys.readouterr().out


def test_a_study_is_not_merged_with_itself(four_study, tmp_path, refusal):
    words = refusal("merge", str(four_study), str(four_study), "-o", str(tmp_path / "c.rscope"))
    assert "is the same file as the other study" in words


def test_a_copy_without_new_decisions_adds_nothing(four_study, tmp_path, capsys):
    merged(four_study, None, None, tmp_path)
    assert "nothing to add" in capsys.readouterr().out
