"""Fingerprints of texts."""

import hashlib

from raterscope.app.study.arrays import Fingerprint


def test_texts_are_digested_with_their_lengths_in_bytes():
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
