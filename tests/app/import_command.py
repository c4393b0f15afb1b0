"""The import command, for tests."""

import pytest

from raterscope.app.cli import main

__all__ = ["import_files"]


@pytest.fixture
def import_files(tmp_path, capsys):
    """Import into one study; return the output, or the error without the program's name."""

    def run(*arguments):
        status = main(["import", str(tmp_path / "s.rscope"), *map(str, arguments)])
        output = capsys.readouterr()
        assert status == 0 or output.err.count("\n") == 1
        return output.out if status == 0 else output.err.removeprefix("raterscope: ").strip()

    return run
