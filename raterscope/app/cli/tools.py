"""The commands that need no study: `desktop`, `pacs`, `references`, `simulate` and `papers`.

The heavy modules are imported by the commands that need them.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import astuple, fields
from pathlib import Path

from raterscope import resources
from raterscope.algorithms.progress import part, silent
from raterscope.app.cli.options import parser_of
from raterscope.app.command_line.output import ProgressLine, one_line, print_files, print_results
from raterscope.app.errors import InputError, plain
from raterscope.resources.bibliography import bibliography, references_text
from raterscope.text import counted

_COMMENT = "Review the work of many annotators"
_ENTRY = """[Desktop Entry]
Type=Application
Name=Raterscope
Comment={comment}
Exec={program} %F
Icon=raterscope
Terminal=false
Categories=Science;MedicalSoftware;ImageProcessing;
MimeType=application/x-raterscope;
StartupWMClass=raterscope
"""

_FILE_TYPE = """<?xml version="1.0" encoding="UTF-8"?>
<mime-info xmlns="http://www.freedesktop.org/standards/shared-mime-info">
  <mime-type type="application/x-raterscope">
    <comment>Raterscope study</comment>
    <sub-class-of type="application/vnd.sqlite3"/>
    <glob pattern="*.rscope" weight="60"/>
    <glob pattern="*.rsread" weight="60"/>
  </mime-type>
</mime-info>
"""


def desktop(options: argparse.Namespace) -> int:
    """Write or remove the files, and bring the system's caches up to date."""
    if not sys.platform.startswith("linux"):
        raise InputError("menu entries are written on Linux only")
    folder = _data_folder()
    files = {folder / name: text for name, text in _files(parser_of()).items()}
    if options.remove:
        present = [path for path in files if path.exists()]
        for path in present:
            path.unlink()
        print(f"removed {counted(len(present), 'file')} from {folder}")
    else:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(path)
    for program, changed in (("update-mime-database", "mime"), ("update-desktop-database", "applications")):
        if shutil.which(program) and (folder / changed).is_dir():
            subprocess.run([program, folder / changed], check=False, capture_output=True)
    return 0


def _data_folder() -> Path:
    """Return the user's folder of the XDG Base Directory Specification."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")


def _files(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Return the contents of each file, by its path in the data folder."""
    import shtab
    from argparse_manpage.manpage import Manpage

    manual = Manpage(parser)
    manual.manual, manual.description = "User Commands", _COMMENT.lower()  # `whatis` finds the program by it
    icon = Path(resources.__path__[0]) / "icons" / "raterscope.svg"
    return {
        "applications/raterscope.desktop": _ENTRY.format(program=_program(), comment=_COMMENT),
        "icons/hicolor/scalable/apps/raterscope.svg": icon.read_text(encoding="utf-8"),
        "mime/packages/raterscope.xml": _FILE_TYPE,
        "man/man1/raterscope.1": str(manual),
        "bash-completion/completions/raterscope": shtab.complete(parser, "bash"),
        "zsh/site-functions/_raterscope": shtab.complete(parser, "zsh"),
    }


def _program() -> str:
    """Return the command that starts this installation, as the key Exec wants it."""
    if image := os.environ.get("APPIMAGE"):
        return _quoted(image)
    if getattr(sys, "frozen", False):
        return _quoted(sys.executable)
    script = Path(sys.executable).with_name("raterscope")
    return _quoted(str(script)) if script.exists() else f"{_quoted(sys.executable)} -m raterscope"


def _quoted(argument: str) -> str:
    """Quote an argument by the rules of the Desktop Entry Specification, which differ from the shell's.

    A percent sign is doubled, a quoted argument escapes four characters, and each backslash of it is escaped
    once more, as in every value of the file.
    """
    doubled = argument.replace("%", "%%")
    if re.fullmatch(r"[\w%+,./:@-]+", doubled):
        return doubled
    return '"' + re.sub(r'(["`$\\])', r"\\\1", doubled).replace("\\", "\\\\") + '"'


def _dicom_files(path: Path) -> list[Path]:
    """Return a file itself; of a folder, the DICOM files in it."""
    from raterscope.app.formats.volumes import walk_files

    if not path.is_dir():
        return [path]
    files = []
    for file in walk_files(path, silent):
        with file.open("rb") as opened:
            if opened.read(132)[128:] == b"DICM":
                files.append(file)
    if not files:
        raise InputError("holds no DICOM file", file=path)
    return files


def pacs(options: argparse.Namespace) -> int:
    """Carry out one of the three."""
    from raterscope.app.formats.remote.archives import Series, connect, fetch_all, find_series, store_files

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


def references(options: argparse.Namespace) -> int:
    """List all works, or those of the keys that are named, as text or as BibTeX."""
    works = bibliography()
    missing = [key for key in options.keys if key not in works]
    if missing:
        raise InputError(f"there is no reference {plain(missing[0], 40)}; `raterscope references` lists all")
    keys = options.keys or list(works)
    if options.bibtex:
        print("\n\n".join(works[key].source for key in keys))
    else:
        for key, line in zip(keys, references_text(keys), strict=True):
            print(f"{key}\t{line}")
    return 0


def simulate_files(options: argparse.Namespace) -> int:
    """Draw a set-up, write its files, and print the commands that fuse and import them."""
    from raterscope.app.simulation.setups import find_setup
    from raterscope.app.simulation.simulate import commands_in_words, simulate, study_in

    setup = find_setup(options.setup)
    settings = {
        spec.name: vars(options)[spec.name] for spec in setup.settings.specs() if spec.name in options
    }
    folder = options.output
    with ProgressLine(sys.stderr) as watch:
        files_drawn = simulate(setup, setup.settings(**settings), folder, part(watch, 0.0, 0.8))
        study = study_in(setup, files_drawn, part(watch, 0.8, 1.0)) if options.study else None
    files = [
        *files_drawn.data,
        *files_drawn.truth,
        *files_drawn.other_truth,
        *([study] if study is not None else []),
    ]
    print_files(files, folder)
    fuse_command, import_command = commands_in_words(setup, files_drawn, folder)
    print_results(
        (), [fuse_command, import_command if study is None else f"raterscope {shlex.quote(str(study))}"]
    )
    return 0


def papers(options: argparse.Namespace) -> int:
    """Measure the papers' figures that are not stored yet, and write the page."""
    from raterscope.app.papers.page import make_page

    with ProgressLine(sys.stderr) as watch:
        page = make_page(
            options.output, watch, names=options.only, full=options.full, data=options.data,
            measuring=not options.page,
        )  # fmt: skip
    print(one_line(str(page)))
    return 0
