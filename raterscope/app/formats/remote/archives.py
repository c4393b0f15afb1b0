"""Series of a PACS: find, fetch and store them, over DICOMweb (here) or DIMSE, whichever the address names.

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
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Protocol
from urllib.parse import urlsplit

from raterscope.algorithms.progress import Watch, silent, steps_of
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.output_files import file_name_part, open_output

MOST_SERIES = 1000
MOST_INSTANCES = 50_000
_DRAWN = ("SEG", "RTSTRUCT")
_NO_IMAGES = (*_DRAWN, "SR", "RTPLAN", "RTDOSE", "PR", "KO", "ANN")  # listed last: images name the new study


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


class Archive(Protocol):
    """An archive that is entered at each call; every refusal is an `InputError`."""

    def find(self, filters: Mapping[str, str], watch: Watch) -> list[Series]:
        """List the series whose elements match, by DICOM keyword."""

    def fetch(self, series: Series, receive: Callable[[Any], None]) -> None:
        """Hand each instance of a series to `receive`, with its file meta information."""

    def storing(self) -> AbstractContextManager[Callable[[Any], int]]:
        """Return a function that stores an instance and returns the failure's status; 0 for none."""


def connect(address: str, certificates: Path | None = None) -> Archive:
    """Return the archive at an address; no connection is opened yet.

    `address`: "https://host/dicom-web" for DICOMweb; "dicom://AET@host:port" for DIMSE, or "dicoms://" with
    TLS. `certificates`: those of the authorities to trust, for a hospital's own.
    """
    if certificates is not None and not certificates.is_file():
        raise InputError("does not exist; expected certificates as PEM", file=certificates)
    if certificates is not None:
        try:
            ssl.create_default_context(cafile=certificates)
        except ssl.SSLError as error:
            raise InputError("holds no certificates as PEM", file=certificates) from error
    if urlsplit(address).scheme in ("dicom", "dicoms"):
        from raterscope.app.formats.remote.dimse import DimseArchive

        return DimseArchive(address, certificates)
    return WebArchive(address, certificates)


def find_series(archive: Archive, filters: Mapping[str, str], watch: Watch = silent) -> list[Series]:
    """List the series that match filters by keyword ("PatientID", "StudyDate"); ``*`` matches anything."""
    if "Modality" in filters:
        filters = {**filters, "Modality": filters["Modality"].upper()}
    for keyword, value in filters.items():
        _check_value(keyword, value)
    return sorted(
        archive.find(filters, watch),
        key=lambda series: (series.patient, series.date, series.study_uid, series.modality in _NO_IMAGES),
    )


def _check_value(keyword: str, value: str) -> None:
    """Raise `InputError` for a value that no element can have: archives answer it in different ways."""
    from pydicom import config
    from pydicom.datadict import dictionary_VR
    from pydicom.valuerep import validate_value

    try:
        validate_value(dictionary_VR(keyword), value.replace("*", ""), config.RAISE)
    except ValueError as error:
        expected = "; expected 20260131, or a range: 20260101-20260131" if keyword == "StudyDate" else ""
        raise InputError(f"{plain(value)} is no value of {keyword}{expected}") from error


def fetch_all(
    archive: Archive, series: Sequence[Series], folder: Path, watch: Watch = silent
) -> dict[Path, list[Path]]:
    """Write series into folders of their own below a folder; return the files of each."""
    repeated = Counter(map(_name_of, series))
    files: dict[Path, list[Path]] = {}
    for listed, step in steps_of(watch, series):
        target = _folder_of(listed, folder, repeats=repeated[_name_of(listed)] > 1)
        files[target] = fetch_series(archive, listed, target, step)
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


def fetch_series(archive: Archive, series: Series, folder: Path, watch: Watch = silent) -> list[Path]:
    """Write the instances of a series into a folder, one file each, which are replaced if they exist.

    What stops it leaves no new instances behind: half a series would be imported as a whole one.
    """
    before = set(folder.iterdir()) if folder.exists() else set()
    try:
        return _fetch(archive, series, folder, watch)
    except BaseException:
        for file in set(folder.glob("*.dcm")) - before:
            file.unlink(missing_ok=True)
        raise


def _fetch(archive: Archive, series: Series, folder: Path, watch: Watch) -> list[Path]:
    import pydicom

    folder.mkdir(parents=True, exist_ok=True)
    total = int(series.instances) if series.instances.isdigit() else 0
    is_drawn = series.modality in _DRAWN  # without an author, the rater's name is the file's
    files: list[Path] = []

    def receive(instance: Any) -> None:
        number = len(files) + 1
        if number > MOST_INSTANCES:
            raise InputError(f"the archive sends more than {MOST_INSTANCES:,} instances of one series")
        watch(min(number / max(total, number), 1.0), f"fetching {series.modality} {number:,} of {total:,}")
        uid = pydicom.uid.UID(str(instance.SOPInstanceUID))
        if not uid.is_valid:
            raise InputError(f"the archive sends an instance whose UID is not valid: {plain(uid)}")
        file = folder / f"{folder.name if is_drawn and total == 1 else uid}.dcm"
        with open_output(file) as draft:
            instance.save_as(draft, enforce_file_format=True)
        files.append(file)

    archive.fetch(series, receive)
    return files


def store_files(archive: Archive, files: Sequence[Path], watch: Watch = silent) -> None:
    """Store DICOM files, each by itself. Raises `InputError` for the first that is refused."""
    import pydicom

    with archive.storing() as store:
        for number, file in enumerate(files):
            watch(number / len(files), f"storing {plain(file.name)}")
            try:
                dataset = pydicom.dcmread(file)
            except (pydicom.errors.InvalidDicomError, OSError) as error:
                raise InputError("is no DICOM file", file=file) from error
            if status := store(dataset):
                raise InputError(f"was refused by the archive (failure reason {status:04X}H)", file=file)


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
