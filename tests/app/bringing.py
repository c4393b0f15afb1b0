"""The import command, for tests."""

import pytest

from raterscope.app.cli import main

__all__ = ["bring"]


@pytest.fixture
def bring(tmp_path, capsys):
    """Import into one study; gives what was said, a refusal without the program's name."""

    def run(*arguments):
        status = main(["import", str(tmp_path / "s.rscope"), *map(str, arguments)])
        said = capsys.readouterr()
        assert status == 0 or said.err.count("\n") == 1
        return said.out if status == 0 else said.err.removeprefix("raterscope: ").strip()

    return run
