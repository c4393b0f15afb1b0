"""README, contributing page and metadata of the project hold what they promise."""

import re
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent


def test_the_readmes_example_finds_the_structures_it_simulates():
    (example,) = re.findall(
        r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL
    )
    names: dict = {}
    exec(example, names)
    positions = names["fusion"].clustering.mean[names["fusion"].detection.detected]
    away = np.linalg.norm(positions[:, None] - names["structures"], axis=2)
    assert len(positions) == len(names["structures"])
    assert away.min(axis=0).max() < 2


def test_the_pages_of_the_project_link_to_files_that_exist():
    for page in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#]+)", text):
            assert target.startswith("https://") or (ROOT / target).exists(), f"{page}: {target}"


def test_the_contributing_page_names_modules_that_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for name in re.findall(
        r"`((?:app|algorithms|widgets|resources|formats|cli|study|window|tests)/[\w/]+\.\w+)`", text
    ):
        for kind in ("clicks", "masks", "labels", "pairs") if "KIND" in name else ("",):
            file = name.replace("KIND", kind)
            folders = [ROOT, ROOT / "raterscope", ROOT / "raterscope" / "app"]
            assert any((folder / file).exists() for folder in folders), file
    for module in re.findall(r"python -m (tests\.campaigns\.\w+)", text):
        assert (ROOT / Path(*module.split("."))).with_suffix(".py").exists(), module
