"""Plugins appear on the command line, in the window, in reports and in the library; a bad one is left out."""

import os
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
NUMBER = 7
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
    (folder / "raterscope_example.py").symlink_to(EXAMPLE / "raterscope_example.py")
    broken = {"labels.unlucky": "broken_plugin:UNLUCKY", "labels.number": "broken_plugin:NUMBER",
              "labels.absent": "no_such_module:ANY"}  # fmt: skip
    for package, groups_of in (("example", groups), ("broken", {"raterscope.algorithms": broken})):
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


def command(site, folder, *words):
    return run(site, folder, "-m", "raterscope", *words)


def test_an_algorithm_a_format_and_an_export_of_a_plugin_work_from_file_to_report(site, tmp_path):
    (tmp_path / "votes.csv").write_text(VOTES)
    done = command(site, tmp_path, "import", "s.rscope", "votes.csv")
    assert done.returncode == 0, done.stderr
    done = command(site, tmp_path, "run", "s.rscope", "experienced", "--set", "least=10")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("cannot be used") == 2
    assert "The plugin labels.absent (algorithm) cannot be used: ModuleNotFoundError" in done.stderr
    command(site, tmp_path, "export", "s.rscope", "--what", "labels", "-o", "labels.csv")
    assert "\nt0,y,0,1,0,4\n" in (tmp_path / "labels.csv").read_text()  # the newcomer's x does not count
    done = command(site, tmp_path, "export", "s.rscope", "--what", "diary", "-o", "diary.txt")
    assert done.returncode == 0, done.stderr
    done = command(site, tmp_path, "report", "s.rscope", "-o", "report.html")
    assert done.returncode == 0, done.stderr
    assert "experienced annotators" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_format_of_a_plugin_is_imported_and_its_faults_are_named(site, tmp_path):
    (tmp_path / "smear.dots").write_text("a.png anna 3 4\na.png ben 3 5\n")
    (tmp_path / "sizes.csv").write_text("image,width,height\na.png,20,10\n")
    words = ("fuse", "clicks", "smear.dots", "--extent", "20", "10", "-o", "out")
    done = command(site, tmp_path, *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 clicks by 2 annotators on 1 image")
    (tmp_path / "smear.dots").write_text("a.png anna 3\n")
    done = command(site, tmp_path, *words)
    assert "smear.dots, line 1: expected image, annotator, x and y" in done.stderr
    (tmp_path / "smear.dots").write_text("a.png anna 3 north\n")
    done = command(site, tmp_path, *words)
    assert "smear.dots: the plugin dots cannot read it: ValueError" in done.stderr


def test_a_plugin_that_fails_while_it_runs_is_one_sentence(site, tmp_path):
    (tmp_path / "votes.csv").write_text(VOTES)
    done = command(site, tmp_path, "fuse", "labels", "votes.csv", "--algorithm", "unlucky", "-o", "out")
    assert done.returncode == 1
    assert "out of luck" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_library_and_the_window_offer_the_algorithm(site, tmp_path):
    (tmp_path / "votes.csv").write_text(VOTES)
    program = """
import csv, raterscope as rs
rows = list(csv.DictReader(open("votes.csv")))
table = {name: [row[name] for row in rows] for name in rows[0]}
result = rs.fuse_labels(table, algorithm="experienced", least=10)
print(result.settings)
from raterscope.app.workspaces.labels.screen import LABELLERS
assert "experienced" in LABELLERS
"""
    done = run(site, tmp_path, "-c", program)
    assert done.returncode == 0, done.stderr
    assert "'least': 10" in done.stdout


def test_the_window_says_which_plugin_it_leaves_out(qtbot, monkeypatch):
    from raterscope.algorithms import plugins
    from raterscope.app.window import startup
    from raterscope.app.window.main_window import MainWindow

    monkeypatch.setattr(plugins, "_problems", {("raterscope.algorithms", "labels.bad"): "It is <b>bad</b>."})
    window = MainWindow()
    qtbot.addWidget(window)
    startup._begin(window, (), None)
    assert window.notice.isVisibleTo(window)
    assert window.notice.text == "It is <b>bad</b>."
    window.close()
