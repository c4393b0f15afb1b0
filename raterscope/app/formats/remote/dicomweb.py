"""DICOMweb: find, fetch and store series of a PACS (QIDO-RS, WADO-RS and STOW-RS).

Only the command `raterscope pacs` and the dialogs of a PACS open a connection. They need
``raterscope[pacs]``.

References
----------
DICOM PS3.18, "Web Services". M. D. Herrmann et al., "Implementing the DICOM standard for digital pathology",
Journal of Pathology Informatics 9 (2018) 37, doi:10.4103/jpi.jpi_42_18, whose client is used.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import Any
from urllib.parse import urlsplit

from raterscope.algorithms.progress import Watch, silent, steps_of
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.output_files import file_name_part, open_output

AUTHORIZATION = "RATERSCOPE_PACS_AUTHORIZATION"
"""Environment variable with the header of requests: ``Bearer TOKEN`` or ``Basic BASE64``."""

_MOST_SERIES = 1000
_MOST_INSTANCES = 50_000
_TIMEOUT = 60
_DRAWN = ("SEG", "RTSTRUCT")
_ANY_SYNTAX = (("application/dicom", "*"),)


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


def connect(address: str, certificates: Path | None = None) -> Any:
    """Return a client of a DICOMweb service; no connection is opened yet.

    `address`: "https://host/dicom-web". Without https a token is sent only to this computer. `certificates`:
    certificates of the authorities to trust, for a hospital's own.
    """
    from dicomweb_client.api import DICOMwebClient
    from requests import Session

    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"{plain(address)} is no address of a DICOMweb service; expected https://host/path")
    if parts.username or parts.password:
        raise InputError(f"write no password into the address; set {AUTHORIZATION} instead")
    logging.getLogger("dicomweb_client").setLevel(logging.CRITICAL)
    session = Session()
    session.trust_env = False  # no password of a .netrc, no proxy
    if certificates is not None:
        if not certificates.is_file():
            raise InputError("does not exist; expected certificates as PEM", file=certificates)
        session.verify = str(certificates)
    if authorization := os.environ.get(AUTHORIZATION):
        if parts.scheme != "https" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
            raise InputError("a token is sent over https only; the address begins with http")
        session.headers["Authorization"] = authorization
    client = DICOMwebClient(address, session=session, timeout=_TIMEOUT)
    client.set_http_retry_params(retry=False)
    return client


def find_series(client: Any, filters: Mapping[str, str]) -> list[Series]:
    """List the series that match.

    `filters`: by keyword, "PatientID", "Modality", "StudyDate", "StudyInstanceUID"; ``*`` matches anything.
    """
    with answers(client):
        rows = client.search_for_series(
            search_filters=dict(filters), limit=_MOST_SERIES,
            fields=["PatientID", "StudyDate", "SeriesDescription", "NumberOfSeriesRelatedInstances"],
        )  # fmt: skip
        listed = [_series(row) for row in rows[:_MOST_SERIES]]
    return sorted(
        listed,
        key=lambda series: (series.patient, series.date, series.study_uid, series.modality in _DRAWN),
    )


def fetch_all(
    client: Any, series: Sequence[Series], folder: Path, watch: Watch = silent
) -> dict[Path, list[Path]]:
    """Write series into folders of their own below a folder; return the files of each."""
    repeated = Counter(map(_name_of, series))
    files: dict[Path, list[Path]] = {}
    for listed, step in steps_of(watch, series):
        target = _folder_of(listed, folder, repeats=repeated[_name_of(listed)] > 1)
        files[target] = fetch_series(client, listed, target, step)
    return files


def _name_of(series: Series) -> str:
    """Return a name in words: importers name new studies and raters by it."""
    return file_name_part(f"{series.modality} {series.description or series.patient or 'study'}")


def _folder_of(series: Series, folder: Path, *, repeats: bool) -> Path:
    """Return a folder for a series alone: NAME, or NAME-A, NAME-B ... if the name repeats."""
    name = _name_of(series)
    for suffix in ("", *(f"-{letter}" for letter in ascii_uppercase), f"-{series.series_uid}"):
        target = folder / f"{name}{suffix}"
        if (suffix or not repeats) and _series_in(target) in (None, series.series_uid):
            break
    return target


def _series_in(folder: Path) -> str | None:
    """Return the UID of the series in a folder; None if it holds no DICOM file."""
    import pydicom

    for file in folder.glob("*.dcm"):
        with suppress(pydicom.errors.InvalidDicomError, OSError):
            tags = ["SeriesInstanceUID"]
            return str(pydicom.dcmread(file, specific_tags=tags, stop_before_pixels=True).SeriesInstanceUID)
    return None


def fetch_series(client: Any, series: Series, folder: Path, watch: Watch = silent) -> list[Path]:
    """Write the instances of a series into a folder, one file each, which are replaced if they exist.

    What stops it leaves no new instances behind: half a series would be imported as a whole one.
    """
    before = set(folder.iterdir()) if folder.exists() else set()
    try:
        return _fetch(client, series, folder, watch)
    except BaseException:
        for file in set(folder.glob("*.dcm")) - before:
            file.unlink(missing_ok=True)
        raise


def _fetch(client: Any, series: Series, folder: Path, watch: Watch) -> list[Path]:
    import pydicom

    folder.mkdir(parents=True, exist_ok=True)
    total = int(series.instances) if series.instances.isdigit() else 0
    is_drawn = series.modality in _DRAWN  # without an author, the rater's name is the file's
    files = []
    with answers(client):
        instances: Iterator[Any] = client.iter_series(series.study_uid, series.series_uid, _ANY_SYNTAX)
        for number, instance in enumerate(instances, start=1):
            if number > _MOST_INSTANCES:
                raise InputError(f"sends more than {_MOST_INSTANCES:,} instances of one series")
            watch(
                min(number / max(total, number), 1.0), f"fetching {series.modality} {number:,} of {total:,}"
            )
            uid = pydicom.uid.UID(str(instance.SOPInstanceUID))
            if not uid.is_valid:
                raise InputError(f"sends an instance whose UID is not valid: {plain(uid)}")
            file = folder / f"{folder.name if is_drawn and total == 1 else uid}.dcm"
            with open_output(file) as draft:
                instance.save_as(draft, enforce_file_format=True)
            files.append(file)
    return files


def store_files(client: Any, files: Sequence[Path], watch: Watch = silent) -> None:
    """Store DICOM files, each by itself. Raises `InputError` for the first that is refused."""
    import pydicom

    for number, file in enumerate(files):
        watch(number / len(files), f"storing {plain(file.name)}")
        try:
            dataset = pydicom.dcmread(file)
        except (pydicom.errors.InvalidDicomError, OSError) as error:
            raise InputError("is no DICOM file", file=file) from error
        with answers(client):
            answer = client.store_instances([dataset])
        failed = answer.get("FailedSOPSequence")
        if failed:
            reason = failed[0].get("FailureReason", 0)
            raise InputError(f"was refused by the archive (failure reason {int(reason):04X}H)", file=file)


@contextmanager
def answers(client: Any) -> Iterator[None]:
    """Raise an `InputError` that says how a service refused, or that its answer is damaged."""
    import pydicom
    import requests

    host = plain(urlsplit(client.base_url).netloc, 100)
    try:
        yield
    except requests.exceptions.SSLError as error:
        raise InputError(
            f"{host}: its certificate is not trusted; name the authority's certificates (--certificates FILE)"
        ) from error
    except requests.exceptions.ConnectionError as error:
        raise InputError(f"{host}: does not answer") from error
    except requests.exceptions.Timeout as error:
        raise InputError(f"{host}: did not answer within {_TIMEOUT} s") from error
    except requests.exceptions.HTTPError as error:
        status = int(error.response.status_code)
        raise InputError(
            f"{host}: {_REFUSALS.get(status, f'refused the request (status {status})')}"
        ) from error
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


def _series(row: Mapping[str, Any]) -> Series:
    from pydicom.dataset import Dataset

    dataset = Dataset.from_json(dict(row))

    def text(keyword: str) -> str:
        value = dataset.get(keyword)
        return "" if value is None else plain(value, 100)

    return Series(
        text("PatientID"), text("StudyDate"), text("Modality"), text("SeriesDescription"),
        text("NumberOfSeriesRelatedInstances"), text("StudyInstanceUID"), text("SeriesInstanceUID"),
    )  # fmt: skip
