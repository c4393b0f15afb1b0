"""Drawing of Raterscope's packages and their imports: ``python scripts/draw_architecture.py [FILE.svg]``.

The frames are the areas of the first contract in `pyproject.toml`, in its order; the boxes are the packages
and modules directly below them. An arrow leads from a box to one that it imports; arrows that follow from
others are left out. Boxes lie in rows, so that every arrow points down; boxes that import each other share
one frame. The drawing depends on the sources and the contract alone.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import grimp

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "docs" / "architecture.svg"

BOX_HEIGHT, ROW_GAP, BOX_GAP, MARGIN, TITLE = 30, 34, 18, 24, 34
LETTER, PADDING = 7.4, 11
COLOURS = ("#dbe9f6", "#e2f0d9", "#e8e0f3", "#fbe5d6", "#eceff1")
SWEEPS = 8

Graph = dict[str, set[str]]
"""The names that a name imports."""


def main(arguments: list[str]) -> int:
    """Write the drawing to a file, by default the one that the architecture page shows."""
    file = Path(arguments[0]) if arguments else FILE
    file.write_text(draw(), encoding="utf-8")
    sys.stdout.write(f"saved to {file}\n")
    return 0


def draw() -> str:
    """Draw all areas, one above the other, as SVG."""
    areas = area_names()
    imports = package_imports(areas)
    drawn, width = [], 0.0
    top = float(MARGIN)
    for area in areas:
        own = {name: imports[name] for name in imports if name.split(".")[0] == area}
        edges = reduced(merged_cycles({name: others & own.keys() for name, others in own.items()}))
        rows = ordered_rows(edges)
        area_width, height = _size(rows)
        drawn.append((area, rows, edges, top, height))
        width = max(width, area_width)
        top += height + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width + 2 * MARGIN:.0f} {top:.0f}" '
        f'font-family="sans-serif" font-size="13">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#7a8794"/></marker></defs>',
        f'<rect width="{width + 2 * MARGIN:.0f}" height="{top:.0f}" fill="#ffffff"/>',
    ]
    for colour, (area, rows, edges, above, height) in zip(COLOURS, drawn, strict=True):
        parts += _draw_area(area, colour, rows, edges, above, height, width)
        if area != areas[-1]:
            middle, below = MARGIN + width / 2, above + height
            parts.append(
                f'<path d="M{middle:.1f},{below:.1f} V{below + MARGIN:.1f}" stroke="#24323f" '
                f'stroke-width="2" marker-end="url(#tip)"/>'
            )
    return "\n".join([*parts, "</svg>", ""])


def area_names() -> list[str]:
    """Read the names of the areas from the contract on them, from top to bottom."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    return [layer.removeprefix("raterscope.") for layer in layers]


def package_imports(areas: Sequence[str]) -> Graph:
    """List, for every package or module directly below an area, those that it imports at run time."""
    graph = grimp.build_graph("raterscope", exclude_type_checking_imports=True, cache_dir=None)
    imports: Graph = defaultdict(set)
    for module in sorted(graph.modules):
        box = _box(module, areas)
        if box:
            imports[box] |= {_box(other, areas) for other in graph.find_modules_directly_imported_by(module)}
    return {name: {other for other in others if other and other != name} for name, others in imports.items()}


def merged_cycles(graph: Mapping[str, set[str]]) -> Graph:
    """Merge names that import each other, directly or not, into one: "a + b"."""
    reach = {name: _reachable(graph, name) for name in graph}
    groups = {
        name: sorted({name, *(other for other in reach[name] if name in reach[other])}) for name in graph
    }
    label = {name: " + ".join(group) for name, group in groups.items()}
    merged: Graph = {one: set() for one in label.values()}
    for name, others in graph.items():
        merged[label[name]] |= {label[other] for other in others} - {label[name]}
    return merged


def reduced(graph: Mapping[str, set[str]]) -> Graph:
    """Leave out imports that follow from others (transitive reduction of a graph without cycles)."""
    reach = {name: _reachable(graph, name) for name in graph}
    return {
        name: {other for other in others if not any(other in reach[between] for between in others)}
        for name, others in graph.items()
    }


def ordered_rows(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Distribute names over rows from top to bottom, and order each row so that few arrows cross."""
    depth: dict[str, int] = {}

    def depth_of(name: str) -> int:
        if name not in depth:
            depth[name] = 1 + max((depth_of(other) for other in graph[name]), default=-1)
        return depth[name]

    deepest = max((depth_of(name) for name in sorted(graph)), default=0)
    rows = [sorted(name for name in graph if depth[name] == level) for level in range(deepest, -1, -1)]
    neighbours: Graph = {name: set(others) for name, others in graph.items()}
    for name, others in graph.items():
        for other in others:
            neighbours[other].add(name)
    for _ in range(SWEEPS):
        position = {name: (index + 0.5) / len(row) for row in rows for index, name in enumerate(row)}
        for row in rows:
            row.sort(key=lambda name: (_mean(position[other] for other in neighbours[name]), name))
    return rows


def _box(module: str, areas: Sequence[str]) -> str:
    parts = module.split(".")
    return ".".join(parts[1:3]) if len(parts) > 2 and parts[1] in areas else ""


def _reachable(graph: Mapping[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += graph[name]
    return found


def _mean(values: Iterable[float]) -> float:
    listed = sorted(values)
    return sum(listed) / len(listed) if listed else 0.5


def _shown(name: str) -> str:
    return " + ".join(one.partition(".")[2] for one in name.split(" + "))


def _width(name: str) -> float:
    return len(_shown(name)) * LETTER + 2 * PADDING


def _size(rows: list[list[str]]) -> tuple[float, float]:
    widest = max(sum(_width(name) + BOX_GAP for name in row) - BOX_GAP for row in rows)
    return widest + 2 * MARGIN, TITLE + len(rows) * (BOX_HEIGHT + ROW_GAP) - ROW_GAP + MARGIN


def _draw_area(
    area: str,
    colour: str,
    rows: list[list[str]],
    edges: Graph,
    top: float,
    height: float,
    width: float,
) -> list[str]:
    box: dict[str, tuple[float, float, float]] = {}
    for level, row in enumerate(rows):
        free = width - 2 * MARGIN - sum(_width(name) for name in row)
        gap = free / (len(row) + 1)
        left = 2 * MARGIN + gap
        for name in row:
            box[name] = (left, top + TITLE + level * (BOX_HEIGHT + ROW_GAP), _width(name))
            left += _width(name) + gap
    parts = [
        f'<rect x="{MARGIN}" y="{top:.0f}" width="{width:.0f}" height="{height:.0f}" rx="10" '
        f'fill="#f7f9fb" stroke="#b8c4cf"/>',
        f'<text x="{MARGIN + 14}" y="{top + 22:.0f}" font-weight="bold" fill="#24323f">{area}</text>',
    ]
    for name in sorted(edges):
        for other in sorted(edges[name]):
            (left, above, wide), (to_left, below, to_wide) = box[name], box[other]
            x1, y1, x2, y2 = left + wide / 2, above + BOX_HEIGHT, to_left + to_wide / 2, below
            bend = (y2 - y1) / 2
            parts.append(
                f'<path d="M{x1:.1f},{y1:.1f} C{x1:.1f},{y1 + bend:.1f} {x2:.1f},{y2 - bend:.1f} '
                f'{x2:.1f},{y2:.1f}" fill="none" stroke="#9aa7b3" marker-end="url(#tip)"/>'
            )
    for name, (left, above, wide) in box.items():
        parts += [
            f"<g><title>{escape(_purpose(name))}</title>"
            f'<rect x="{left:.1f}" y="{above:.1f}" width="{wide:.1f}" height="{BOX_HEIGHT}" rx="5" '
            f'fill="{colour}" stroke="#5b6b79"/>'
            f'<text x="{left + wide / 2:.1f}" y="{above + 20:.1f}" text-anchor="middle" fill="#16202a">'
            f"{escape(_shown(name))}</text></g>"
        ]
    return parts


def _purpose(name: str) -> str:
    """Return the first lines of the docstrings of what a box stands for."""
    lines = []
    for one in name.split(" + "):
        path = ROOT / "raterscope" / Path(*one.split("."))
        module = path.with_suffix(".py")  # a folder of that name may be left of a package that was here
        file = module if module.is_file() else path / "__init__.py"
        text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or one
        lines.append(text.partition("\n")[0])
    return " ".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
