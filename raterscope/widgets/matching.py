"""What is meant by a few letters: words that hold them, in order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain

__all__ = ["Typed"]

RANKED = 1000
"""Of more texts that fit, the earlier ones are put in order."""

WHOLE, START, WITHIN, SCATTERED = range(4)
"""How well letters fit: the text begins with them, a word does, they stand together, or at least in order."""


class Typed:
    """What somebody typed, to be looked for in many texts.

    Each of its words must be found, in any order; capitals make no difference.

    Parameters
    ----------
    text : str
    """

    def __init__(self, text: str) -> None:
        self.words = tuple(text.casefold().split())
        self._scattered = [re.compile(".*?".join(map(re.escape, word)), re.DOTALL) for word in self.words]

    def fit(self, text: str) -> tuple[int, int] | None:
        """Tell how well a text, in small letters, fits: the lower the better; None where it does not."""
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
        """Give the places of the letters that were found in a text."""
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
        """Find the texts that fit best, in small letters; of equals the earlier ones.

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
