"""Bibliography of the program (`references.bib`), citations by key, and text of the guide's pages.

Guide, report and the algorithms' sources cite a work as ``[@warfield2004]``; docstrings list it in full under
References. All references come from this one file.

A page of the guide links to another by its relative path (``[jobs](../window/jobs.md)``), so that links
also work in the sources. The guide window and the documentation site show the same text.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_ENTRY = re.compile(r"^@(\w+)\{(\w+),$")
_FIELD = re.compile(r"^  (\w+) = \{(.*)\},$")
_CITATION = re.compile(r"\[@(\w+)\]")
_MANY = 3


@dataclass(frozen=True)
class Reference:
    """One work of the bibliography.

    Attributes
    ----------
    key : str
        Citation key: "warfield2004".
    kind : str
        The type of the BibTeX entry: "article", "book".
    authors : tuple of str
        As written in a list of references: "S. K. Warfield". The last is "others" if the file names only the
        first authors.
    fields : dict of str to str
        All fields of the entry.
    source : str
        The entry as in the file.
    """

    key: str
    kind: str
    authors: tuple[str, ...]
    fields: dict[str, str]
    source: str

    @property
    def short(self) -> str:
        """Authors and year as a citation within a sentence: "Warfield et al. 2004"."""
        names = [name.split(", ")[0].strip("{}") for name in _names(self.fields)]
        if not names:
            return f"{self.fields['journal']} {self.fields['year']}"
        if len(names) >= _MANY or names[-1] == "others":
            return f"{names[0]} et al. {self.fields['year']}"
        return f"{' and '.join(names)} {self.fields['year']}"

    @property
    def full(self) -> str:
        """The full reference in one line, as in lists of references and docstrings."""
        fields = self.fields
        parts = [_listed(self.authors)] if self.authors else []
        parts.append(f'"{fields["title"]}"')
        venue = next(
            (fields[name] for name in ("journal", "booktitle", "howpublished") if name in fields), ""
        )
        if "edition" in fields:
            parts.append(fields["edition"])
        if "series" in fields:
            venue += f", {fields['series']}"
        if "volume" in fields:
            venue += f" {fields['volume']}"
        if "publisher" in fields:
            venue += f"{', ' if venue else ''}{fields['publisher']}"
        source = f"{venue} ({fields['year']})"
        if "pages" in fields:
            source += f" {fields['pages']}"
        parts.append(source)
        if "doi" in fields:
            parts.append(f"doi:{fields['doi']}")
        return ", ".join(parts)


@cache
def bibliography() -> dict[str, Reference]:
    """Read all references by key, in the order of the file.

    Raises
    ------
    ValueError
        If a line of the file is not part of an entry, or a key occurs twice.

    Examples
    --------
    >>> bibliography()["dawid1979"].short
    'Dawid and Skene 1979'
    """
    return parse(Path(__file__).with_name("references.bib").read_text(encoding="utf-8"))


def parse(text: str) -> dict[str, Reference]:
    """Parse BibTeX in the form of `references.bib`: one field per line, in braces, without macros."""
    works: dict[str, Reference] = {}
    started: tuple[str, str] | None = None
    fields: dict[str, str] = {}
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        entry, field = _ENTRY.match(line), _FIELD.match(line)
        lines.append(line)
        if started is None and entry:
            started, fields, lines = (entry[1], entry[2]), {}, [line]
            if started[1] in works:
                raise ValueError(f"line {number}: the key {started[1]} stands twice")
        elif started is not None and field and field[1] not in fields:
            fields[field[1]] = field[2]
        elif started is not None and line == "}":
            kind, key = started
            authors = tuple(_initials_first(name) for name in _names(fields))
            works[key] = Reference(key, kind, authors, fields, "\n".join(lines))
            started = None
        elif started is not None or (line and not line.startswith("%")):
            raise ValueError(f"line {number}: no part of a reference: {line}")
    return works


def cite(text: str) -> str:
    """Replace every ``[@key]`` of a text by authors and year.

    Raises
    ------
    KeyError
        If a key is not in the bibliography.

    Examples
    --------
    >>> cite("weighted by sensitivity [@warfield2004], section II")
    'weighted by sensitivity Warfield et al. 2004, section II'
    """
    return _CITATION.sub(lambda match: bibliography()[match[1]].short, text)


def cited_keys(texts: Iterable[str]) -> list[str]:
    """List the keys cited by texts, each once, sorted by author and year."""
    keys = {key for text in texts for key in _CITATION.findall(text)}
    return sorted(keys, key=lambda key: (bibliography()[key].short.casefold(), key))


def references_text(keys: Iterable[str]) -> list[str]:
    """Format the full references of keys, one line each, with the short form of a paper if it has one."""
    lines = []
    for key in keys:
        reference = bibliography()[key]
        named = reference.fields.get("shorttitle")
        lines.append(f"{reference.full}{f' (the {named})' if named else ''}.")
    return lines


def _names(fields: dict[str, str]) -> list[str]:
    written = fields.get("author", "")
    return [written] if written.startswith("{") else [name for name in written.split(" and ") if name]


def _initials_first(name: str) -> str:
    last, _, first = name.strip("{}").partition(", ")
    return f"{first} {last}" if first else last


def _listed(authors: tuple[str, ...]) -> str:
    if authors[-1] == "others":
        return f"{', '.join(authors[:-1])} et al."
    return " and ".join([", ".join(authors[:-1]), authors[-1]] if len(authors) > 1 else authors)


FOLDER = Path(__file__).with_name("guide")
"""Folder of the pages: one folder for each chapter, one Markdown file for each page."""

CHAPTERS = ("window", "clicks", "masks", "labels", "pairs", "annotators", "papers")
"""Folders of the chapters, in the order of the contents."""

REFERENCES = "window/references"
"""Topic of the list of all references, which is generated and has no file."""

_LINK = re.compile(r"(?<=\]\()([^)#\s]+)\.md(?=[)#])")
_SUBJECTS = {
    "clicks": "Clicks",
    "masks": "Masks",
    "labels": "Labels",
    "pairs": "Pairs",
    "program": "The program",
}


_FIRST = (
    "start",
    "import",
    "formats",
    "fuse",
    "queue",
    "image",
    "views",
    "evidence",
    "region",
    "task",
    "bias",
)
"""Names of the pages that come first in a chapter, in this order: those of the first steps of a review."""


def topics() -> list[str]:
    """List the topics of all pages (``clicks/evidence``): by chapter, review steps first, then by title."""
    listed = []
    for chapter in CHAPTERS:
        title = {
            file.stem: page_title(file.read_text(encoding="utf-8"))
            for file in (FOLDER / chapter).glob("*.md")
        }
        rest = sorted(title.keys() - set(_FIRST), key=lambda name: title[name])
        listed += [f"{chapter}/{name}" for name in _FIRST if name in title]
        listed += [f"{chapter}/{name}" for name in rest]
        if chapter == "window":
            listed.append(REFERENCES)
    return listed


def page_text(topic: str) -> str:
    """Read a page, with citations as authors and year, and the cited works at its end.

    Raises `OSError` if there is no such page. Raises `KeyError` if the page cites a work that is not in the
    bibliography.

    Parameters
    ----------
    topic : str
        One of `topics`.
    """
    if topic == REFERENCES:
        return _all_references()
    text = (FOLDER / f"{topic}.md").read_text(encoding="utf-8")
    keys = cited_keys([text])
    return cite(text) + (f"\n\n## References\n\n{_list(keys)}\n" if keys else "")


def page_title(text: str) -> str:
    r"""Return the title of a page: the heading in its first line.

    Examples
    --------
    >>> page_title("# The window\n\nOne window shows one study.")
    'The window'
    """
    return text.partition("\n")[0].removeprefix("# ").strip()


def linked_by_topic(topic: str, text: str) -> str:
    """Replace the relative links of a page by the topics of the linked pages.

    Examples
    --------
    >>> linked_by_topic("masks/views", "See [the queue](queue.md) and [jobs](../window/jobs.md).")
    'See [the queue](masks/queue) and [jobs](window/jobs).'
    """
    folder = posixpath.dirname(topic)
    return _LINK.sub(lambda link: posixpath.normpath(posixpath.join(folder, link[1])), text)


def _all_references() -> str:
    parts = [
        "# References",
        "What Raterscope builds on. Each page of the guide ends with the works it cites.",
    ]
    for keyword, title in _SUBJECTS.items():
        keys = [
            key for key, work in bibliography().items() if work.fields["keywords"].split(", ")[0] == keyword
        ]
        parts += [f"## {title}", _list(keys)]
    return "\n\n".join(parts) + "\n"


def _list(keys: Sequence[str]) -> str:
    return "\n".join(f"- {line.replace('_', chr(92) + '_')}" for line in references_text(keys))
