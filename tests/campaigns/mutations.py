"""Changes to the bytes of a file, as a broken disk, a broken program or a hostile author makes them."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

__all__ = ["VALUES", "list_places", "mutated"]

HEAD = 600
"""Bytes at the beginning, where binary formats keep their header."""

NUMBERS = (
    b"0", b"-1", b"1", b"-0.0", b"1e308", b"1e400", b"nan", b"inf", b"-inf", b"NaN", b"0.5", b"255", b"256",
    b"65535", b"65536", b"2147483647", b"2147483648", b"-2147483649", b"4294967296", b"9223372036854775807",
    b"18446744073709551616", b"30000", b"100000", b"99999999", b"9" * 40, b"9" * 311, b"1" + b"0" * 4400, b"",
    b"0x10", b"1_000", b"1,5", "٣".encode(), b"--1", b"+5",
)  # fmt: skip
WORDS = (
    b"", b"\0", b"=1+1", b"<b>x</b>", b"\xff\xfe", "ü\u202e\u2028".encode(), b"null", b"true", b"NaN", b"[]",
    b"{}", b'"', b"'", b",", b";", b"\t", b"\r", b"\n", b"\r\n", b"..", b"/", b"../../etc/passwd", b"%s",
    b"A" * 5000, b"&amp;", b"&x;", b"]]>", b"\\", b"\xed\xa0\x80", b"#",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 1e308, -1e308, 2**31, 2**63, 2**64, 10**320, 0.5, "", "x", "nan", "1", [],
    {}, [[]], [0], [1, 2, 3], {"a": 1}, "\ud800", "\0", "A" * 3000, 30_000, 100_000, -(2**70),
)  # fmt: skip
FIELDS = (0, 1, 2, 127, 128, 255, 256, 32767, 32768, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1)


def mutated(content: bytes, random: Random, other: bytes = b"") -> bytes:
    """Change a file's content in one to three places.

    Parameters
    ----------
    content : bytes
    random : Random
    other : bytes
        Another file, whose parts may be spliced in.
    """
    if content[:2] == b"\x1f\x8b" and random.random() < 0.7:
        try:
            plain = gzip.decompress(content)
        except (OSError, EOFError, zlib.error):
            return _flip(content, random, other)
        return gzip.compress(mutated(plain, random, other), 1, mtime=0)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        content = random.choice(_fitting(content))(content, random, other)
    return content


def _fitting(content: bytes) -> tuple[Callable[[bytes, Random, bytes], bytes], ...]:
    """Choose changes for a file: text has other ones than binary data."""
    start = content[:200].lstrip()
    if start[:1] in (b"{", b"["):
        return (*_TEXT, _edit_json, _edit_json, _edit_json, _edit_json)
    if b"\0" in content[:1000] or start[:1] == b"\x89":
        return _BINARY
    return _TEXT


def _flip(content: bytes, random: Random, _: bytes) -> bytes:
    data = bytearray(content or b"\0")
    for _time in range(random.choice((1, 1, 2, 8, 40))):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return bytes(data)


def _cut(content: bytes, random: Random, _: bytes) -> bytes:
    return content[: random.randrange(len(content) + 1)]


def _remove(content: bytes, random: Random, _: bytes) -> bytes:
    start = random.randrange(len(content) + 1)
    return content[:start] + content[start + random.choice((1, 2, 4, 8, 100, 4096)) :]


def _repeat(content: bytes, random: Random, _: bytes) -> bytes:
    start = random.randrange(len(content) + 1)
    piece = content[start : start + random.choice((1, 2, 4, 8, 100, 2000))]
    return content[:start] + piece * random.choice((2, 3, 50)) + content[start:]


def _splice(content: bytes, random: Random, other: bytes) -> bytes:
    source = other or content
    start, at = random.randrange(len(source) + 1), random.randrange(len(content) + 1)
    piece = source[start : start + random.choice((4, 16, 64, 512, 4096))]
    return content[:at] + piece + content[at + len(piece) * random.choice((0, 1)) :]


def _blank(content: bytes, random: Random, _: bytes) -> bytes:
    start = random.randrange(len(content) + 1)
    length = min(random.choice((1, 4, 512, 4096)), len(content) - start)
    fill = random.choice((b"\0", b"\xff", b" ", random.randbytes(1)))
    return content[:start] + fill * length + content[start + length :]


def _edit_head(content: bytes, random: Random, _: bytes) -> bytes:
    """Write an odd integer over a header field."""
    size = random.choice((1, 2, 4, 8))
    if len(content) < size:
        return content
    value = random.choice(FIELDS) % (1 << 8 * size)
    at = random.randrange(min(HEAD, len(content) - size + 1))
    at -= at % random.choice((1, size))
    return content[:at] + value.to_bytes(size, random.choice(("little", "big"))) + content[at + size :]


def _edit_number(content: bytes, random: Random, _: bytes) -> bytes:
    matches = list(re.finditer(rb"-?\d[\d.]*", content[:200_000]))
    if not matches:
        return content
    position = random.choice(matches)
    return content[: position.start()] + random.choice(NUMBERS) + content[position.end() :]


def _edit_word(content: bytes, random: Random, _: bytes) -> bytes:
    matches = list(re.finditer(rb"[^\s,;:<>\"'=\[\]{}]+", content[:200_000]))
    if not matches:
        return content
    position = random.choice(matches)
    return content[: position.start()] + random.choice(WORDS) + content[position.end() :]


def _edit_line(content: bytes, random: Random, _: bytes) -> bytes:
    lines = content.split(b"\n")
    at = random.randrange(len(lines))
    return b"\n".join(random.choice((
        lines[:at] + lines[at + 1 :], lines[: at + 1] + lines[at:], [*lines[:at], b"", *lines[at:]],
        lines[at:] + lines[:at], [*lines[:at], lines[at] + b",x", *lines[at + 1 :]],
    )))  # fmt: skip


def _encode_again(content: bytes, random: Random, _: bytes) -> bytes:
    text = content.decode("utf-8", "replace")
    return text.encode(
        random.choice(("utf-16", "utf-16-le", "utf-8-sig", "cp1252", "utf-32", "utf-7")), "replace"
    )


def _edit_json(content: bytes, random: Random, other: bytes) -> bytes:
    """Replace, remove or repeat a random value of a JSON document."""
    try:
        document = json.loads(content)
        locations: list[tuple[Any, Any]] = []
        list_places(document, locations)
        if not locations:
            return json.dumps(random.choice(VALUES)).encode()
        for _time in range(random.choice((1, 1, 2, 5))):
            box, key = random.choice(locations)
            act = random.random()
            if act < 0.15 and isinstance(box, dict):
                box.pop(key, None)
            elif act < 0.3 and isinstance(box, list) and key < len(box):
                box.insert(key, box[key])
            elif isinstance(box, dict) or key < len(box):
                box[key] = random.choice(VALUES)
        return json.dumps(document).encode()
    except (ValueError, RecursionError):
        return _flip(content, random, other)


def list_places(value: Any, locations: list[tuple[Any, Any]]) -> None:
    """List the places of a document, at most some thousands."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in list(keys)[:500]:
        if len(locations) < 5000:
            locations.append((value, key))
            list_places(value[key], locations)


_BINARY = (_flip, _flip, _cut, _remove, _repeat, _splice, _blank, _edit_head, _edit_head, _edit_head,
           _edit_number)  # fmt: skip
_TEXT = (_flip, _cut, _remove, _repeat, _splice, _blank, _edit_number, _edit_number, _edit_number, _edit_word,
         _edit_word, _edit_line, _encode_again)  # fmt: skip
