"""Digests of files: cached for unchanged files, computed again after a change."""

import os
import time

from raterscope.app.study import arrays


def read_of(path) -> tuple[str, bool]:
    """Give a digest, and whether the file was read for it."""
    messages = []
    return arrays.digest_of_file(path, lambda *_: messages.append(True)), bool(messages)


def test_a_file_is_read_once_until_it_is_written_again(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "_CLOCK_STEP", 0)
    path = tmp_path / "slide.tif"
    path.write_bytes(b"one slide")
    first, read = read_of(path)
    assert read
    assert read_of(path) == (first, False)
    status = path.stat()
    time.sleep(0.02)  # longer than a disk's clock takes from one time to the next
    path.write_bytes(b"ten slide")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    second, read = read_of(path)
    assert read
    assert second != first
    time.sleep(0.02)
    path.write_bytes(b"one slide")
    assert read_of(path) == (first, True)


def test_what_was_just_written_is_not_taken_for_known(tmp_path):
    path = tmp_path / "slide.tif"
    path.write_bytes(b"one slide")
    assert read_of(path)[1]
    assert read_of(path)[1]
