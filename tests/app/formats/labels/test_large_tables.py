"""Large tables, whose numbers compiled code writes."""

from __future__ import annotations

import numpy as np

from raterscope.app.formats.labels import writing


def test_compiled_code_writes_what_arrow_writes(tmp_path, monkeypatch) -> None:
    generator = np.random.default_rng(0)
    posterior = np.concatenate([
        generator.random((200, 3)), 10.0 ** generator.uniform(-11, 0, (200, 3)),
        [[0.0, 1.0, 0.5], [1e-6, 1e-7, 9.9999995e-7], [np.nan, np.inf, 1 - 1e-16], [1e-300, 0.25, 2e12]],
    ])  # fmt: skip
    tasks = [f"Aufgabe ä{row}" if row else 'a "quoted, task"' for row in range(len(posterior))]
    label = generator.integers(-1, 3, len(posterior)).astype(np.int16)
    columns = tasks, ("a", "b", ""), posterior, label, generator.random(len(posterior)), 10 * label + 10
    expected = writing.write_labels(tmp_path / "arrow.csv", *columns).read_bytes()
    monkeypatch.setattr(writing, "_COMPILED_FROM", 0)
    assert writing.write_labels(tmp_path / "compiled.csv", *columns).read_bytes() == expected
