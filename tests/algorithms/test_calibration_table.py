"""The table of calibration: every kind has its rows, and one command prints them."""

import sys
from importlib import import_module

import pytest

from tests.benchmarks.calibration import Row
from tests.benchmarks.calibration.__main__ import main


@pytest.mark.parametrize("kind", ["clicks", "labels", "masks", "pairs"])
def test_each_kind_has_a_line_in_the_table(kind, monkeypatch, capsys):
    module = import_module(f"tests.benchmarks.calibration.{kind}")
    assert callable(module.rows)
    row = Row(kind, "interval, 95 %", "simulation", nominal=0.95, measured=0.9312, count=400, error=0.0127)
    monkeypatch.setattr(module, "rows", lambda: [row])
    monkeypatch.setattr(sys, "argv", ["calibration", "--kind", kind])
    main()
    assert capsys.readouterr().out.splitlines()[1].split() == [
        kind, "interval,", "95", "%", "simulation", "0.950", "0.931", "0.013", "400",
    ]  # fmt: skip


def test_a_misspelt_option_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["calibration", "--kinds", "labels", "--ful"])
    with pytest.raises(SystemExit):
        main()
    assert "--kinds" in capsys.readouterr().err
