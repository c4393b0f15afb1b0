"""A follower of a source that reads and stores, as after a restart each time."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from raterscope.app.formats import ClickTable
from raterscope.app.formats.growing_files import Growth, Position, look

Row = tuple[str, str, float, float, float | None]


def rows_of(table: ClickTable | None) -> list[Row]:
    if table is None:
        return []
    times = [None] * len(table) if table.time is None else table.time.tolist()
    return [
        (table.annotators[a], table.images[i], x, y, None if time != time else time)
        for a, i, x, y, time in zip(
            table.annotator, table.image, table.x.tolist(), table.y.tolist(), times, strict=True
        )
    ]


def looks_of(table: ClickTable | None) -> set[tuple[str, str]]:
    return set() if table is None else {(table.annotators[a], table.images[i]) for a, i in table.looked}


@dataclass
class Follower:
    source: Path
    mapping: Mapping[str, str] | None = None
    max_rows: int = 100_000
    position: Position | None = None
    rows: list[Row] = field(default_factory=list)
    looked: set[tuple[str, str]] = field(default_factory=set)
    sizes: dict[str, tuple[float, float]] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    refused: int = 0
    repeated: int = 0

    def look(self, ended: bool = False) -> Growth:
        """Look once; the position goes through JSON, as it does into a study."""
        growth = look(self.source, self.position, self.mapping, max_rows=self.max_rows, ended=ended)
        self.position = Position.from_dict(json.loads(json.dumps(growth.position.as_dict())))
        self.rows += rows_of(growth.table)
        self.looked |= looks_of(growth.table)
        for image, size in growth.table.extents.items() if growth.table is not None else ():
            self.sizes.setdefault(growth.table.images[image], size)
        self.notices += growth.notices
        self.refused += growth.refused
        self.repeated += growth.repeated
        return growth

    def catch_up(self, ended: bool = False) -> list[Row]:
        """Look until there is no more; give the rows that came."""
        before = len(self.rows)
        while self.look(ended).more:
            pass
        return self.rows[before:]
