"""Structure of PNG and TIFF files, read without their pixels.

PNG: EXIF after the pixels, and a digest by the checksums that the file contains. Each chunk ends with the
CRC-32 of its type and data, so that the lengths, types and checksums of all chunks represent every byte of
the file. A changed image has the same values with a probability of 2^-32.

TIFF: reduced copies of the first page, its orientation, fluorescence channels and focal planes. Channels of
one plane, stored page by page, are shown as one image in colours.

References
----------
W3C, "Portable Network Graphics (PNG) Specification (Third Edition)", 2025, https://www.w3.org/TR/png-3/.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from html import unescape
from itertools import pairwise
from pathlib import Path, PureWindowsPath
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.progress import Watch, silent

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
BY_CHECKSUMS = "png:"
"""Prefix of a digest of checksums."""

_LONGEST_EXIF = 1 << 16
_SMALLEST = 512
"""Minimum mean size of the chunks, bytes; with smaller chunks the list is not made."""
_ALWAYS_LISTED = 1000
_BLOCK = 4 << 20

_MARKERS = {"PNG": (b"IHDR", b"IEND\xaeB`\x82"), "JPEG": (b"\xff\xda", b"\xff\xd9")}
"""Markers at the beginning and the end of an image: header and end; scan and end."""
_TAIL = 1 << 16

_MAX_PAGES = 40
_LARGEST_TILE = 4096 * 4096
_LONGEST = 1 << 20
_FURTHEST = 3
"""Maximum number of halvings between two copies: with more, one tile on screen would need too many tiles of
the file.
"""
_SMALLEST_COPY = 4096
"""Maximum side of the smallest copy, from which smaller levels are computed."""


@dataclass(frozen=True)
class Chunks:
    """Chunks of a PNG."""

    table: bytes  # of each chunk the length, type and checksum, 4 bytes each
    complete: bool  # whether the table lists the whole file
    exif: bytes  # empty if there is none

    @property
    def digest(self) -> str | None:
        """SHA-256 of the table of chunks, as "png:" and hexadecimal digits; None if incomplete."""
        return f"{BY_CHECKSUMS}{hashlib.sha256(self.table).hexdigest()}" if self.complete else None


def read_chunks(file: IO[bytes]) -> Chunks:
    """List the chunks of an open PNG; the file position does not change."""
    file = getattr(file, "raw", file)  # a buffer would be filled for every chunk
    before = file.tell()
    size = file.seek(0, os.SEEK_END)
    entries: list[bytes] = []
    exif = b""
    try:
        file.seek(len(PNG_SIGNATURE))
        start, head = len(PNG_SIGNATURE), file.read(8)
        while len(head) == 8 and len(entries) < _ALWAYS_LISTED + size // _SMALLEST:
            length = int.from_bytes(head[:4], "big")
            if head[4:] == b"eXIf" and not exif:
                exif = file.read(min(length, _LONGEST_EXIF))
            start += length + 12
            file.seek(start - 4)
            end = file.read(12)
            if len(end) < 4:
                break
            entries.append(head + end[:4])
            head = end[4:]
        return Chunks(b"".join(entries), start == size and not head, exif)
    finally:
        file.seek(before)


def lacks_end(file: IO[bytes], kind: str) -> bool:
    """Return whether the end of an open PNG or JPEG is missing, by its last marker; the position stays.

    Other data may follow the marker, and a JPEG may contain a smaller JPEG, which ends before the outer scan.
    """
    if kind not in _MARKERS:
        return False
    begin, end = _MARKERS[kind]
    before, size = file.tell(), file.seek(0, os.SEEK_END)
    try:
        for length in (len(end), _TAIL):
            file.seek(max(0, size - length))
            tail = file.read(length)
            if tail.rfind(end) > tail.rfind(begin):
                return False
        return True
    finally:
        file.seek(before)


def lacks_pixels(page: Any) -> bool:
    """Return whether pixels of a page of an open TIFF are after the end of the file."""
    pieces = zip(page.dataoffsets, page.databytecounts, strict=False)
    end = max((offset + length for offset, length in pieces), default=0)
    return bool(end > page.parent.filehandle.size)


def has_right_checksums(path: Path, watch: Watch = silent, text: str = "reading") -> bool:
    """Compare the checksum of every chunk with its content; return False for a damaged file."""
    from isal import isal_zlib

    size = path.stat().st_size
    with path.open("rb") as file:
        left = size - len(file.read(len(PNG_SIGNATURE)))
        while left:
            length = int.from_bytes(file.read(4), "big")
            checksum, unread = 0, length + 4
            if unread > left - 8:
                return False
            while unread:
                block = file.read(min(unread, _BLOCK))
                if not block:
                    return False
                checksum = isal_zlib.crc32(block, checksum)
                unread -= len(block)
            if file.read(4) != checksum.to_bytes(4, "big"):
                return False
            left -= length + 12
            watch(1 - left / size, text)
    return True


def find_levels(page: Any) -> dict[int, Any]:
    """Find the smaller copies of a tiled page, by number of halvings, which allow display by tiles.

    `page`: tifffile.TiffPage, the first of an open file; it has the number 0. The result is empty if the page
    must be read completely: it is not tiled, has an orientation, or lacks copies.
    """
    if not _is_piecewise(page) or tiff_orientation(page) != 1:
        return {}
    if max(page.imagewidth, page.imagelength) > _LONGEST:
        return {}
    levels = {0: page}
    for other in _candidates(page):
        level = _halvings(page, other)
        if level is not None and level not in levels:
            levels[level] = other
    order = sorted(levels)
    if any(second - first > _FURTHEST for first, second in pairwise(order)):
        return {}
    smallest = levels[order[-1]]
    if max(smallest.imagewidth, smallest.imagelength) > _SMALLEST_COPY:
        return {}
    return levels


def tiff_orientation(page: Any) -> int:
    """Return the orientation of a page, 1 to 8."""
    tag = page.tags.get(274)
    return tag.value if tag is not None and tag.value in range(1, 9) else 1


def _candidates(page: Any) -> Iterator[Any]:
    """Yield the pages that may be copies: sub-pages, as in OME-TIFF, or the following pages."""
    for pages, first in ((page.pages if page.subifds else None, 0), (page.parent.pages, 1)):
        if pages is not None:
            with suppress(IndexError):  # the number of pages is only known at the end
                for number in range(first, _MAX_PAGES):
                    yield pages.get(number, cache=False, aspage=True)


def _halvings(page: Any, other: Any) -> int | None:
    is_compatible = (
        _is_piecewise(other)
        and other.samplesperpixel == page.samplesperpixel
        and other.dtype == page.dtype
        and other.photometric == page.photometric
        and tiff_orientation(other) == 1
    )
    if not is_compatible or other.imagewidth >= page.imagewidth:
        return None
    level: int = round(page.imagewidth / other.imagewidth).bit_length() - 1
    for length, small in ((page.imagewidth, other.imagewidth), (page.imagelength, other.imagelength)):
        # The writer may round down or up, at each step or once.
        if level < 1 or not length // 2**level - 1 <= small <= -(-length // 2**level) + 1:
            return None
    return level


def _is_piecewise(page: Any) -> bool:
    if page.dtype is None or page.imagedepth != 1 or not min(page.imagewidth, page.imagelength):
        return False
    return bool(page.is_tiled) and 0 < page.tilewidth * page.tilelength <= _LARGEST_TILE


_LONGEST_DESCRIPTION = 1_000_000
_MOST = 7
_MAX_PLANES = 10_000
_FILE_NAME = re.compile(r"""FileName\s*=\s*["']([^"']*)["']""")
_LONGEST_NAME = 40

_RED, _GREEN, _BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)
_CYAN, _MAGENTA, _YELLOW = (0, 255, 255), (255, 0, 255), (255, 255, 0)
_GREY = (255, 255, 255)
_TWO = (_GREEN, _MAGENTA)
"""Colours of two channels, distinguishable with red-green colour blindness."""
_SEVERAL = (_RED, _GREEN, _BLUE, _GREY, _CYAN, _MAGENTA, _YELLOW)
"""Colours in the order of ImageJ."""
_DYES = (
    (re.compile(r"dapi|hoechst", re.IGNORECASE), _BLUE),
    (re.compile(r"fitc|gfp|488", re.IGNORECASE), _GREEN),
    (re.compile(r"tritc|cy3|rfp|mcherry|texas|555|568|594", re.IGNORECASE), _RED),
    (re.compile(r"cy5|647", re.IGNORECASE), _MAGENTA),
)
"""Fluorescence colours of dyes, for channels without a colour in the file; far red is shown in magenta."""


@dataclass(frozen=True)
class Channel:
    """A fluorescence channel."""

    page: int  # its number among the file's pages
    colour: tuple[int, int, int]  # (red, green, blue): its colour on screen, 0 to 255
    name: str  # name in the file, or "channel 1"


def find_channels(file: Any) -> tuple[Channel, ...]:
    """Find the channels of a file of one plane by its OME or ImageJ description.

    `file`: tifffile.TiffFile, open. There are two channels or more; none if there is only one page, or
    several slices or times.
    """
    first = file.pages[0]
    if first.samplesperpixel != 1 or first.photometric not in (0, 1):
        return ()
    text = str(first.description or "")[:_LONGEST_DESCRIPTION]
    channels, planes = _imagej_channels(text) if text.startswith("ImageJ=") else _ome_channels(text)
    if planes != 1 or not 2 <= len(channels) <= _MOST:
        return ()
    try:
        pages = [file.pages.get(channel.page, cache=False, aspage=True) for channel in channels]
    except IndexError:
        return ()
    return channels if all(_has_same_layout(page, first) for page in pages) else ()


@dataclass(frozen=True, eq=False)
class PageStack:
    """Pages of an OME-TIFF or ImageJ stack with several focal planes or times."""

    # (times, planes, channels) array of tifffile.TiffPage, None for a page that is not in the file
    pages: NDArray[np.object_]
    channels: tuple[Channel, ...]  # colours and names; empty for one channel


def series_of(file: Any) -> Any:
    """Return the series of an open TIFF.

    Its OME description may name other files; those that are not beside it are not opened.
    """
    names = map(unescape, _FILE_NAME.findall(file.ome_metadata or ""))
    if any(PureWindowsPath(name).name != name for name in names):
        file._multifile = False
    return file.series


def find_page_stack(file: Any) -> PageStack | None:
    """Find focal planes and times by the OME or ImageJ description; None for one plane, or other files.

    `file`: tifffile.TiffFile, open.
    """
    first = file.pages[0]
    if not (file.is_ome or file.is_imagej):
        return None
    text = str(first.description or "")[:_LONGEST_DESCRIPTION]
    channels, planes = _imagej_channels(text) if text.startswith("ImageJ=") else _ome_channels(text)
    if not 1 < planes <= _MAX_PLANES:
        return None
    series = series_of(file)[0]
    outer = [(name, length) for name, length in zip(series.axes, series.shape, strict=True) if name in "TZC"]
    lengths = [length for _, length in outer]
    count = math.prod(lengths)
    if set(series.axes) - set("TZCYXS") or not 1 < count <= min(_MAX_PLANES * _MOST, len(series.pages)):
        return None
    pages = np.empty(count, dtype=object)
    for number in range(count):
        page = series.pages[number]
        # Pages of other files, which OME may name, are not read.
        if page is not None and page.parent is file and _has_same_layout(page.keyframe, first):
            pages[number] = page
    pages = pages.reshape(lengths)
    names = "".join(name for name, _ in outer)
    for axis in "TZC":
        if axis not in names:
            names, pages = names + axis, pages[..., None]
    pages = pages.transpose([names.index(axis) for axis in "TZC"])
    if pages.shape[0] * pages.shape[1] < 2 or pages.shape[2] > _MOST:
        return None
    fits = len(channels) == pages.shape[2] and first.samplesperpixel == 1
    return PageStack(pages, channels if fits else _preset_channels(pages.shape[2]))


def _has_same_layout(page: Any, first: Any) -> bool:
    compared = ("shape", "dtype", "photometric", "chunks", "compression")
    return all(getattr(page, name) == getattr(first, name) for name in compared)


def _imagej_channels(text: str) -> tuple[tuple[Channel, ...], int]:
    """Return channels and the number of planes, over all times."""
    facts = dict(line.partition("=")[::2] for line in text.splitlines())
    channels, slices, times = (_count(facts.get(name, "1")) for name in ("channels", "slices", "frames"))
    return _preset_channels(channels), slices * times if min(slices, times) > 0 else 0


def _ome_channels(text: str) -> tuple[tuple[Channel, ...], int]:
    """Return channels and the number of planes, over all times."""
    pixels = re.search(r"<Pixels\b[^>]*>", text)
    if pixels is None:
        return (), 0
    sizes = _attributes(pixels[0])
    counts = [_count(sizes.get(f"Size{axis}", "1")) for axis in "CZT"]
    if min(counts[1:]) < 1 or counts[0] > _MOST:
        return (), 0
    inside = text[pixels.end() :].partition("</Pixels>")[0]
    elements = [_attributes(element) for element in re.findall(r"<Channel\b[^>]*>", inside)]
    colours = [_colour(attributes) for attributes in elements]
    names = [unescape(attributes.get("Name", "")).strip()[:_LONGEST_NAME] for attributes in elements]
    pages = {}
    for attributes in map(_attributes, re.findall(r"<TiffData\b[^>]*>", inside)):
        if "IFD" in attributes and _count(attributes.get("PlaneCount", "1")) == 1:
            pages[_count(attributes.get("FirstC", "0"))] = _count(attributes["IFD"])
    preset = _preset_channels(counts[0])
    own_colours = [colour for colour in colours if colour is not None]
    if len(own_colours) != len(preset) or len(set(own_colours)) < len(own_colours):
        own_colours = [colour for name in names for dye, colour in _DYES if dye.search(name)]
    if len(own_colours) != len(preset) or len(set(own_colours)) < len(own_colours):
        own_colours = [channel.colour for channel in preset]
    if len(names) != len(preset) or len(set(names)) < len(names) or not all(names):
        names = [channel.name for channel in preset]
    channels = tuple(
        Channel(pages.get(channel.page, channel.page), colour, name)
        for channel, colour, name in zip(preset, own_colours, names, strict=True)
    )
    return channels, counts[1] * counts[2]


def _preset_channels(count: int) -> tuple[Channel, ...]:
    if not 2 <= count <= _MOST:
        return ()
    colours = _TWO if count == 2 else _SEVERAL
    return tuple(Channel(number, colours[number], f"channel {number + 1}") for number in range(count))


def _attributes(element: str) -> Mapping[str, str]:
    return dict(re.findall(r'\b(\w+)="([^"]*)"', element))


def _colour(attributes: Mapping[str, str]) -> tuple[int, int, int] | None:
    """Decode a colour that OME writes as a signed number of red, green, blue and alpha; None for black."""
    try:
        number = int(attributes["Color"]) & 0xFFFFFFFF
    except (KeyError, ValueError):
        return None
    colour = number >> 24, number >> 16 & 255, number >> 8 & 255
    return colour if any(colour) else None


def _count(text: str) -> int:
    return int(text) if text.strip().isdecimal() and len(text) < 10 else -1
