"""The report of a study, as HTML or PDF."""

from raterscope.app.report.writing import write_report

__all__ = ["write_report"]
