"""Pages of the documentation site that live elsewhere in the tree, without copies (a hook of MkDocs)."""

import json
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from raterscope.resources.bibliography import CHAPTERS, FOLDER, bibliography, page_text, page_title, topics

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (
    "app.library",
    "algorithms.clicks",
    "algorithms.masks",
    "algorithms.labels",
    "algorithms.pairs",
    "algorithms.evaluation",
    "algorithms.settings",
    "algorithms.plugins",
    "algorithms.progress",
    "app.study",
)
"""Packages and modules whose public names make up the reference."""
TUTORIALS = ("clicks", "masks", "labels", "pairs", "reader_study", "cohort")
"""Notebooks of `docs/tutorials`, in the order of the navigation."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List all pages in the navigation, the guide's in the order of its contents."""
    config.nav = [
        {"Overview": "index.md"},
        {"Use it from Python": "python.md"},
        {"Tutorials": [f"tutorials/{name}.md" for name in TUTORIALS]},
        {"Guide": [{_chapter(name): _pages_of(name)} for name in CHAPTERS]},
        {"Reference": [f"reference/{name}.md" for name in PACKAGES]},
        {"Develop": ["plugins.md", "CONTRIBUTING.md", "architecture.md", "CHANGELOG.md"]},
    ]
    config.watch.append(str(FOLDER))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the project's pages and the guide's, from where they are, and one page of reference a package."""
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "CITATION.cff", "LICENSE"):
        text = (ROOT / name).read_text(encoding="utf-8")
        text = text.replace("](docs/", "](").replace("](raterscope/resources/guide/", "](guide/")
        page = "index.md" if name == "README.md" else name
        files.append(File.generated(config, page, content=text))
    for topic in topics():
        files.append(File.generated(config, f"guide/{topic}.md", content=page_text(topic)))
    for name in TUTORIALS:
        files.append(File.generated(config, f"tutorials/{name}.md", content=_notebook_page(name)))
    for name in PACKAGES:
        text = f"# {name}\n\n::: raterscope.{name}\n"
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def on_page_content(html: str, **_: object) -> str:
    """Render the references of docstrings, which reStructuredText writes as ``[key]_`` and ``.. [key]``."""
    html = re.sub(r"\[([a-z]+\d{4})\]_", lambda cited: bibliography()[cited[1]].short, html)
    return re.sub(r"\.\. \[[a-z]+\d{4}\] ", "<br>", html)


def _notebook_page(name: str) -> str:
    """Return a notebook as a page of the site, with a link to the notebook itself."""
    notebook = json.loads((ROOT / "docs" / "tutorials" / f"{name}.ipynb").read_text(encoding="utf-8"))
    cells = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "code":
            cells.append(f"```python\n{text}\n```")
        else:
            text = text.replace("../../raterscope/resources/guide/", "../guide/")
            cells.append(text.replace(".ipynb)", ".md)"))
    return "\n\n".join([*cells, f"[Download this notebook]({name}.ipynb)"]) + "\n"


def _chapter(name: str) -> str:
    return page_title(page_text(f"{name}/start"))


def _pages_of(chapter: str) -> list[str]:
    return [f"guide/{topic}.md" for topic in topics() if topic.startswith(f"{chapter}/")]
