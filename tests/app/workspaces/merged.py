"""Studies that two experts reviewed in copies, merged."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from raterscope.app.review import Decision
from raterscope.app.study import Study
from raterscope.app.study.merging import merge_studies


def merge(path: Path, anna: Sequence[Decision], ben: Sequence[Decision]) -> Path:
    """Merge two copies of a study with the decisions of two experts, beside it."""
    copies = []
    for who, decisions in (("anna", anna), ("ben", ben)):
        copies.append(Path(shutil.copy(path, path.with_name(f"{who}.rscope"))))
        with Study.open(copies[-1]) as study:
            for decision in decisions:
                study.record(replace(decision, who=who))
    merge_studies(copies, path.with_name("merged.rscope"))
    return path.with_name("merged.rscope")


def header(window) -> str:
    """Return what is written above the queue."""
    return window.workspace.queue._progress.accessibleName()
