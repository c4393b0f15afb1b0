"""One bibliography: docstrings, guide, catalogues and the command line say the same of a work."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import raterscope
from raterscope.algorithms.clicks.catalogue import CLUSTERERS, DETECTORS
from raterscope.algorithms.labels.catalogue import LABELLERS
from raterscope.algorithms.masks.catalogue import FUSERS
from raterscope.algorithms.pairs.catalogue import PATHS
from raterscope.app.cli import main
from raterscope.resources.bibliography import bibliography, cite, cited_keys, parse, references_text

ROOT = Path(raterscope.__file__).parent
GUIDE = sorted((ROOT / "resources" / "guide").rglob("*.md"))
YEAR_OF_A_WORK = re.compile(r"\((?:1[89]|20)\d\d\) \d+-\d+|(?:et al\.|and others),? (?:19|20)\d\d")
CITES = re.compile(
    r"^\s*\.\. \[|\((?:1[89]|20)\d\d\) \d+-\d+|(?:et al\.|and others),? (?:19|20)\d\d", re.MULTILINE
)
KEY = r"\[([a-z]+(?:18|19|20)\d\d)\]"


@cache
def docstrings():
    """List the docstrings that cite anything, with their files."""
    results = []
    for path in sorted(ROOT.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if not CITES.search(source):
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                text = ast.get_docstring(node)
                if text:
                    results.append((path.relative_to(ROOT), text))
    return tuple(results)


def listed(text):
    """Return what stands behind every ".. [key]" of a docstring, in one line."""
    parts = re.split(rf"^\.\. {KEY} ", text, flags=re.MULTILINE)
    for key, words in zip(parts[1::2], parts[2::2], strict=True):
        yield key, " ".join(words.split("\n\n")[0].split())


def test_every_reference_has_what_it_takes_to_find_the_work():
    for key, reference in bibliography().items():
        assert reference.fields["title"], key
        assert re.fullmatch(r"(1[89]|20)\d\d", reference.fields["year"]), key
        assert key.endswith(reference.fields["year"]), key
        assert any(
            name in reference.fields for name in ("journal", "booktitle", "publisher", "howpublished")
        ), key
        assert reference.authors or "note" in reference.fields, key
        assert re.fullmatch(r"10\.\d{4,}/\S+", reference.fields.get("doi", "10.1000/none")), key
        assert set(reference.fields["keywords"].split(", ")) <= {
            "clicks",
            "masks",
            "labels",
            "pairs",
            "program",
        }
    shorts = [reference.short for reference in bibliography().values()]
    assert len(set(shorts)) == len(shorts)
    dois = [reference.fields["doi"] for reference in bibliography().values() if "doi" in reference.fields]
    assert len(set(dois)) == len(dois)


def test_docstrings_list_works_as_the_bibliography_has_them():
    count = 0
    for path, text in docstrings():
        for key, words in listed(text):
            assert words.startswith(bibliography()[key].full), (path, key)
            count += 1
    assert count > 50


def test_docstrings_cite_no_work_that_they_do_not_list():
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        cited, there = set(re.findall(KEY + "_", text)), set(re.findall(r"\.\. " + KEY, text))
        assert cited <= there, path
    for path, text in docstrings():
        own = re.sub(rf"^\.\. {KEY} (?:.|\n(?!\n|\.\. ))*", "", text, flags=re.MULTILINE)
        bare = YEAR_OF_A_WORK.search(own)
        assert path.stem == "bibliography" or not bare, (
            f"{path}: {bare}: list it under References, as .. [key]"
        )


def test_every_work_is_cited_somewhere():
    texts = [path.read_text(encoding="utf-8") for path in (*ROOT.rglob("*.py"), *GUIDE)]
    cited = {key for text in texts for key in re.findall(r"[\[\"]@?([a-z]+\d{4})[\]\"]", text)}
    assert set(bibliography()) <= cited


def test_the_guide_cites_by_key():
    for path in GUIDE:
        text = path.read_text(encoding="utf-8")
        assert cite(text).count("[@") == 0, path
        for line in text.splitlines():
            if line.startswith("Source"):
                assert not re.search(r"\b(1[89]|20)\d\d\b", re.sub(r"\[@\w+\]", "", line)), path


@pytest.mark.parametrize("catalogue", [CLUSTERERS, DETECTORS, FUSERS, LABELLERS, PATHS])
def test_every_algorithm_cites_its_source(catalogue):
    for algorithm in catalogue.values():
        assert cited_keys([algorithm.source]), algorithm.name
        assert "[@" not in cite(algorithm.source)


def test_citations_in_words():
    assert cite("[@dawid1979], [@fisher1935], [@warfield2004]") == (
        "Dawid and Skene 1979, Fisher 1935, Warfield et al. 2004"
    )
    assert cited_keys(["[@warfield2004]", "[@dawid1979], [@warfield2004]"]) == ["dawid1979", "warfield2004"]
    assert references_text(["dawid1979"]) == [
        'A. P. Dawid and A. M. Skene, "Maximum likelihood estimation of observer error-rates using the EM '
        'algorithm", Journal of the Royal Statistical Society C 28 (1979) 20-28, doi:10.2307/2346806.'
    ]
    with pytest.raises(KeyError):
        cite("[@nobody1900]")


@pytest.mark.parametrize("text", ["@book{a1900,\n  title = {A\n}", "nonsense", "@book{a,\n}\n@book{a,\n}"])
def test_a_bibliography_that_is_no_bibtex_is_refused(text):
    with pytest.raises(ValueError, match="line"):
        parse(text)


def test_the_command_lists_references(capsys):
    assert main(["references", "xu2016"]) == 0
    assert "crowdsourced ranking" in capsys.readouterr().out
    assert main(["references", "--bibtex"]) == 0
    assert parse(capsys.readouterr().out).keys() == bibliography().keys()
    assert main(["references", "nobody1900"]) == 1
    assert "nobody1900" in capsys.readouterr().err
