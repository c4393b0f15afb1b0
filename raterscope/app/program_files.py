"""The program's files and environment variables: suffixes, state of a study's file, user's name."""

from __future__ import annotations

import getpass
import os
from dataclasses import dataclass
from pathlib import Path

STUDY_SUFFIX = ".rscope"
READING_SUFFIX = ".rsread"
CACHE = "RATERSCOPE_CACHE"
"""Environment variable that names the folder of images converted for fast display."""

EXPERT = "RATERSCOPE_EXPERT"
"""Environment variable with the expert's name."""


def user_name() -> str:
    """Return the expert's name for the attribution of decisions.

    It is the value of the environment variable `EXPERT`, which the settings of the window set; by default the
    login name.
    """
    return os.environ.get(EXPERT, "").strip() or login_name()


def login_name() -> str:
    """Return the login name of the user."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no such user: a container
        return "expert"


@dataclass(frozen=True)
class FileState:
    """State of an open study's file: its path, and whether it is complete."""

    moved: bool = False  # whether the file was moved, renamed, deleted or replaced since it was opened
    path: Path | None = None  # current path, if the system reports it; None for a deleted file
    # the file beside the study with the latest changes; None if the study itself is complete
    log: Path | None = None
    why: str = ""  # why it is not complete, in a sentence
