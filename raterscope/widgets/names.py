"""Search of names and pages by typed letters, and short labels that distinguish similar names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, compress

from raterscope.algorithms.labels.class_tree import class_tree

RANKED = 1000
"""Maximum number of matching texts that are ranked."""

WHOLE, START, WITHIN, SCATTERED = range(4)
"""Ranks of a match: text prefix, word prefix, substring, letters in order."""

_STRONG = re.compile(r"^#.*$|\*\*.+?\*\*", re.MULTILINE)


class SearchText:
    """Search text, prepared for matching against many texts.

    All words must match, in any order, ignoring case.
    """

    def __init__(self, text: str) -> None:
        self.words = tuple(text.casefold().split())
        self._scattered = [re.compile(".*?".join(map(re.escape, word)), re.DOTALL) for word in self.words]

    def fit(self, text: str) -> tuple[int, int] | None:
        """Return the rank of a match in a lower-case text (lower is better); None for no match."""
        worst = 0
        for word, scattered in zip(self.words, self._scattered, strict=True):
            index = text.find(word)
            if index < 0:
                if scattered.search(text) is None:
                    return None
                kind = SCATTERED
            elif index == 0:
                kind = WHOLE
            else:
                kind = START if f" {word}" in text else WITHIN
            worst += kind
        return worst, len(text)

    def matched_indices(self, text: str) -> frozenset[int]:
        """Return the positions of the matched letters in a text."""
        folded = text.casefold()
        if len(folded) != len(text):
            return frozenset()
        return frozenset(chain.from_iterable(map(self._places_of, self.words, (folded,) * len(self.words))))

    @staticmethod
    def _places_of(word: str, folded: str) -> Iterable[int]:
        start = folded.find(f" {word}") + 1 or folded.find(word)
        if start >= 0 and folded.startswith(word, start):
            return range(start, start + len(word))
        positions, position = [], -1
        for letter in word:
            position = folded.find(letter, position + 1)
            if position < 0:
                return ()
            positions.append(position)
        return positions

    def best(self, texts: Sequence[str], most: int) -> list[int]:
        """Return the indices of the best matches among lower-case texts; among equals, earlier texts first.

        Texts that contain the words literally rank first. Fuzzy matches are searched only if there are too
        few, so that a search of 20,000 texts takes less than a frame.

        `most`: maximum number of results.
        """
        matches = list(range(len(texts)))
        for word, scattered in zip(self.words, self._scattered, strict=True):
            literal = [index for index in matches if word in texts[index]]
            if len(literal) < most:
                search, present = scattered.search, frozenset(literal)
                literal += [index for index in matches if index not in present and search(texts[index])]
            matches = literal
        if not self.words:
            return matches[:most]
        if len(matches) > RANKED:
            first = [index for index in matches if texts[index].startswith(self.words[0])]
            matches = (first if len(first) >= most else matches)[:RANKED]
        fits = sorted((fit, index) for index in matches if (fit := self.fit(texts[index])) is not None)
        return [index for _, index in fits[:most]]


class SearchPage:
    """A page in Markdown, prepared for searches by beginnings of words.

    `is_secondary`: whether pages with the words in headings come before this page with them in its title.
    """

    def __init__(self, text: str, is_secondary: bool = False) -> None:
        body = text.partition("\n## References\n")[0]
        strong = "\n".join(_STRONG.findall(body))
        parts = (body.partition("\n")[0], strong, body, text)
        self._is_secondary = is_secondary
        self._parts = tuple(part.casefold() for part in parts)

    def rank(self, words: Sequence[str]) -> tuple[int, ...] | None:
        """Rank the page among others (lower is better); None if a lower-case word is missing.

        Words in the title come first, then words in headings and bold, in the text, and in cited works.
        Among equals, more occurrences come first.
        """
        searches = [re.compile(rf"(?<!\w){re.escape(word)}").search for word in words]
        body = self._parts[2]
        for level, part in enumerate(self._parts):
            # The first condition is fast and fails for most pages.
            if all(word in part for word in words) and all(search(part) for search in searches):
                phrases, fewest = body.count(" ".join(words)), min(map(body.count, words), default=0)
                return 2 * level + 3 * self._is_secondary, -phrases, -fewest
        return None


def distinguishing_labels(names: Iterable[str]) -> dict[str, str]:
    """Shorten names with the same pattern to the words that distinguish them; the first word is kept.

    Words are separated by anything but letters, digits and decimal points. Names have the same pattern if
    they share the first word and the number of words. "cells_spot_snr10_img.png" beside
    "cells_spot_snr5_img.png" becomes "cells…snr10"; a name with a unique pattern stays unchanged.
    """
    find_words = re.compile(r"[^\W_]+(?:\.\d[^\W_]*)*").findall
    labels = {name: name for name in names}
    patterns: dict[tuple[str, int], dict[str, list[str]]] = defaultdict(dict)
    for name in labels:
        words = find_words(name)
        patterns[words[0] if words else "", len(words)][name] = words
    for words_of in patterns.values():
        columns = zip(*words_of.values(), strict=True)
        distinguishes = [index == 0 or len(set(column)) > 1 for index, column in enumerate(columns)]
        short = [" ".join(compress(words, distinguishes)).replace(" ", "…", 1) for words in words_of.values()]
        if len(short) > 1 and len(set(short)) == len(short):
            labels |= dict(zip(words_of, short, strict=True))
    return labels


def short_names(names: tuple[str, ...]) -> dict[str, str]:
    """Shorten names to the words that distinguish them; a common first word is dropped.

    "Person 12" beside "Person 7" becomes "12".
    """
    labels = distinguishing_labels(names)
    shared = len({label.partition("…")[0] for label in labels.values()}) == 1
    return {name: (shared and label.partition("…")[2]) or label for name, label in labels.items()}


def short_class_names(names: tuple[str, ...]) -> dict[str, str]:
    """Shorten class names to the last part of a path if these differ, otherwise to the distinguishing words.

    A common first word is dropped: "class 0193" becomes "0193".
    """
    tree = class_tree(names)
    if tree is None or len({path[-1] for path in tree.paths}) < len(names):
        return short_names(names)
    return {name: path[-1] for name, path in zip(names, tree.paths, strict=True)}
