"""`import raterscope` is light, needs no Qt, and its stub names what it has."""

import re
import subprocess
import sys
from pathlib import Path

import raterscope

PROGRAM = """
import sys
import raterscope as rs
assert "numpy" not in sys.modules, "import raterscope is heavy"
votes = {"annotator": ["a", "b"] * 2, "task": ["t", "t", "u", "u"], "label": ["x", "x", "y", "x"]}
rs.fuse_labels(votes, algorithm="majority")._repr_html_()
heavy = {"PySide6", "shiboken6", "polars", "SimpleITK"} & set(sys.modules)
assert not heavy, heavy
"""


def test_the_library_imports_no_qt_and_no_tables_of_others():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


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
