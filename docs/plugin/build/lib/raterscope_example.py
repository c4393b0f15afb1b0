"""Example of a plugin: votes of experienced annotators only, files of dots, and a diary of the review."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from raterscope.algorithms.labels.data import (
    LabelFusion,
    Labels,
    LabelSettings,
    LabelTrace,
    default_prior,
)
from raterscope.algorithms.labels.result import count_confusion, make_fusion
from raterscope.algorithms.labels.voting import shares_of_votes
from raterscope.algorithms.progress import Watch, silent
from raterscope.algorithms.settings import Algorithm, integer
from raterscope.app.errors import InputError
from raterscope.app.exports import FORMATS, Export, FileFormat, Request
from raterscope.app.formats.annotations import (
    Annotation,
    AnnotationFormat,
    AnnotationSet,
    Content,
    Document,
    Item,
    Kind,
    Points,
    Remarks,
)
from raterscope.app.study import Study


@dataclass(frozen=True)
class ExperiencedSettings(LabelSettings):
    """Settings of `experienced`; each appears in the form, on the command line and in the report."""

    least: int = integer(20, "Votes at least", "Annotators with fewer votes do not count.", minimum=0)


def experienced(
    labels: Labels, settings: ExperiencedSettings | None = None, watch: Watch = silent
) -> LabelFusion:
    """Count the votes of annotators with enough votes."""
    settings = settings or ExperiencedSettings()
    labels = labels.settled(settings.repeats)
    enough = labels.votes_of_annotators() >= settings.least
    posterior = shares_of_votes(labels.subset(enough[labels.annotator]), watch)
    trace = LabelTrace(np.empty(0), np.empty(0), converged=True)
    confusion = count_confusion(labels, posterior, default_prior(labels))
    return make_fusion(labels, "experienced", posterior, confusion, trace)


EXPERIENCED = Algorithm(
    "experienced", "experienced annotators", "The share of the votes of annotators with enough votes.",
    "example of a plugin", ExperiencedSettings, experienced,
)  # fmt: skip


class Dots(Document):
    """Lines of image, annotator, x and y."""

    expected: ClassVar[Mapping[Kind, str]] = {"points": "dots"}

    def __init__(self, sets: Sequence[AnnotationSet]) -> None:
        self._sets = sets

    def contents(self) -> frozenset[Content]:
        """Say that there are points."""
        return frozenset({"points"})

    def items(self) -> Sequence[Item]:
        """List the images."""
        return tuple({each.item.name: each.item for each in self._sets}.values())

    def sets(self, kind: Kind, remarks: Remarks, watch: Watch = silent) -> Iterator[AnnotationSet]:
        """Yield what each annotator marked on each image."""
        yield from self._sets


def read_dots(path: Path) -> Dots:
    """Parse a file once, naming the line of a mistake."""
    points: dict[tuple[str, str], list[Annotation]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match line.split():
            case [image, annotator, x, y]:
                point = Points([[float(x), float(y)]])
            case _:
                raise InputError("expected image, annotator, x and y", file=path, line=number)
        points.setdefault((image, annotator), []).append(Annotation("dots", f"line {number}", (point,)))
    return Dots([
        AnnotationSet(Item(image), annotator, annotations, is_complete=True)
        for (image, annotator), annotations in points.items()
    ])  # fmt: skip


DOTS = AnnotationFormat((".dots",), read_dots)


def write_diary(study: Study, request: Request, watch: Watch) -> list[Path]:
    """Write a line for each decision."""
    lines = [f"{decision.at} {decision.who}: {decision.verb}" for decision in study.decisions()]
    request.path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return [request.path]


FORMATS["diary"] = FileFormat(".txt", "Diaries (*.txt)")
DIARY = Export(
    "diary", "Diary of the review", ("diary",), of_run=False, kinds=("clicks", "masks", "labels", "pairs"),
    write=write_diary,
)  # fmt: skip
