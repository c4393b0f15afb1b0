"""DICOMweb: find, fetch and store series of a PACS over HTTP.

References
----------
DICOM PS3.18, "Web Services". M. D. Herrmann et al., "Implementing the DICOM standard for digital pathology",
Journal of Pathology Informatics 9 (2018) 37, doi:10.4103/jpi.jpi_42_18, whose client is used.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from raterscope.algorithms.progress import Watch
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.remote.series import MOST_SERIES, Series, failure_words, series_of

AUTHORIZATION = "RATERSCOPE_PACS_AUTHORIZATION"
"""Environment variable with the header of requests: ``Bearer TOKEN`` or ``Basic BASE64``."""

_TIMEOUT = 60

_ANY_SYNTAX = (("application/dicom", "*"),)


class WebArchive:
    """An archive with DICOMweb. Without https a token is sent only to this computer."""

    def __init__(self, address: str, certificates: Path | None = None) -> None:
        from dicomweb_client.api import DICOMwebClient
        from requests import Session

        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(
                f"{plain(address)} is no address of a PACS; expected https://host/path for DICOMweb, or "
                "dicom://AET@host:port"
            )
        if parts.username or parts.password:
            raise InputError(f"write no password into the address; set {AUTHORIZATION} instead")
        logging.getLogger("dicomweb_client").setLevel(logging.CRITICAL)
        session = Session()
        session.trust_env = False  # no password of a .netrc, no proxy
        if certificates is not None:
            session.verify = str(certificates)
        if authorization := os.environ.get(AUTHORIZATION):
            if parts.scheme != "https" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
                raise InputError("a token is sent over https only; the address begins with http")
            session.headers["Authorization"] = authorization
        self._client = DICOMwebClient(address, session=session, timeout=_TIMEOUT)
        self._client.set_http_retry_params(retry=False)

    def find(self, filters: Mapping[str, str], watch: Watch) -> list[Series]:
        """List the series whose elements match, by DICOM keyword."""
        from pydicom.dataset import Dataset

        watch(0.0, "searching")
        with _answers(self._client):
            rows = self._client.search_for_series(
                search_filters=dict(filters), limit=MOST_SERIES,
                fields=["PatientID", "StudyDate", "SeriesDescription", "NumberOfSeriesRelatedInstances"],
            )  # fmt: skip
            return [series_of(Dataset.from_json(dict(row))) for row in rows[:MOST_SERIES]]

    def fetch(self, series: Series, receive: Callable[[Any], None]) -> None:
        """Hand each instance of a series to `receive`."""
        with _answers(self._client):
            for instance in self._client.iter_series(series.study_uid, series.series_uid, _ANY_SYNTAX):
                receive(instance)

    @contextmanager
    def storing(self) -> Iterator[Callable[[Any], int]]:
        """Return a function that stores an instance and returns the failure's reason; 0 for none."""
        yield self._store

    def _store(self, dataset: Any) -> int:
        with _answers(self._client):
            failed = self._client.store_instances([dataset]).get("FailedSOPSequence")
            return int(failed[0].get("FailureReason", 0x0110)) if failed else 0


@contextmanager
def _answers(client: Any) -> Iterator[None]:
    """Raise an `InputError` that says how a service refused, or that its answer is damaged."""
    import pydicom
    import requests

    host = plain(urlsplit(client.base_url).netloc, 100)
    try:
        yield
    except requests.exceptions.ConnectionError as error:
        raise InputError(f"{host}: {failure_words(error)}") from error
    except requests.exceptions.Timeout as error:
        raise InputError(f"{host}: did not answer within {_TIMEOUT} s") from error
    except requests.exceptions.HTTPError as error:
        status = int(error.response.status_code)
        words = _REFUSALS.get(status, f"refused the request (status {status})")
        if status == 401 and AUTHORIZATION in os.environ:
            words = f"does not accept the password or token in {AUTHORIZATION} (status 401)"
        raise InputError(f"{host}: {words}") from error
    except requests.exceptions.JSONDecodeError as error:
        raise InputError(f"{host}: sent no DICOM in JSON; is this the address of DICOMweb?") from error
    except requests.exceptions.RequestException as error:
        raise InputError(f"{host}: {plain(error, 200)}") from error
    except (pydicom.errors.InvalidDicomError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{host}: sent damaged DICOM") from error


_REFUSALS = {
    400: "does not understand the request (status 400)",
    401: f"asks who you are (status 401); set {AUTHORIZATION}",
    403: "does not allow this (status 403)",
    404: "has no such study or series, or no DICOMweb at this address (status 404)",
    409: "refused what was to be stored (status 409)",
    413: "refused a file for its size (status 413)",
    503: "is busy (status 503); try again later",
}
