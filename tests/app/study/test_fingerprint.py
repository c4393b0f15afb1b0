"""Fingerprints of texts."""

import hashlib

import pytest

from raterscope.app.study import arrays
from raterscope.app.study.arrays import Fingerprint


@pytest.mark.parametrize("batch", [2, 100_000])
def test_texts_are_digested_with_their_lengths_in_bytes(monkeypatch, batch):
    monkeypatch.setattr(arrays, "_BATCH", batch)
    texts = ["", "t1", "Grün", "", "\U0001f9ab" * 300, "t1"]
    content = b"".join(len(t.encode()).to_bytes(8, "little") + t.encode() for t in texts)
    fingerprint = Fingerprint()
    fingerprint.texts(*texts)
    assert str(fingerprint) == f"sha256:{hashlib.sha256(content).hexdigest()}"


def test_the_borders_of_texts_count():
    one, other = Fingerprint(), Fingerprint()
    one.texts("ab", "c")
    other.texts("a", "bc")
    assert str(one) != str(other)
