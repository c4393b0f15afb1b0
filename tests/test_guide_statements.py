"""README, documentation and guide: commands parse, settings, menu entries and linked pages exist."""

import argparse
import ast
import re
import shlex
from pathlib import Path

import raterscope
from raterscope.algorithms.clicks.stopping import StoppingSettings
from raterscope.algorithms.clicks.stream import StreamSettings
from raterscope.algorithms.settings import SettingsError
from raterscope.app.cli.options import parser_of
from raterscope.app.command_line.arguments import UsageError
from raterscope.app.kinds.registry import KINDS
from raterscope.app.page.variability import AT_LEAST, AT_MOST
from raterscope.resources.bibliography import page_text, page_title, topics

PACKAGE = Path(raterscope.__path__[0])
ROOT = PACKAGE.parent
GUIDE = PACKAGE / "resources" / "guide"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted(GUIDE.rglob("*.md")),
]
OF_THE_PLUGIN = "--what diary"
"""An export that the example of a plugin adds."""


def _texts():
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in PAGES}


def _commands():
    for text in _texts().values():
        for line in re.findall(r"`(raterscope [a-z][^`]*)`|^(?: {4})?(raterscope [a-z].*)$", text, re.M):
            yield "".join(line).split(" > ")[0]


def _accept_omissions(parser):
    """Let a page omit what a command requires, such as the study or the output."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            action.required = False
            for inner in set(action.choices.values()):
                _accept_omissions(inner)
        elif action.option_strings:
            action.required = False
        else:
            action.nargs = {None: "?", "+": "*"}.get(action.nargs, action.nargs)


def _fault(line):
    """Return why a command of the guide cannot be parsed; empty if it can."""
    words = [
        f" {word}" if re.match(r"-[\d.]+[,=]", word) else word
        for word in shlex.split(line, comments=True)[1:]
    ]
    words = [word for word in words if word != "--list-settings"]  # prints and ends
    parser = parser_of(*words[:1])
    _accept_omissions(parser)
    try:
        _, others = parser.parse_known_args(words)
    except UsageError as error:
        return f"{line}: {error}"
    unknown = [word for word in others if word.startswith("-")]
    return f"{line}: {unknown} unknown" if unknown else ""


def test_commands_parse():
    lines = {line for line in _commands() if OF_THE_PLUGIN not in line and "--help" not in line}
    assert [fault for fault in map(_fault, sorted(lines)) if fault] == []
    assert len(lines) > 100


def _settings():
    """List the settings of all algorithms, and those that a command takes beside them."""
    yield StreamSettings
    yield StoppingSettings
    for kind in KINDS.values():
        yield from kind.load_further_settings().values()
        for catalogue in kind.catalogues:
            yield from (algorithm.settings for algorithm in catalogue.algorithms.values())


def test_settings_exist_and_accept_the_values():
    known = list(_settings())
    for page, text in _texts().items():
        for code in re.findall(r"`([^`\n]*)`", text):
            if not re.search(r"--set |^[a-z_]+=\w+( |$)", code):
                continue
            for name, value in re.findall(r"(?<!\S)([a-z_]+)=([\w.]+)(?= |$)", code):
                assert any(_accepts(each, name, value) for each in known), (page, code, name)


def _accepts(settings, name, value):
    try:
        settings.from_text({name: value})
    except SettingsError:
        return False
    return True


def test_menu_entries_and_buttons_with_an_ellipsis_exist():
    strings = {
        node.value
        for area in ("app", "widgets")
        for path in (PACKAGE / area).rglob("*.py")
        if re.search(r"…|u2026|ELLIPSIS", source := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    for page, text in _texts().items():
        for entry in re.findall(r"\*\*([^*]+…)\*\*", text):
            assert entry in strings, (page, entry)


def test_all_limits_of_a_protocol_are_listed():
    page = page_text("window/variability")
    assert {name for name in (*AT_LEAST, *AT_MOST) if f"`{name}`" not in page} == set()


def test_links_lead_to_files_and_headings_and_name_the_page():
    titles = {topic: page_title(page_text(topic)) for topic in topics()}
    for page, text in _texts().items():
        for words, target in re.findall(r"\[([^\]]+)\]\(([^)\s]+)\)", text):
            if target.startswith("https:"):
                continue
            file, _, anchor = target.partition("#")
            path = (ROOT / page).parent / file if file else ROOT / page
            if path.name == "references.md":
                continue
            assert path.is_file(), (page, target)
            if anchor:
                headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.M)
                assert anchor in {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}
            topic = f"{path.parent.name}/{path.stem}"
            if page.startswith("raterscope/resources/guide/papers") and path.parent.name != "papers":
                assert words == titles[topic], (page, words)
