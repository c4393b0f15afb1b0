"""Pairs of a study for the next program: what the run shown says, the expert's word on top."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from raterscope.algorithms.pairs.evidence import match
from raterscope.algorithms.pairs.selection import draw_shares
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.exports import Request, files_for
from raterscope.app.formats.pairs.writing import write_annotators, write_pairs, write_path, write_ranking
from raterscope.app.kinds.pairs.answers import Answered, decided, plan_of, read_answer
from raterscope.app.study import Study
from raterscope.app.study.pairs import pairs_of
from raterscope.app.study.records import PairQuestion

_Write = Callable[[Study, Answered, Path, Watch], Path]


def export_pairs(study: Study, request: Request, watch: Watch = silent) -> list[Path]:
    """Write something of pairs, a file for each question; several go into a folder.

    See `exports.Writer`.

    Raises
    ------
    InputError
        When there are no pairs, nothing was fused yet, or a file cannot be written.
    """
    every = [one for one in study.pair_questions() if not request.items or one.id in request.items]
    if not every:
        raise InputError("holds no pairs; `raterscope import` reads them", file=study.path)
    ready = every
    if request.what != "pairs":
        ready = [one for one in every if study.shown.result(one.id, "pairs") is not None]
    if not ready or (request.items and len(ready) < len(every)):
        raise InputError("holds no run of pairs yet; `raterscope run` makes one", file=study.path)
    return [
        _written(study, question, request.what, path, here)
        for question, path, here in files_for(request, [(one, one.name) for one in ready], watch)
    ]


def _written(study: Study, question: PairQuestion, what: str, path: Path, watch: Watch) -> Path:
    if what == "pairs":
        return write_pairs(path, pairs_of(study, question.id), watch)
    answered = read_answer(study, question)
    assert answered is not None
    return _WRITERS[what](study, answered, path, watch)


def _write_annotators(study: Study, answered: Answered, path: Path, watch: Watch) -> Path:
    fusion, plan = decided(study, answered, watch), plan_of(answered.run)
    share = None
    if plan is not None:
        share = draw_shares(fusion, plan.settings.as_dict()["plus"])
    pairs = answered.pairs
    return write_annotators(path, pairs.annotators, fusion, share, match(pairs, fusion.score))


def _write_ranking(study: Study, answered: Answered, path: Path, watch: Watch) -> Path:
    return write_ranking(path, answered.pairs.items, decided(study, answered, watch))


def _write_path(_: Study, answered: Answered, path: Path, watch: Watch) -> Path:
    return write_path(path, answered.pairs.annotators, answered.fusion, watch)


_WRITERS: Mapping[str, _Write] = {
    "annotators": _write_annotators,
    "ranking": _write_ranking,
    "path": _write_path,
}
