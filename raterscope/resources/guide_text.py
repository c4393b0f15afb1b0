"""Text of the guide's pages, for the program's guide window and for the documentation site.

A page links to another by its relative path (``[jobs](../window/jobs.md)``), so that links also work in the
sources, and cites a work by its key (``[@warfield2004]``).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from pathlib import Path

from raterscope.resources.bibliography import bibliography, cite, cited_keys, references_text

__all__ = ["CHAPTERS", "FOLDER", "REFERENCES", "linked_by_topic", "page_text", "page_title", "topics"]

FOLDER = Path(__file__).with_name("guide")
"""Folder of the pages: one folder for each chapter, one Markdown file for each page."""

CHAPTERS = ("window", "clicks", "masks", "labels", "pairs", "papers")
"""Folders of the chapters, in the order of the contents."""

REFERENCES = "window/references"
"""Topic of the list of all references, which is made from the bibliography and has no file."""

_LINK = re.compile(r"(?<=\]\()([^)#\s]+)\.md(?=[)#])")
_SUBJECTS = {
    "clicks": "Clicks",
    "masks": "Masks",
    "labels": "Labels",
    "pairs": "Pairs",
    "program": "The program",
}


def topics() -> list[str]:
    """List the topics of all pages (``clicks/evidence``): by chapter, the overview first, then by name."""
    listed = []
    for chapter in CHAPTERS:
        names = [file.stem for file in (FOLDER / chapter).glob("*.md")]
        listed += [f"{chapter}/{name}" for name in sorted(names, key=lambda name: (name != "start", name))]
        if chapter == "window":
            listed.append(REFERENCES)
    return listed


def page_text(topic: str) -> str:
    """Read a page, with its citations as authors and year, and the works that it cites at its end.

    Parameters
    ----------
    topic : str
        One of `topics`.

    Raises
    ------
    OSError
        If there is no such page.
    KeyError
        If the page cites a work that is not in the bibliography.
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
    """Replace the relative links of a page by the topics of the pages that they lead to.

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
