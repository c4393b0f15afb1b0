"""Long names that are alike, by what tells them apart."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import compress

__all__ = ["telling_names"]


def telling_names(names: Sequence[str]) -> dict[str, str]:
    """Leave out of names of one pattern the words that all of them have; their first word stays.

    Words are parted by anything but letters, digits and the points within numbers. Names are of one pattern
    if they begin with the same word and have as many. "cells_spot_snr10_img.png" beside
    "cells_spot_snr5_img.png" becomes "cells…snr10"; a name without another of its pattern stays as it is.
    """
    patterns: dict[tuple[str, int], list[str]] = defaultdict(list)
    for name in dict.fromkeys(names):
        words = _words(name)
        patterns[words[0] if words else "", len(words)].append(name)
    told = {name: name for name in names}
    for alike in patterns.values():
        columns = zip(*map(_words, alike), strict=True)
        kept = [place == 0 or len(set(column)) > 1 for place, column in enumerate(columns)]
        short = ["…".join(compress(_words(name), kept)) for name in alike]
        if len(alike) > 1 and len(set(short)) == len(alike):
            told |= dict(zip(alike, short, strict=True))
    return told


def _words(name: str) -> list[str]:
    return re.findall(r"[^\W_]+(?:\.\d[^\W_]*)*", name)
