"""The report of a study for people, as HTML or PDF."""

from raterscope.app.report.writing import SUFFIXES, report_job, write_report

__all__ = ["SUFFIXES", "report_job", "write_report"]
