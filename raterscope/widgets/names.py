"""Short names: search by typed letters, and labels that distinguish similar names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, compress

__all__ = [
    "Typed",
    "distinguishing_labels",
]


RANKED = 1000
"""Number of matching texts that are ranked; further ones are not."""

WHOLE, START, WITHIN, SCATTERED = range(4)
"""Ranks of a match: text prefix, word prefix, substring, letters in order."""


class Typed:
    """Search text, prepared for matching against many texts.

    Each of its words must be found, in any order; capitals make no difference.

    Parameters
    ----------
    text : str
    """

    def __init__(self, text: str) -> None:
        self.words = tuple(text.casefold().split())
        self._scattered = [re.compile(".*?".join(map(re.escape, word)), re.DOTALL) for word in self.words]

    def fit(self, text: str) -> tuple[int, int] | None:
        """Return the rank of a match in a lower-case text, lower is better; None for no match."""
        worst = 0
        for word, scattered in zip(self.words, self._scattered, strict=True):
            at = text.find(word)
            if at < 0:
                if scattered.search(text) is None:
                    return None
                kind = SCATTERED
            elif at == 0:
                kind = WHOLE
            else:
                kind = START if f" {word}" in text else WITHIN
            worst += kind
        return worst, len(text)

    def places(self, text: str) -> frozenset[int]:
        """Return the positions of the matched letters in a text."""
        folded = text.casefold()
        if len(folded) != len(text):
            return frozenset()
        return frozenset(chain.from_iterable(map(self._places_of, self.words, (folded,) * len(self.words))))

    @staticmethod
    def _places_of(word: str, folded: str) -> Iterable[int]:
        at = folded.find(f" {word}") + 1 or folded.find(word)
        if at >= 0 and folded.startswith(word, at):
            return range(at, at + len(word))
        places, here = [], -1
        for letter in word:
            here = folded.find(letter, here + 1)
            if here < 0:
                return ()
            places.append(here)
        return places

    def best(self, texts: Sequence[str], most: int) -> list[int]:
        """Return the best matches among lower-case texts; of equals the earlier ones.

        Texts that hold the words as they are go before all others: these are only looked for where there are
        too few. So 20,000 texts are searched between two pictures of the screen.

        Parameters
        ----------
        texts : sequence of str
        most : int
            How many are wanted.

        Returns
        -------
        list of int
            Places in `texts`.
        """
        found = list(range(len(texts)))
        for word, scattered in zip(self.words, self._scattered, strict=True):
            whole = [place for place in found if word in texts[place]]
            if len(whole) < most:
                search, there = scattered.search, frozenset(whole)
                whole += [place for place in found if place not in there and search(texts[place])]
            found = whole
        if not self.words:
            return found[:most]
        if len(found) > RANKED:
            first = [place for place in found if texts[place].startswith(self.words[0])]
            found = (first if len(first) >= most else found)[:RANKED]
        fits = sorted((fit, place) for place in found if (fit := self.fit(texts[place])) is not None)
        return [place for _, place in fits[:most]]


def distinguishing_labels(names: Sequence[str]) -> dict[str, str]:
    """Shorten names of one pattern to the words that distinguish them; the first word stays.

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
