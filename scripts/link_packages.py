"""Link installed packages and what they require into the folder of packages of another environment.

python scripts/link_packages.py FOLDER raterscope NAME...
"""

from __future__ import annotations

import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement


def with_requirements(names: list[str]) -> dict[str, Distribution]:
    """Return the distributions of these names, and all that they require here."""
    found: dict[str, Distribution] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        installed = distribution(name)
        key = installed.metadata["Name"].lower()
        if key in found:
            continue
        found[key] = installed
        requirements = [Requirement(text) for text in installed.requires or ()]
        waiting += [
            wanted.name
            for wanted in requirements
            if wanted.marker is None or wanted.marker.evaluate({"extra": ""})
        ]
    return found


def link(installed: Distribution, folder: Path) -> None:
    """Link the files and folders of a distribution at the top of its folder of packages."""
    for top in {file.parts[0] for file in installed.files or ()} - {"..", "__pycache__"}:
        place = folder / top
        if not place.exists():
            place.symlink_to(Path(str(installed.locate_file(top))).resolve())


def main() -> None:
    """Link what the command line names."""
    folder = Path(sys.argv[1])
    for installed in with_requirements(sys.argv[2:]).values():
        link(installed, folder)


if __name__ == "__main__":
    main()
