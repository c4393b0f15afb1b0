"""Plugins appear on the command line, in the window, in reports and in the library; a bad one is left out."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent / "docs" / "plugin"
VOTES = "annotator,task,label\n" + "".join(
    f"{annotator},t{task},{'x' if task % 2 else 'y'}\n" for annotator in "abc" for task in range(25)
) + "new,t0,x\nnew,t2,x\nnew,t4,x\n"  # fmt: skip
BROKEN = """
def fails(labels, settings=None, watch=None):
    raise RuntimeError("out of luck")
from raterscope.algorithms.labels.data import LabelSettings
from raterscope.algorithms.settings import Algorithm
UNLUCKY = Algorithm("unlucky", "unlucky", "Fails.", "none", LabelSettings, fails)
LEAVING = Algorithm("leaving", "leaving", "Fails.", "none", LabelSettings, lambda *_, **__: exit(3))
EMPTY = Algorithm("empty", "empty", "Fails.", "none", LabelSettings, lambda *_, **__: None)
NUMBER = 7
from raterscope.app.formats.annotations import Annotation, AnnotationFormat, AnnotationSet, Document, Item
class Answers(Document):
    expected = {"labels": "answers"}
    def contents(self):
        return frozenset({"labels"})
    def sets(self, kind, remarks, watch=None):
        for annotator in ("anna", "ben"):
            yield AnnotationSet(Item("t1"), annotator, [Annotation("answers", "line 1", answers=("ring",))])
ANSWERS = AnnotationFormat((".answers",), lambda path: Answers())
"""


@pytest.fixture
def site(tmp_path):
    """A folder of packages in which the example and a plugin with faults are installed."""
    folder = tmp_path / "site"
    groups = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "entry-points"
    ]
    (folder / "broken_plugin.py").parent.mkdir()
    (folder / "broken_plugin.py").write_text(BROKEN)
    (folder / "leaving_plugin.py").write_text("raise SystemExit(3)")
    (folder / "raterscope_example.py").symlink_to(EXAMPLE / "raterscope_example.py")
    broken = {"labels.unlucky": "broken_plugin:UNLUCKY", "labels.leaving": "broken_plugin:LEAVING",
              "labels.empty": "broken_plugin:EMPTY",
              "labels.number": "broken_plugin:NUMBER",
              "labels.absent": "no_such_module:ANY", "labels.leaves": "leaving_plugin:ANY"}  # fmt: skip
    for package, groups_of in (
        ("example", groups),
        (
            "broken",
            {"raterscope.algorithms": broken, "raterscope.formats": {"answers": "broken_plugin:ANSWERS"}},
        ),
    ):
        metadata = folder / f"{package}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [
            line
            for group, points in groups_of.items()
            for line in (f"[{group}]", *(f"{name} = {value}" for name, value in points.items()))
        ]
        (metadata / "entry_points.txt").write_text("\n".join(lines))
    return folder


def run(site, folder, *words):
    path = os.pathsep.join([str(site), str(Path(__file__).parent.parent)])
    return subprocess.run(
        [sys.executable, *map(str, words)], cwd=folder, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": path},
    )  # fmt: skip


LIBRARY = """
import csv, raterscope as rs
rows = list(csv.DictReader(open("votes.csv")))
table = {name: [row[name] for row in rows] for name in rows[0]}
print(rs.fuse_labels(table, algorithm="experienced", least=10).settings)
from raterscope.app.workspaces.labels.screen import LABELLERS
assert "experienced" in LABELLERS
"""
COMMANDS = """
import json, sys
from raterscope.app.cli import main
print([main(words.split()) for words in json.loads(sys.argv[1])])
"""


def commands(site, folder, *command_lines, before=""):
    """Run a program and commands in one process, whose last line of output has their statuses."""
    done = run(site, folder, "-c", before + COMMANDS, json.dumps(command_lines))
    assert "Traceback" not in done.stderr
    return done


def test_an_algorithm_and_an_export_of_a_plugin_work_from_file_to_report(site, tmp_path):
    (tmp_path / "votes.csv").write_text(VOTES)
    done = commands(
        site, tmp_path,
        "import s.rscope votes.csv",
        "run s.rscope experienced --set least=10",
        "export s.rscope --what labels -o labels.csv",
        "export s.rscope --what diary -o diary.txt",
        "report s.rscope -o report.html",
        "fuse labels votes.csv --algorithm unlucky -o out",
        "run s.rscope empty",
        "fuse labels votes.csv --algorithm leaving -o out",
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[0, 0, 0, 0, 0, 1, 1, 1]", done.stderr
    named = re.findall(r"The plugin (\S+) \(algorithm\) cannot be used", done.stderr)
    assert set(named) == {"labels.absent", "labels.leaves", "labels.number"}
    assert "The plugin labels.absent (algorithm) cannot be used: ModuleNotFoundError" in done.stderr
    assert "the plugin labels.unlucky failed: RuntimeError: out of luck." in done.stderr
    assert "labels.empty failed: its result is of class NoneType; expected LabelFusion." in done.stderr
    assert "the plugin labels.leaving failed: SystemExit: 3." in done.stderr
    assert "\nt0,y,0,1,0,4\n" in (tmp_path / "labels.csv").read_text()  # the newcomer's x does not count
    assert "experienced annotators" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_library_and_the_window_offer_the_algorithm_and_formats_are_imported(site, tmp_path):
    """Faults of formats are named. All is in one process, since each start takes a second."""
    (tmp_path / "votes.csv").write_text(VOTES)
    (tmp_path / "smear.dots").write_text("a.png anna 3 4\na.png ben 3 5\n")
    (tmp_path / "short.dots").write_text("a.png anna 3\n")
    (tmp_path / "word.dots").write_text("a.png anna 3 north\n")
    (tmp_path / "one.answers").write_text("any")
    done = commands(
        site, tmp_path,
        *(f"fuse clicks {name}.dots --extent 20 10 -o {name}" for name in ("smear", "short", "word")),
        "import s.rscope one.answers",
        "fuse labels one.answers -o out",
        before=LIBRARY,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[0, 1, 1, 0, 0]", done.stderr
    assert "'least': 10" in done.stdout.splitlines()[0]
    assert "\n2 clicks by 2 annotators on 1 image" in done.stdout
    assert "short.dots, line 1: expected image, annotator, x and y" in done.stderr
    assert "word.dots: the plugin dots cannot read it: ValueError" in done.stderr
    assert "one.answers: 2 votes by 2 annotators on 1 task" in done.stdout


def test_a_fusion_of_masks_needs_no_record_of_an_iteration():
    import numpy as np

    from raterscope.algorithms.masks.data import Masks, make_fusion

    values = np.ones((2, 3, 3, 3), dtype=bool)
    masks = Masks(values, ("anna", "ben"), (1.0, 1.0, 1.0))
    fusion = make_fusion(masks, "inner", (0, 0, 0), values[:1], np.ones((1, 3, 3, 3), np.float32))

    assert [len(trace.objective) for trace in fusion.traces] == [0]
