"""What cases and raters are called in de-identified exports: the same in all exports of a study."""

from __future__ import annotations

from dataclasses import replace

from raterscope.algorithms.masks.data import MaskFusion
from raterscope.app.formats.masks.deidentify import Deidentifier
from raterscope.app.study import ImageEntry, Study
from raterscope.app.study.new_study import export_key

__all__ = ["case_pseudonym", "deidentifier_of", "with_pseudonyms"]


def deidentifier_of(study: Study) -> Deidentifier:
    """Make the de-identifier of a study: its key, and its annotators as rater-1, rater-2 ...

    Raises
    ------
    StudyError
        For a study without a key; see `export_key`.
    """
    names = {name: f"rater-{number}" for number, name in enumerate(study.annotators(), start=1)}
    return Deidentifier(export_key(study), names)


def case_pseudonym(entry: ImageEntry) -> str:
    """Name a case by its number in the study: case-001."""
    return f"case-{entry.id:03d}"


def with_pseudonyms(fusion: MaskFusion, by: Deidentifier) -> MaskFusion:
    """Give a fusion whose raters have other names."""
    return replace(fusion, annotators=tuple(by.names[name] for name in fusion.annotators))
