"""Studies that were fused, and what stands in a report of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.algorithms.masks.grid import Grid
from raterscope.app.kinds.masks.runs import fuse_inputs, gather, keep
from raterscope.app.report import write_report
from raterscope.app.study import Study
from raterscope.app.study.masks import PlacedMask, add_case, add_masks

GRID = Grid((12, 40, 50), (1.0, 0, 0, 0, 0, 1.0, 0, 0, 0, 0, 2.0, 0))
"""Columns to the patient's left, rows to the back, slices to the head."""

WICKED = "<script>alert(1)</script> & Søn"


class Page(HTMLParser):
    """The tags, texts and tables of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.texts: list[str] = []
        self._within: list[str] = []
        self.styles = ""
        self.feed(text)
        assert "[@" not in self.text, "a reference is not cited by authors and year"

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._within.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        while self._within and self._within.pop() != tag:
            pass

    def handle_data(self, data):
        if "style" in self._within:
            self.styles += data
            return
        data = data.replace("\N{NO-BREAK SPACE}", " ")
        self.texts.append(data)
        if {"td", "th"} & set(self._within):
            self.rows[-1][-1] += data

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def row(self, first: str, columns: int) -> list[str]:
        """Return the first row of so many columns that begins with a word."""
        rows = [[" ".join(cell.split()) for cell in row] for row in self.rows]
        return next(row for row in rows if len(row) == columns and row[0].removeprefix("■ ") == first)


def a_block(image: int, annotator: str, low, high, structure: str = "nodule") -> PlacedMask:
    shape = tuple(b - a for a, b in zip(low, high, strict=True))
    return PlacedMask(image, annotator, structure, tuple(low), np.ones(shape, dtype=bool))


def fuse(study: Study, algorithm: str = "majority") -> int:
    inputs = gather([entry.id for entry in study.images()], study)
    return keep(fuse_inputs(inputs, MaskPlan.make(algorithm)), study)


@contextmanager
def make_study(folder: Path) -> Iterator[Study]:
    """One case: two raters mark the same block, the third goes 8 mm farther to the patient's left."""
    with Study.create(folder / "nodules.rscope") as opened:
        case = add_case(opened, "chest", GRID)
        low, high = (3, 15, 15), (8, 25, 25)
        add_masks(
            opened,
            [
                a_block(case.id, "Ada", low, high),
                a_block(case.id, WICKED, low, high),
                a_block(case.id, "Cem", low, (8, 25, 33)),
            ],
            "made",
        )
        yield opened


@pytest.fixture
def study(tmp_path: Path) -> Iterator[Study]:
    with make_study(tmp_path) as opened:
        yield opened


def write_page(study: Study, folder: Path, **more: object) -> Page:
    """Write the report as HTML and read it."""
    return Page(write_report(study, folder / "report.html", **more).read_text(encoding="utf-8"))


@pytest.fixture
def page(tmp_path: Path) -> Callable[..., Page]:
    return lambda study, **more: write_page(study, tmp_path, **more)
