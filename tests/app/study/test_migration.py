"""Studies of every format are migrated, exported and fused again as those of the present format are."""

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

INPUTS_CHANGED = (1, 2, 3, 5, 13)
"""Formats after which the tables changed that a fusion reads."""

Tables = dict[str, list[dict[str, str]]]


def kinds_of(version: int) -> list[str]:
    return [kind for kind, (since, _, _) in KINDS.items() if since <= version]


def fuse_again(path: Path, version: int) -> None:
    for kind in kinds_of(version):
        assert run("run", path, KINDS[kind][1], "--kind", kind) == 0


def exported(path: Path, version: int) -> Tables:
    """Return a study's exports, and the decisions as a table."""
    tables = {}
    for kind in kinds_of(version):
        export = KINDS[kind][2]
        tables[export] = path.with_name(f"{export}.csv")
        assert run("export", path, "--kind", kind, "--what", export, "-o", tables[export]) == 0
    tables["decisions"] = path.with_name("decisions.csv")
    assert run("export", path, "--what", "decisions", "-o", tables["decisions"]) == 0
    return {name: rows_of(table) for name, table in tables.items()}


@pytest.fixture(scope="module")
def studies(tmp_path_factory, study_fused) -> Iterator[dict[int, tuple[Path, Tables, Tables]]]:
    """Fused studies by the first format with their kinds; their exports, before and after a new run."""
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
            assert run("run", path, "iss", "--kind", "pairs") == 0
        with Study.open(path) as study:
            spot = SpotSubject(number=1, x=40.0, y=30.0)
            study.record(Decision(verb="accept", item=study.images()[0].id, subject=spot, reason="sharp"))
            study.record(Decision(verb="exclude", annotators=("careless",), reason="bored"))
            for question in study.questions()[:1]:
                task = TaskSubject(task="t1", label="x")
                study.record(Decision(verb="label", item=question.id, subject=task))
        copy = Path(shutil.copy(path, folder / "copy.rscope"))
        before = exported(copy, version)
        fuse_again(copy, version)
        made[version] = path, before, exported(copy, version)
    return made


@pytest.mark.parametrize("version", range(1, VERSION))
def test_a_study_of_any_format_is_exported_and_fused_again(tmp_path, studies, version):
    original, before, after = studies[min(version, 3)]
    path = Path(shutil.copy(original, tmp_path))
    with Study.open(path, to_read=True) as study:
        decisions = study.decisions()
    as_an_older_format(path, version)
    with Study.open(path) as study:
        assert study.decisions() == decisions
    assert exported(path, version) == before
    if version in INPUTS_CHANGED:
        fuse_again(path, version)
        assert exported(path, version) == after
