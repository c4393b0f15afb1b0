"""The architecture page: what it names exists, and its picture is drawn from the imports as they are."""

import importlib
import re
import subprocess
import sys
from functools import reduce
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
WALKS = dict(re.findall(r"^### (.+?)\n(.*?)(?=^### |\Z)", PAGE, re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("title", WALKS)
def test_every_step_of_a_walk_exists(title):
    steps = re.findall(r"`(raterscope[\w.]*):([\w.]+)`", WALKS[title])
    assert len(steps) > 6
    for module, name in steps:
        assert reduce(getattr, name.split("."), importlib.import_module(module)), (module, name)


def test_the_page_has_the_four_walks():
    assert [title.split()[1] for title in WALKS] == ["click", "mask", "vote", "setting"]


def test_the_picture_shows_the_imports_as_they_are(tmp_path):
    drawn = tmp_path / "architecture.svg"
    subprocess.run([sys.executable, ROOT / "scripts" / "draw_architecture.py", drawn], check=True)
    stored = (ROOT / "docs" / "architecture.svg").read_text(encoding="utf-8")
    assert drawn.read_text(encoding="utf-8") == stored, "run `make architecture` and look at the picture"
