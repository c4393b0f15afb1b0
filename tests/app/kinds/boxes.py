"""A fifth kind of annotation, for tests: boxes on images, fused by the median of their edges."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.progress import silent
from raterscope.algorithms.settings import Algorithm, Plan, Settings
from raterscope.app import outcome
from raterscope.app.exports import Export
from raterscope.app.kinds.kind import (
    Catalogue,
    Functions,
    FuseCommand,
    Kind,
    Reader,
    Report,
    ReportPart,
    Sample,
    Summary,
)
from raterscope.app.nouns import Nouns
from raterscope.app.page.contents import Prose, Section
from raterscope.app.review import ReviewedKind, fold
from raterscope.app.review.tasks import ItemDecisions
from raterscope.app.sample_files import Demonstrated
from raterscope.app.study.imports import add_records, number_annotators, records_of
from raterscope.app.study.kinds import StoredKind

HEADER = ["annotator", "image", "left", "top", "right", "bottom"]


@dataclass(frozen=True, eq=False)
class BoxRecord:
    """The boxes of one import on one image: annotators' numbers (N,) and edges (N, 4)."""

    annotator: NDArray[np.int64]
    edges: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BoxFusion:
    """The median box."""

    edges: NDArray[np.float64]
    votes: int


@dataclass(frozen=True, kw_only=True)
class BoxSubject:
    """The box of an image."""

    kind: ClassVar[str] = "boxes"
    form: ClassVar[str] = "boxes"
    verbs: ClassVar[tuple[str, ...]] = ("confirm", "refuse")

    number: int = 1

    def refuse(self, _verb):
        return None

    def in_words(self, verb):
        return f"{verb} box {self.number}"


class BoxesOfImage:
    """The decisions on one image."""

    def __init__(self):
        self.decisions = ItemDecisions()
        self.verdict: tuple[str, int] | None = None

    def apply(self, decision, _item):
        if not isinstance(decision.subject, BoxSubject):
            return
        self.decisions.add(decision.subject.number, decision.id, decision.verb)
        self.verdict = decision.verb, decision.id

    def fixed(self):
        return None if self.verdict is None else self.verdict[0]

    def settled_subjects(self):
        return ("1 box",) if self.verdict else ()

    def undone_since(self, now, _dead):
        return [self.verdict[1]] if now is None else []


def fuse(edges, settings=None, watch=silent):
    return BoxFusion(np.median(edges, axis=0), len(edges))


ALGORITHM = Algorithm("median-box", "Median box", "Takes the median of each edge.", "", Settings, fuse)


@dataclass(frozen=True)
class BoxPlan(Plan):
    """The plan of a run."""

    catalogue = {ALGORITHM.name: ALGORITHM}  # noqa: RUF012
    noun = "algorithm for boxes"

    algorithm: str = ALGORITHM.name
    settings: Settings = field(default_factory=Settings)

    def in_words(self):
        return "Boxes were fused by the median of their edges."


def recognises(source):
    return source.path.suffix == ".csv" and source.path.read_text().startswith(",".join(HEADER))


def read(sources, kind, watch):
    return [(source.path, list(csv.DictReader(source.path.read_text().splitlines()))) for source in sources]


def store(tables, study, watch):
    sentences = []
    numbers = {entry.name: entry.id for entry in study.images()}
    for path, rows in tables:
        study.forget_annotators()
        with study.change() as connection:
            annotator_ids = number_annotators(connection, [row["annotator"] for row in rows])
        of_image = {}
        for row in rows:
            of_image.setdefault(numbers[row["image"]], []).append(row)
        records = {
            image: BoxRecord(
                np.array([annotator_ids[row["annotator"]] for row in image_boxes], dtype=np.int64),
                np.array([[float(row[name]) for name in HEADER[2:]] for row in image_boxes]),
            )
            for image, image_boxes in of_image.items()
        }
        add_records(study, "boxes", path.name, records)
        sentences.append(f"{len(rows)} boxes on {len(records)} images.")
    return sentences


def boxes_of(study, image, run=None):
    records = records_of(study, "boxes", image, BoxRecord, None if run is None else run.imported)
    names = study.annotators()
    annotators = [names[number] for record in records for number in record.annotator.tolist()]
    edges = np.concatenate([np.empty((0, 4)), *(record.edges for record in records)])
    return annotators, edges


def gather(items, study, plan, hold_truth, watch):
    names = {entry.id: entry.name for entry in study.images() if entry.id in items}
    return outcome.gather(
        names, study, lambda image, state: boxes_of(study, image)[1], watch, text="reading the boxes on"
    )


def keep(answer, study, watch):
    return outcome.keep(
        answer, study, watch, kind="boxes", algorithm=answer.plan.algorithm, digest="0" * 64, log={}
    )


def misfit(study, run, item, result):
    return None if result.edges.shape == (4,) else "it is no box"


def write(study, request, watch):
    rows, state = [], fold(study.decisions())
    for entry in study.items()["boxes"]:
        _run, result = study.shown.result(entry.id, "boxes")
        verdict = state.fixed("boxes", entry.id) or ""
        rows.append([entry.name, *map(str, result.edges.tolist()), str(result.votes), verdict])
    with request.path.open("w", newline="") as file:
        csv.writer(file).writerows([["image", *HEADER[2:], "votes", "verdict"], *rows])
    return [request.path]


def gather_report(request, watch):
    runs, words = {}, []
    for entry in request.items:
        run, result = request.study.shown.result(entry.id, "boxes")
        runs[run.id] = run
        words.append(f"The box of {entry.name} ends at {result.edges[2]:g}.")
    return ReportPart([Section("Boxes", [Prose([("", "\n".join(words))])])], runs)


def fuse_files(options):
    options.output.mkdir()
    (options.output / "boxes.csv").write_text(f"{len(options.boxes)} files\n")
    return 0


def add_options(parser):
    parser.add_argument("boxes", nargs="+", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)


FUNCTIONS = Functions(
    make_plan=BoxPlan.make,
    read_plan=BoxPlan.from_dict,
    gather=gather,
    fuse=lambda inputs, plan, jobs, watch: outcome.one_by_one(
        inputs, plan, lambda edges, plan, watch: fuse(edges), watch
    ),
    keep=keep,
    summarise=lambda answer, *_: Summary((), [f"{len(answer.kept)} boxes"]),
    fuse_files=fuse_files,
    annotators_of=lambda study, item, run: boxes_of(study, item, run)[0],
    compare_runs=lambda item, differences: None,
    trust=lambda study, items, watch: None,
    writers={"boxes": write},
)

STORAGE = StoredKind(
    ReviewedKind("boxes", BoxesOfImage, (BoxSubject,)),
    BoxFusion,
    misfit,
    "SELECT 1 FROM marks WHERE image = ? AND import > ? AND kind = 'boxes' LIMIT 1",
    annotated="SELECT DISTINCT image FROM marks WHERE kind = 'boxes'",
    annotations=BoxRecord,
)

BOXES = Kind(
    name="boxes",
    title="Boxes",
    nouns=Nouns("image", "box"),
    file_kinds=("boxes", "true-boxes"),
    fuse_command=FuseCommand(
        "a crowd's boxes", "Fuses boxes.", ("fuse boxes boxes.csv -o results",), add_options
    ),
    load_storage=lambda: STORAGE,
    load_catalogues=lambda: (Catalogue("algorithms for boxes (--algorithm)", {ALGORITHM.name: ALGORITHM}),),
    load_functions=lambda: FUNCTIONS,
    load_report=lambda: Report(gather_report, lambda options: {"box_sizes": options.box_sizes}),
    load_reader=lambda: Reader(recognises, read, store),
    exports=(Export("boxes", "Boxes", ("csv",)),),
    load_sample=lambda: Sample(
        lambda folder, *_: Demonstrated(folder / "boxes.rscope", ["one box"], []),
        lambda _path: "Simulated are the boxes.",
        "window-boxes.png",
        0.1,
    ),
    add_report_options=lambda parser: parser.add_argument(
        "--box-sizes", action="store_true", help="measure boxes"
    ),
)
