"""A report as HTML: one file with everything in it, no scripts, nothing fetched from anywhere."""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import cache
from importlib import resources

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from raterscope.app.page.contents import Contents, Picture, unbroken


def as_html(contents: Contents, style: str = "page", source: Callable[[Picture], str] | None = None) -> str:
    """Write a report as HTML; all its text is escaped.

    Parameters
    ----------
    style : str
        Name of the style sheet: "page" for browsers, "paper" for Qt's rich text.
    source : callable, optional
        Returns the address of a picture; by default its bytes themselves, as a data: address.
    """
    template = _environment().get_template("report.html.j2")
    return template.render(
        contents=contents, style=style, css=_read(f"{style}.css"), source=_data if source is None else source
    )


@cache
def _environment() -> Environment:
    return Environment(
        loader=FunctionLoader(_read), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, finalize=_held,
    )  # fmt: skip


def _held(value: object) -> object:
    """Keep what belongs together in a text on one line."""
    return unbroken(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _read(name: str) -> str:
    return (resources.files("raterscope.resources") / "report" / name).read_text(encoding="utf-8")


def _data(picture: Picture) -> str:
    kind = "png" if picture.data.startswith(b"\x89PNG") else "jpeg"
    return f"data:image/{kind};base64," + base64.b64encode(picture.data).decode("ascii")
