"""The document of the program: one file, ``NAME.rscope``; `schema` describes its tables."""

from raterscope.app.errors import StudyError
from raterscope.app.study.arrays import digest_of
from raterscope.app.study.records import ImageEntry, ImportSummary, RunEntry, TruePoints
from raterscope.app.study.study import Study

__all__ = ["ImageEntry", "ImportSummary", "RunEntry", "Study", "StudyError", "TruePoints", "digest_of"]
