"""The command `pacs`: find, fetch and store series of an archive."""

from __future__ import annotations

import argparse
import sys
from dataclasses import astuple, fields
from pathlib import Path

from raterscope.algorithms.progress import silent
from raterscope.app.command_line.output import ProgressLine
from raterscope.app.errors import InputError
from raterscope.text import counted


def _dicom_files(path: Path) -> list[Path]:
    """Return a file as given, or the DICOM files in a folder."""
    from raterscope.app.formats.volumes import walk_files

    if not path.is_dir():
        return [path]
    files = []
    for file in walk_files(path, silent):
        with file.open("rb") as opened:
            if opened.read(132)[128:] == b"DICM":
                files.append(file)
    if not files:
        raise InputError("contains no DICOM file", file=path)
    return files


def pacs(options: argparse.Namespace) -> int:
    """Run `find`, `get` or `store`."""
    from raterscope.app.formats.remote.archives import connect, fetch_all, find_series, store_files
    from raterscope.app.formats.remote.protocols import Series

    archive = connect(options.address, options.certificates)
    if options.act == "store":
        files = [file for path in options.files for file in _dicom_files(path)]
        with ProgressLine(sys.stderr) as watch:
            store_files(archive, files, watch)
        print(f"stored {counted(len(files), 'file')}")
        return 0
    filters = {
        keyword: value
        for keyword, value in (
            ("PatientID", options.patient), ("Modality", options.modality), ("StudyDate", options.date),
            ("StudyInstanceUID", options.study), ("SeriesInstanceUID", options.series),
        )
        if value
    }  # fmt: skip
    if options.act == "get" and not {"StudyInstanceUID", "SeriesInstanceUID"} & set(filters):
        raise InputError("name what to fetch: --study UID or --series UID; `raterscope pacs find` lists them")
    matching = find_series(archive, filters)
    if options.act == "find":
        print("\t".join(field.name for field in fields(Series)))
        for series in matching:
            print("\t".join(astuple(series)))
        return 0
    if not matching:
        raise InputError("there is no such study or series")
    with ProgressLine(sys.stderr) as watch:
        written = sum(map(len, fetch_all(archive, matching, options.output, watch).values()))
    print(f"{counted(written, 'file')} of {len(matching):,} series in {options.output}")
    return 0
