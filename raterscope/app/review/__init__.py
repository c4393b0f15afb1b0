"""The expert's decisions: the journal, and what it amounts to for each kind of annotation."""

from raterscope.app.review.decision import (
    SUBJECTS,
    BiasSubject,
    Decision,
    RegionSubject,
    SpotSubject,
    Subject,
    TaskSubject,
    in_words,
    target_of,
)
from raterscope.app.review.journal import ReviewState, differ, fold, redo, undo
from raterscope.app.review.regions import Region, known_voxels
from raterscope.app.review.spots import Spot, Verdict, known_spots, match
from raterscope.app.review.tasks import DecidedTask

__all__ = [
    "SUBJECTS",
    "BiasSubject",
    "DecidedTask",
    "Decision",
    "Region",
    "RegionSubject",
    "ReviewState",
    "Spot",
    "SpotSubject",
    "Subject",
    "TaskSubject",
    "Verdict",
    "differ",
    "fold",
    "in_words",
    "known_spots",
    "known_voxels",
    "match",
    "redo",
    "target_of",
    "undo",
]
