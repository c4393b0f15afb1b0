"""PACS: find, fetch and store series over DICOMweb or DIMSE, by the form of the address.

Only the command `raterscope pacs` and the PACS dialogs open a connection. They need
``raterscope[pacs]``.
"""

from __future__ import annotations

import ssl
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from string import ascii_uppercase
from typing import Any
from urllib.parse import urlsplit

from raterscope.algorithms.progress import Watch, silent, steps_of
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.output_files import file_name_part, open_output
from raterscope.app.formats.remote.protocols import Archive, DimseArchive, Series, WebArchive

MAX_INSTANCES = 50_000
_DRAWN = ("SEG", "RTSTRUCT")
_NO_IMAGES = (*_DRAWN, "SR", "RTPLAN", "RTDOSE", "PR", "KO", "ANN")  # listed last: images name the new study


def connect(address: str, certificates: Path | None = None) -> Archive:
    """Return the archive at an address; no connection is opened yet.

    `address`: "https://host/dicom-web" for DICOMweb; "dicom://AET@host:port" for DIMSE, or "dicoms://" with
    TLS. `certificates`: certificates of trusted authorities, such as a hospital's own.
    """
    if certificates is not None and not certificates.is_file():
        raise InputError("does not exist; expected certificates as PEM", file=certificates)
    if certificates is not None:
        try:
            ssl.create_default_context(cafile=certificates)
        except ssl.SSLError as error:
            raise InputError("contains no certificates as PEM", file=certificates) from error
    if urlsplit(address).scheme in ("dicom", "dicoms"):
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
    """Raise `InputError` for a value that no element can have; archives answer it in different ways."""
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
    """Write each series into a separate subfolder; return the files of each."""
    repeated = Counter(map(_name_of, series))
    files: dict[Path, list[Path]] = {}
    for listed, step in steps_of(watch, series):
        target = _folder_of(listed, folder, repeats=repeated[_name_of(listed)] > 1)
        files[target] = fetch_series(archive, listed, target, step)
    return files


def _name_of(series: Series) -> str:
    """Return a readable name, by which importers name new studies and raters."""
    return file_name_part(f"{series.modality} {series.description or series.patient or 'study'}")


def _folder_of(series: Series, folder: Path, *, repeats: bool) -> Path:
    """Return a separate folder for a series: NAME, or NAME-A, NAME-B ... if the name repeats."""
    name = _name_of(series)
    for suffix in ("", *(f"-{letter}" for letter in ascii_uppercase), f"-{series.series_uid}"):
        target = folder / f"{name}{suffix}"
        if (suffix or not repeats) and _series_in(target) in (None, series.series_uid):
            break
    return target


def _series_in(folder: Path) -> str | None:
    """Return the UID of the series in a folder; None if it contains no DICOM file."""
    import pydicom

    for file in folder.glob("*.dcm"):
        with suppress(pydicom.errors.InvalidDicomError, OSError):
            tags = ["SeriesInstanceUID"]
            return str(pydicom.dcmread(file, specific_tags=tags, stop_before_pixels=True).SeriesInstanceUID)
    return None


def fetch_series(archive: Archive, series: Series, folder: Path, watch: Watch = silent) -> list[Path]:
    """Write each instance of a series to a file in a folder; existing files are replaced.

    If this is interrupted, no new instances remain, because an incomplete series would be imported as
    complete.
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
        if number > MAX_INSTANCES:
            raise InputError(f"the archive sends more than {MAX_INSTANCES:,} instances of one series")
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
    """Store DICOM files separately. Raises `InputError` for the first that is refused."""
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
