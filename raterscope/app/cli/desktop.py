"""The command `desktop`: menu entry, file type, manual page and completion on Linux."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from raterscope import resources
from raterscope.app.cli.options import parser_of
from raterscope.app.errors import InputError
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
    folder = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
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
