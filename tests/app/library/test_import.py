"""`import raterscope` is light, needs no Qt, and its stub names what it has."""

import re
import subprocess
import sys
from pathlib import Path

import raterscope

LEAN = r"""
import sys
from importlib.abc import MetaPathFinder
import raterscope as rs
assert "numpy" not in sys.modules, "import raterscope is heavy"
votes = {"annotator": ["a", "b"] * 2, "task": ["t", "t", "u", "u"], "label": ["x", "x", "y", "x"]}
rs.fuse_labels(votes, algorithm="majority")._repr_html_()
lacking = {"sklearn", "imagecodecs", "pydicom", "highdicom", "nibabel", "nrrd", "PySide6"}
heavy = (lacking | {"shiboken6", "polars", "SimpleITK"}) & {name.split(".")[0] for name in sys.modules}
assert not heavy, heavy
class Lacking(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in lacking:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Lacking())
from raterscope.app.cli import main
page, table, nifti = sys.argv[1:]
for example in open(page).read().split("```python\n")[1:]:
    exec(example.split("```")[0])
assert main(["fuse", "labels", table, "--algorithm", "majority", "-o", table + "-out"]) == 0
assert main(["import", table + ".rscope", nifti]) == 1
clicks = {"annotator": list("abcdef"), "image": ["i"] * 6, "x": [5] * 6, "y": [1, 2, 3, 6, 7, 8]}
rs.fuse_clicks(clicks, algorithm="hdbscan", extent=(9, 9))
"""


def test_the_library_is_light_and_names_the_package_that_a_method_or_format_needs(tmp_path):
    """It imports no Qt and no tables of others; the last command alone fails."""
    table, nifti = tmp_path / "votes.csv", tmp_path / "ct.nii"
    table.write_text("annotator,task,label\na,t,x\nb,t,x\na,u,y\nb,u,x\n")
    nifti.write_bytes((348).to_bytes(4, "little") + bytes(340) + b"n+1\0" + bytes(100))
    page = Path(raterscope.__file__).parent.parent / "docs" / "python.md"
    command = [sys.executable, "-c", LEAN, str(page), str(table), str(nifti)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "ct.nii: cannot be read: this needs nibabel, which is not installed" in done.stderr
    assert "this needs scikit-learn, which is not installed" in done.stderr.splitlines()[-1]
    assert "pip install 'raterscope[full]'" in done.stderr.splitlines()[-1]


def test_the_examples_of_the_page_on_python_run(capsys):
    page = Path(raterscope.__file__).parent.parent / "docs" / "python.md"
    examples = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    results = []
    for example in examples:
        names: dict = {}
        exec(example, names)
        results.append(names["result"])
    kinds = ["ClickResult", "MaskResult", "LabelResult", "PairResult"]
    assert [type(result).__name__ for result in results] == kinds
    assert results[0].to_frame()["detected"].sum() == 20
    assert results[3].to_frame()["item"].tolist() == list("abcd")


def test_every_public_name_exists_and_is_in_the_stub():
    stub = Path(raterscope.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    assert set(re.findall(r" as (\w+)", stub)) == set(raterscope.__all__) - {"__version__"}
    assert all(getattr(raterscope, name).__doc__ for name in raterscope.__all__ if name != "__version__")
    assert set(raterscope.__all__) <= set(dir(raterscope))
