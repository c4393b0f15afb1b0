"""Studies of every format are migrated, fused again and exported as those of the present format are."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from raterscope.app.review import Decision, SpotSubject
from raterscope.app.review.subjects import TaskSubject
from raterscope.app.study import Study
from raterscope.app.study.schema import VERSION
from tests.app.batch.test_gathering import FIRST, comparisons, votes
from tests.app.commands import run
from tests.app.kinds.masks.made import four_raters
from tests.app.study.files import as_an_older_format
from tests.app.tables import rows_of

KINDS = {
    "clicks": (1, "oem", "detections"),
    "masks": (2, "staple", "agreement"),
    "labels": (3, "majority", "labels"),
    "pairs": (3, "iss", "ranking"),
}
"""By kind, the first format with it, an algorithm, and an export."""

Outcome = dict[str, list[dict[str, str]]]


def kinds_of(version: int) -> list[str]:
    return [kind for kind, (since, _, _) in KINDS.items() if since <= version]


def fused_and_exported(path: Path, version: int) -> Outcome:
    """Fuse a study again and return its exports, and the decisions as a table."""
    tables = {}
    for kind in kinds_of(version):
        _, algorithm, export = KINDS[kind]
        assert run("run", path, algorithm, "--kind", kind) == 0
        tables[export] = path.with_name(f"{export}.csv")
        assert run("export", path, "--kind", kind, "--what", export, "-o", tables[export]) == 0
    tables["decisions"] = path.with_name("decisions.csv")
    assert run("export", path, "--what", "decisions", "-o", tables["decisions"]) == 0
    return {name: rows_of(table) for name, table in tables.items()}


@pytest.fixture(scope="module")
def studies(tmp_path_factory, study_fused) -> Iterator[dict[int, tuple[Path, Outcome]]]:
    """By the first format with their kinds, fused studies with decisions, and what comes of each."""
    made = {}
    for version in (1, 2, 3):
        folder = tmp_path_factory.mktemp(f"format{version}")
        path = Path(shutil.copy(study_fused, folder / "study.rscope"))
        if version > 1:
            assert run("import", path, *four_raters(folder / "raters"), "--structure", "ball") == 0
            assert run("run", path, "staple", "--kind", "masks") == 0
        if version > 2:
            votes(folder / "votes.csv", FIRST)
            comparisons(folder / "pairs.csv", FIRST)
            assert run("import", path, folder / "votes.csv", folder / "pairs.csv") == 0
            assert run("run", path, "majority", "--kind", "labels") == 0
        with Study.open(path) as study:
            spot = SpotSubject(number=1, x=40.0, y=30.0)
            study.record(Decision(verb="accept", item=study.images()[0].id, subject=spot, reason="sharp"))
            study.record(Decision(verb="exclude", annotators=("careless",), reason="bored"))
            for question in study.questions()[:1]:
                task = TaskSubject(task="t1", label="x")
                study.record(Decision(verb="label", item=question.id, subject=task))
        copy = Path(shutil.copy(path, folder / "copy.rscope"))
        made[version] = path, fused_and_exported(copy, version)
    return made


@pytest.mark.parametrize("version", range(1, VERSION + 1))
def test_a_study_of_any_format_is_fused_again_and_exported(tmp_path, studies, version):
    original, expected = studies[min(version, 3)]
    path = Path(shutil.copy(original, tmp_path))
    with Study.open(path, to_read=True) as study:
        decisions = study.decisions()
    if version < VERSION:
        as_an_older_format(path, version)
    with Study.open(path) as study:
        assert study.decisions() == decisions
    assert fused_and_exported(path, version) == expected
