"""Images in a study's file: references to files, or sizes alone until the file comes."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from raterscope.algorithms.masks.grid import Grid
from raterscope.app.errors import plain
from raterscope.app.formats.records import ImageFile
from raterscope.app.formats.volumes.records import VolumeFile
from raterscope.app.study.opening import translated_errors
from raterscope.app.study.places import Names, digest_of_file, digest_of_files, size_of, stored_path
from raterscope.app.study.records import ImageEntry, StudyError
from raterscope.app.study.rows import GRID, IMAGE, grid_row, image_of

__all__ = [
    "add_file",
    "add_grid",
    "add_size",
    "add_volume",
    "check_moved_file",
    "find_moved_volume",
    "read_image_entries",
    "refuse_other_size",
    "set_image_file",
    "uneven_slices_note",
]


def read_image_entries(
    connection: sqlite3.Connection, study: Path, number: int | None = None
) -> list[ImageEntry]:
    """Read the entries in the order in which they came, or one alone."""
    select = f"SELECT {', '.join(IMAGE + GRID)} FROM images LEFT JOIN grids ON grids.image = images.id"
    # Two statements: with one for both cases SQLite looks through all images to find one.
    if number is None:
        rows = connection.execute(f"{select} ORDER BY id")
    else:
        rows = connection.execute(f"{select} WHERE id = ?", (number,))
    return [image_of(row, study) for row in rows]


def add_file(
    connection: sqlite3.Connection, study: Path, file: ImageFile, digest: str, names: Names
) -> ImageEntry:
    """Take up a file, within the present transaction.

    The same content under the same name is the same image; an entry that was a size alone gets its file;
    another image of a name that is taken is told apart by its folder.
    """
    same = names.find(file.name)
    if same is not None and same.digest == digest:
        return same
    if same is not None and same.path is None:
        refuse_other_size(file, same)
        connection.execute("UPDATE images SET pixel_size = ? WHERE id = ?", (file.pixel_size, same.id))
        return set_image_file(connection, study, same.id, file.path, digest)
    name, folders = file.name, list(file.path.resolve().parent.parts)
    while connection.execute("SELECT 1 FROM images WHERE name = ?", (name,)).fetchone():
        name = f"{folders.pop()}/{name}" if folders else f"{name}'"
    number = add_size(connection, study, name, file.width, file.height).id
    connection.execute("UPDATE images SET pixel_size = ? WHERE id = ?", (file.pixel_size, number))
    return set_image_file(connection, study, number, file.path, digest)


def add_volume(
    connection: sqlite3.Connection, study: Path, file: VolumeFile, digest: str, names: Names
) -> ImageEntry:
    """Take up a volume, within the present transaction; one that is there already is not taken twice."""
    _, rows, columns = file.grid.shape
    same = names.find(file.name)
    if (
        same is not None
        and same.digest is None
        and same.grid is not None
        and same.grid.shape == file.grid.shape
    ):
        entry = set_image_file(connection, study, same.id, file.path, digest)
    else:
        entry = add_file(connection, study, ImageFile(file.name, file.path, columns, rows), digest, names)
    connection.execute(
        f"INSERT OR REPLACE INTO grids(image, {', '.join(GRID)}) VALUES (?, ?, ?, ?, ?, ?, ?)",
        grid_row(entry.id, file.grid, file.modality, file.identifier),
    )
    return read_image_entries(connection, study, entry.id)[0]


def add_grid(connection: sqlite3.Connection, study: Path, name: str, grid: Grid) -> ImageEntry:
    """Make an entry for a volume of which only the geometry is known, within the present transaction."""
    entry = add_size(connection, study, name, grid.shape[2], grid.shape[1])
    connection.execute(
        f"INSERT INTO grids(image, {', '.join(GRID)}) VALUES (?, ?, ?, ?, ?, ?, ?)",
        grid_row(entry.id, grid, "", ""),
    )
    return read_image_entries(connection, study, entry.id)[0]


def add_size(
    connection: sqlite3.Connection, study: Path, name: str, width: float, height: float
) -> ImageEntry:
    """Make an entry for an image of which only the size is known, within the present transaction."""
    if not (math.isfinite(width) and math.isfinite(height) and width > 0 and height > 0):
        raise StudyError(f"the size of {plain(name)} is {width:g} x {height:g}; expected pixels above 0")
    (number,) = connection.execute(
        "INSERT INTO images(name, width, height) VALUES (?, ?, ?) RETURNING id", (name, width, height)
    ).fetchone()
    return read_image_entries(connection, study, number)[0]


def set_image_file(
    connection: sqlite3.Connection, study: Path, number: int, path: Path, digest: str
) -> ImageEntry:
    """Note where an image's file is, within the present transaction."""
    connection.execute(
        "UPDATE images SET path = ?, size = ?, digest = ? WHERE id = ?",
        (stored_path(path, study), size_of(path), digest, number),
    )
    return read_image_entries(connection, study, number)[0]


def find_moved_volume(entry: ImageEntry, path: Path) -> tuple[Path, str]:
    """Find a volume in a file or folder that it may have gone to; gives where exactly, and its digest.

    Raises
    ------
    InputError
        When it is not there.
    """
    from raterscope.app.formats.volumes import find_volumes

    found = [
        one
        for one in find_volumes(path)
        if one.grid.same_as(entry.lattice) and entry.identifier in ("", one.identifier)
    ]
    if not found:
        raise StudyError(f"does not hold {plain(entry.name)}, {entry.lattice.in_words()}", file=path)
    return found[0].path, digest_of_files(found[0].files)


def uneven_slices_note(entry: ImageEntry, found: Iterable[VolumeFile]) -> str:
    """Say it where an older version took slices for even that are not: masks were then moved; else empty."""
    grid = entry.lattice
    if grid.slice_offsets is not None:
        return ""
    if any(one.grid.shape == grid.shape and one.grid.uneven for one in found):
        return (
            "; an older Raterscope took its slices as even and may have moved masks: import the series and "
            "its masks into a new study"
        )
    return ""


def refuse_other_size(file: ImageFile, entry: ImageEntry) -> None:
    """Refuse a file that is not of the size that an entry was made with."""
    if (file.width, file.height) != (round(entry.width), round(entry.height)):
        raise StudyError(
            f"has {file.width} x {file.height} pixels, but the clicks on {plain(entry.name)} were made on "
            f"{entry.width:g} x {entry.height:g}",
            file=file.path,
        )


def check_moved_file(entry: ImageEntry, path: Path) -> tuple[Path, str]:
    """Give where an image's file is now and its digest, which is the image's own."""
    if entry.grid is None:
        from raterscope.app.formats.images import read_image

        file = read_image(path)
        with translated_errors(path, "read"):
            digest = digest_of_file(path)
        if entry.digest is None:
            refuse_other_size(file, entry)
    else:
        path, digest = find_moved_volume(entry, path)
    if entry.digest not in (None, digest):
        name = plain(entry.name)
        raise StudyError(
            f"is another image than {name} was when it was added: its content differs", file=path
        )
    return path, digest
