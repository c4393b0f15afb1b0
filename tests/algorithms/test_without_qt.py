"""The algorithms are of use without Qt and without the libraries of files."""

import subprocess
import sys
from pathlib import Path

from raterscope import algorithms

ROOT = Path(algorithms.__path__[0])
MODULES = sorted(
    ".".join(("raterscope", "algorithms", *path.relative_to(ROOT).with_suffix("").parts))
    for path in ROOT.rglob("*.py")
)
OTHERS = ("PySide6", "shiboken6", "pydicom", "highdicom", "nibabel", "tifffile", "PIL")


def test_every_module_of_the_algorithms_imports_where_qt_is_missing():
    lines = [
        "import importlib, sys",
        f"sys.modules.update(dict.fromkeys({OTHERS}))",
        f"for name in {MODULES}:",
        "    importlib.import_module(name.removesuffix('.__init__'))",
        "    print(name)",
    ]
    ended = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False
    )
    assert ended.stdout.split() == MODULES, ended.stderr
