"""`raterscope desktop`: a menu entry, the file type, the manual page and completion, and their removal."""

import shutil
import subprocess
import sys
from configparser import ConfigParser

import pytest

from raterscope.app.cli import main
from raterscope.app.cli.program import COMMANDS

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="menu entries are for Linux")

COMPLETE = """
source "$1"
COMP_WORDS=(raterscope ex) COMP_CWORD=1
_shtab_raterscope
echo "${COMPREPLY[@]}"
"""


def test_the_menu_entry_starts_the_program_and_all_is_removed_again(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert main(["desktop"]) == 0
    files = [tmp_path / line.removeprefix(f"{tmp_path}/") for line in capsys.readouterr().out.splitlines()]
    assert all(file.is_file() for file in files)

    entry = ConfigParser(interpolation=None)
    entry.optionxform = str
    entry.read(tmp_path / "applications" / "raterscope.desktop")
    program = entry["Desktop Entry"]["Exec"].removesuffix(" %F").split()
    done = subprocess.run([*program, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("raterscope ")
    assert entry["Desktop Entry"]["MimeType"].rstrip(";") in (
        tmp_path / "mime" / "packages" / "raterscope.xml"
    ).read_text(encoding="utf-8")

    manual = (tmp_path / "man" / "man1" / "raterscope.1").read_text(encoding="utf-8")
    missing = [name for name in COMMANDS if f"raterscope {name}".replace("-", "\\-") not in manual]
    assert not missing
    assert "raterscope \\- review the work" in manual  # `whatis` reads this line

    assert main(["desktop", "--remove"]) == 0
    assert not [file for file in files if file.exists()]


@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")
def test_bash_completes_commands(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert main(["desktop"]) == 0
    script = tmp_path / "bash-completion" / "completions" / "raterscope"
    done = subprocess.run(
        ["bash", "-c", COMPLETE, "bash", str(script)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["export"]


def test_a_path_with_reserved_characters_is_quoted_as_specified(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("APPIMAGE", "/opt/50% of $5/Raterscope")
    assert main(["desktop"]) == 0
    lines = (tmp_path / "applications" / "raterscope.desktop").read_text(encoding="utf-8").splitlines()
    assert r'Exec="/opt/50%% of \\$5/Raterscope" %F' in lines
