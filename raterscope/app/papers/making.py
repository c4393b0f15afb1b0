"""The page from beginning to end: the folder, the measurements, the page."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from raterscope.algorithms.progress import Watch
from raterscope.app.errors import InputError
from raterscope.app.papers.catalogue import PAPERS
from raterscope.app.papers.measuring import check_folder, measure
from raterscope.app.papers.page import write_page

__all__ = ["make_page"]


def make_page(
    folder: Path,
    watch: Watch,
    *,
    names: Collection[str] = tuple(PAPERS),
    full: bool = False,
    data: Path | None = None,
    measuring: bool = True,
) -> Path:
    """Measure what is missing and write the page; when interrupted, the page has what was measured.

    Parameters
    ----------
    folder : Path
        New, or of an earlier page.
    watch : Watch
    names : collection of str
        The papers to measure; the page has all.
    full : bool
        As many runs as the papers took.
    data : Path, optional
        The folder of open data.
    measuring : bool
        Whether anything is measured.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    InputError
        Where the folders will not do.
    """
    if data is not None and not data.is_dir():
        raise InputError("is no folder; expected the folder of open data", file=data)
    check_folder(folder)
    try:
        if measuring:
            measure(
                [one for one in PAPERS.values() if one.name in names], folder, watch, full=full, data=data
            )
    finally:
        page = write_page(list(PAPERS.values()), folder, data=data)
    return page
