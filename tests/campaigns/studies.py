"""Small studies of every kind of annotation, fused and with decisions, for the campaigns."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from raterscope.algorithms.clicks import FusionPlan
from raterscope.algorithms.clicks.catalogue import CLUSTERERS, DETECTORS
from raterscope.algorithms.labels.catalogue import LABELLERS
from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.algorithms.masks.catalogue import FUSERS
from raterscope.algorithms.masks.data import Settled
from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.algorithms.pairs.catalogue import PATHS, PairPlan
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app import importing
from raterscope.app.kinds.clicks import runs as clicks_runs
from raterscope.app.kinds.labels import runs as labels_runs
from raterscope.app.kinds.masks import runs as masks_runs
from raterscope.app.kinds.pairs import runs as pairs_runs
from raterscope.app.review import Decision, ImageSubject, RegionSubject, SpotSubject, TaskSubject
from raterscope.app.review.subjects import BiasSubject
from raterscope.app.study import Study
from tests.app.kinds.labels import made as made_labels
from tests.app.kinds.masks import made as made_masks
from tests.app.kinds.pairs import made as made_pairs
from tests.app.tables import write

__all__ = ["KINDS", "StudyKind", "dump_of", "import_files", "make_study"]


ANNOTATOR = made_pairs.PEOPLE[0]


def _click_files(folder: Path) -> list[Path]:
    random = np.random.default_rng(4)
    positions = ((30, 40), (80, 25), (60, 90), (100, 80))
    rows = []
    for name in ("one.png", "two.png"):
        Image.fromarray(random.integers(150, 200, (120, 140, 3), dtype=np.uint8)).save(folder / name)
        for annotator in range(6):
            marked = positions if annotator < 4 else positions[: annotator - 2]
            rows += [
                (f"w{annotator}", name, *np.round(path + random.normal(0, 1.5, 2), 2)) for path in marked
            ]
    clicks = write(folder / "clicks.csv", ("annotator", "image", "x", "y"), rows)
    truth = write(folder / "truth.csv", ("image", "x", "y"), [("one.png", *path) for path in positions[:3]])
    return [folder / "one.png", folder / "two.png", clicks, truth]


def _mask_files(folder: Path) -> list[Path]:
    return [made_masks.a_volume(folder / "case.nii.gz"), *made_masks.four_raters(folder, "case_")]


def _label_files(folder: Path) -> list[Path]:
    votes = made_labels.write_votes(folder / "votes.csv", times=True)
    return [votes, made_labels.write_truth(folder / "truth.csv", step=9)]


def _pair_files(folder: Path) -> list[Path]:
    answers = [row for row in made_pairs.answers() if row[0] in made_pairs.PEOPLE[::4]]
    return [write(folder / "pairs.csv", made_pairs.HEADER, answers)]


def _fuse_clicks(study: Study, algorithm: str, watch: Watch) -> int:
    clusterer, _, detector = algorithm.partition(" + ")
    inputs = clicks_runs.gather([one.id for one in study.items()["clicks"]], study, part(watch, 0.0, 0.1))
    answer = clicks_runs.fuse_inputs(
        inputs,
        FusionPlan.make(clusterer, {"detector": detector or "dem"}),
        jobs=1,
        watch=part(watch, 0.1, 0.9),
    )
    return clicks_runs.keep(answer, study, part(watch, 0.9, 1.0))


def _fuse_masks(study: Study, algorithm: str, watch: Watch) -> int:
    inputs = masks_runs.gather([one.id for one in study.items()["masks"]], study, part(watch, 0.0, 0.1))
    answer = masks_runs.fuse_inputs(inputs, MaskPlan.make(algorithm, {}), part(watch, 0.1, 0.9))
    return masks_runs.keep(answer, study, part(watch, 0.9, 1.0))


def _fuse_labels(study: Study, algorithm: str, watch: Watch) -> int:
    inputs = labels_runs.gather([one.id for one in study.items()["labels"]], study, part(watch, 0.0, 0.1))
    answer = labels_runs.fuse_inputs(inputs, LabelPlan.make(algorithm, {}), part(watch, 0.1, 0.9))
    return labels_runs.keep(answer, study, part(watch, 0.9, 1.0))


def _fuse_pairs(study: Study, algorithm: str, watch: Watch) -> int:
    inputs = pairs_runs.gather([one.id for one in study.items()["pairs"]], study, part(watch, 0.0, 0.1))
    answer = pairs_runs.fuse_inputs(inputs, PairPlan.make(algorithm, {}), part(watch, 0.1, 0.9))
    return pairs_runs.keep(answer, study, part(watch, 0.9, 1.0))


@dataclass(frozen=True)
class StudyKind:
    """Functions that make and fuse a study of one kind of annotation.

    Attributes
    ----------
    files : callable
        Writes what annotators marked into an empty folder.
    fuse : callable
        Fuses with the algorithm of a name and keeps the run.
    algorithms : tuple of str
        All that the kind has; of clicks every clusterer, and every detector behind one.
    """

    name: str
    files: Callable[[Path], list[Path]]
    fuse: Callable[[Study, str, Watch], int]
    algorithms: tuple[str, ...]


KINDS: dict[str, StudyKind] = {
    one.name: one
    for one in (
        StudyKind("clicks", _click_files, _fuse_clicks,
                  (*CLUSTERERS, *(f"{next(iter(CLUSTERERS))} + {name}" for name in DETECTORS))),
        StudyKind("masks", _mask_files, _fuse_masks, tuple(FUSERS)),
        StudyKind("labels", _label_files, _fuse_labels, tuple(LABELLERS)),
        StudyKind("pairs", _pair_files, _fuse_pairs, tuple(PATHS)),
    )
}  # fmt: skip


def import_files(study: Study, files: list[Path], watch: Watch = silent) -> None:
    """Import files as the command line does."""
    from raterscope.app.kinds.masks.attribution import MaskOptions

    reading = MaskOptions(naming="{item}_{annotator}", structure="ball")
    readings = importing.read_files(files, reading=reading, watch=part(watch, 0.0, 0.5))
    importing.store(readings, study, part(watch, 0.5, 1.0), extent=(140.0, 120.0))


def make_study(folder: Path, kind: str, algorithm: str | None = None) -> Path:
    """Make a study of a kind in an empty folder, fused once and with some decisions."""
    one = KINDS[kind]
    (folder / "files").mkdir(parents=True)
    path = folder / f"{kind}.rscope"
    with Study.create(path) as study:
        import_files(study, one.files(folder / "files"))
        one.fuse(study, algorithm or one.algorithms[0], silent)
        for decision in _decisions(study, kind):
            study.record(decision)
    return path


def _decisions(study: Study, kind: str) -> list[Decision]:
    """Decide on the first item of a study, and on its second annotator."""
    item = study.items()[kind][0].id
    created = {
        "clicks": [
            *(
                Decision(verb=verb, item=item, subject=SpotSubject(number=at, x=30.0 + at, y=40.0), run=1)
                for at, verb in enumerate(("accept", "reject", "skip"))
            ),
            Decision(verb="add", item=item, subject=SpotSubject(x=10.0, y=12.0)),
            Decision(verb="flag", item=item, subject=ImageSubject(name="one.png"), reason="blurred"),
            Decision(verb="undo", undoes=2),
        ],
        "masks": [
            Decision(
                verb="accept",
                item=item,
                run=1,
                subject=RegionSubject(structure="ball", origin=(5, 10, 10), shape=(2, 3, 4), number=1),
                settled=Settled((5, 10, 10), np.ones((2, 3, 4), dtype=np.int8)),
            )
        ],
        "labels": [Decision(verb="label", item=item, subject=TaskSubject(task="t1", label="cat"), run=1)],
        "pairs": [Decision(verb="flag", item=item, subject=BiasSubject(annotator=ANNOTATOR), reason="left")],
    }
    return [*created[kind], Decision(verb="exclude", annotators=(study.annotators()[1],), reason="bored")]


def dump_of(path: Path) -> list[tuple[Any, ...]]:
    """Read every row of a closed study's tables, to compare it with what it was."""
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        tables = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
        ).fetchall()
        return [(name, *row) for (name,) in tables for row in connection.execute(f"SELECT * FROM {name}")]
    finally:
        connection.close()
