"""The architecture page: what it names exists, and its picture is drawn from the imports as they are."""

import importlib
import json
import re
import subprocess
import sys
from functools import reduce
from pathlib import Path

import pytest
from PIL import Image

from raterscope.app.cli.program import main

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
WALKS = dict(re.findall(r"^### (.+?)\n(.*?)(?=^### |\Z)", PAGE, re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("title", WALKS)
def test_every_step_of_a_walk_exists(title):
    steps = re.findall(r"`(raterscope[\w.]*):([\w.]+)`", WALKS[title])
    assert len(steps) > 6
    for module, name in steps:
        assert reduce(getattr, name.split("."), importlib.import_module(module)), (module, name)


def steps_of(title, leaving_out):
    steps = re.findall(r"`(raterscope[\w.]*):([\w.]+)`", WALKS[title])
    return {
        name: reduce(getattr, name.split("."), importlib.import_module(module))
        for module, name in steps
        if not module.startswith(("raterscope.app.workspaces", "raterscope.widgets"))
        and name not in leaving_out
    }


@pytest.mark.parametrize(
    ("kind", "algorithm", "leaving_out"),
    [("click", "oem", {"Document.record", "Study.record"}), ("vote", "pooled", set())],
)
def test_an_import_and_a_fusion_pass_every_step_of_the_walk(tmp_path, kind, algorithm, leaving_out):
    """Steps in the window and the decision are left out."""
    (title,) = (title for title in WALKS if title.split()[1] == kind)
    steps = steps_of(title, leaving_out)
    codes = {getattr(step, "__code__", getattr(step.__init__, "__code__", None)): name
             for name, step in steps.items()}  # fmt: skip
    called = set()

    def note(frame, event, _):
        if event == "call":
            called.add(codes.get(frame.f_code))

    files = write_inputs(tmp_path, kind)
    sys.setprofile(note)
    try:
        assert main(["import", str(tmp_path / "a.rscope"), *map(str, files)]) == 0
        assert main(["run", str(tmp_path / "a.rscope"), algorithm]) == 0
    finally:
        sys.setprofile(None)
    assert set(codes.values()) <= called


def write_inputs(folder, kind):
    annotators = ("anna", "ben", "carla", "dora")
    if kind == "vote":
        rows = (f"{annotator},task {task},{'cat' if task % 3 else 'dog'}"
                for annotator in annotators for task in range(12))  # fmt: skip
        (folder / "votes.csv").write_text("\n".join(["annotator,task,label", *rows]))
        return [folder / "votes.csv"]
    Image.new("RGB", (100, 100)).save(folder / "a.png")
    annotations = [
        {"id": 10 * k + spot, "image_id": 1, "category_id": 1, "keypoints": [x + k, y - k, 2],
         "attributes": {"annotator": name}}
        for k, name in enumerate(annotators)
        for spot, (x, y) in enumerate(((20, 30), (70, 60)))
    ]  # fmt: skip
    image = {"id": 1, "file_name": "a.png", "width": 100, "height": 100}
    content = {"images": [image], "annotations": annotations, "categories": [{"id": 1, "name": "cell"}]}
    (folder / "clicks.json").write_text(json.dumps(content))
    return [folder / "a.png", folder / "clicks.json"]


def test_the_page_has_the_four_walks():
    assert [title.split()[1] for title in WALKS] == ["click", "mask", "vote", "setting"]


def test_the_picture_shows_the_imports_as_they_are(tmp_path):
    drawn = tmp_path / "architecture.svg"
    subprocess.run([sys.executable, ROOT / "scripts" / "draw_architecture.py", drawn], check=True)
    stored = (ROOT / "docs" / "architecture.svg").read_text(encoding="utf-8")
    assert drawn.read_text(encoding="utf-8") == stored, "run `make architecture` and look at the picture"
