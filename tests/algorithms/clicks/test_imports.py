"""Starting up stays quick: heavy libraries are loaded when an algorithm runs."""

import subprocess
import sys


def test_importing_the_package_loads_no_heavy_library():
    code = (
        "import sys, raterscope.algorithms.clicks, raterscope.algorithms.evaluation\n"
        "heavy = {'numba', 'sklearn', 'scipy', 'PySide6'}\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules} & heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
