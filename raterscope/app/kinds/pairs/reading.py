"""Files of comparisons read together, and brought into a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import plain
from raterscope.app.formats.pairs import read_pairs
from raterscope.app.formats.pairs.records import PairTable
from raterscope.app.formats.sources import Sources
from raterscope.app.study import Study
from raterscope.app.study.pairs import add_pairs

__all__ = ["are_of_pairs", "items_of", "names_of", "read_pair_files", "store_pairs"]

_OF_PAIRS = {"left", "right", "choice", "left_picture", "right_picture"}


def are_of_pairs(mapping: Mapping[str, str] | None) -> bool:
    """Tell whether columns were named by hand as a table of comparisons has them."""
    return not _OF_PAIRS.isdisjoint((mapping or {}).values())


def read_pair_files(
    paths: Sequence[Path],
    mappings: Mapping[Path, Mapping[str, str]] | None = None,
    sources: Sources | None = None,
    watch: Watch = silent,
) -> tuple[PairTable, ...]:
    """Read the comparisons of some files, all or none; see `formats.pairs.read_pairs`.

    Parameters
    ----------
    paths : sequence of Path
    mappings : mapping of file to {column: field}, optional
    sources : Sources, optional
        Where the files are open already.
    watch : Watch
    """
    found: list[PairTable] = []
    sources = Sources() if sources is None else sources
    for done, path in enumerate(paths):
        step = part(watch, done / len(paths), (done + 1) / len(paths))
        found += read_pairs(sources.open(path), (mappings or {}).get(path), step)
    return tuple(found)


def names_of(tables: Sequence[PairTable]) -> list[str]:
    """List the names of items, and of the files that are said to show them."""
    return [name for table in tables for name in (*table.items, *table.pictures.values())]


def items_of(study: Study) -> tuple[str, ...]:
    """List the names of the items of a study's pairs, and of the files that are said to show them."""
    benches = [study.bench(question.id) for question in study.pair_questions()]
    return tuple(
        name for bench in benches for names in (bench.items, bench.pictures) for name in names if name
    )


def store_pairs(tables: Sequence[PairTable], study: Study, watch: Watch = silent) -> list[str]:
    """Bring comparisons into a study; gives what came in, a sentence or more each."""
    sentences = []
    for done, table in enumerate(tables):
        step = part(watch, done / len(tables), (done + 1) / len(tables))
        sentences.append(f"{plain(table.path.name)}: {add_pairs(study, table, step)}")
    return sentences
