"""A PACS and its series as both protocols describe them, and reasons why it does not answer."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from raterscope.algorithms.progress import Watch
from raterscope.app.errors import plain

MOST_SERIES = 1000


@dataclass(frozen=True)
class Series:
    """A series in an archive."""

    patient: str
    date: str
    modality: str
    description: str
    instances: str
    study_uid: str
    series_uid: str


def failure_words(error: BaseException | None) -> str:
    """Explain why no connection was made, from an error and those that caused it."""
    while error is not None:
        if isinstance(error, socket.gaierror):
            return "there is no computer of this name"
        if isinstance(error, ssl.SSLCertVerificationError):
            reason = plain(error.verify_message.rstrip("."), 100)
            return (
                f"its certificate is not trusted ({reason}); name the authority's certificates "
                "(--certificates FILE)"
            )
        if isinstance(error, (ssl.SSLError, ConnectionResetError)):
            return "ended the connection; does this port use TLS (https://, dicoms://)?"
        error = error.__cause__ or error.__context__
    return "does not answer"


def series_of(dataset: Any) -> Series:
    """Return the series that an answer describes."""

    def text(keyword: str) -> str:
        value = dataset.get(keyword)
        return "" if value is None else plain(value, 100)

    return Series(
        text("PatientID"), text("StudyDate"), text("Modality"), text("SeriesDescription"),
        text("NumberOfSeriesRelatedInstances"), text("StudyInstanceUID"), text("SeriesInstanceUID"),
    )  # fmt: skip


class Archive(Protocol):
    """An archive that is entered at each call; every refusal is an `InputError`."""

    def find(self, filters: Mapping[str, str], watch: Watch) -> list[Series]:
        """List the series whose elements match, by DICOM keyword."""

    def fetch(self, series: Series, receive: Callable[[Any], None]) -> None:
        """Hand each instance of a series to `receive`, with its file meta information."""

    def storing(self) -> AbstractContextManager[Callable[[Any], int]]:
        """Return a function that stores an instance and returns the failure's status; 0 for none."""
