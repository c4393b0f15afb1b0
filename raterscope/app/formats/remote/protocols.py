"""Protocols of a PACS, DICOMweb and DIMSE: find, fetch and store series, with one interface.

DIMSE uses C-FIND, C-GET and C-STORE. C-MOVE is not supported: the archive would send to a port of this
computer, which would have to be open and registered in the archive. C-GET answers over the same connection.

References
----------
DICOM PS3.18, "Web Services". M. D. Herrmann et al., "Implementing the DICOM standard for digital pathology",
Journal of Pathology Informatics 9 (2018) 37, doi:10.4103/jpi.jpi_42_18, whose client is used.
DICOM PS3.4, "Service Class Specifications", annexes B and C; DICOM PS3.8, "Network Communication Support for
Message Exchange".
"""

from __future__ import annotations

import logging
import os
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, unquote, urlsplit

from raterscope.algorithms.progress import Watch
from raterscope.app.errors import InputError, plain

_MAX_SERIES = 1000

AUTHORIZATION = "RATERSCOPE_PACS_AUTHORIZATION"
"""Environment variable with the header of requests: ``Bearer TOKEN`` or ``Basic BASE64``."""

_ANY_SYNTAX = (("application/dicom", "*"),)

_TIMEOUT = 60
_MAX_BYTES = 2 << 30
"""Maximum size of a message, such as an instance, which is completely in memory; bytes."""

_CALLING = "RATERSCOPE"
_IMAGES = (
    "CTImageStorage", "EnhancedCTImageStorage", "MRImageStorage", "EnhancedMRImageStorage",
    "PositronEmissionTomographyImageStorage", "EnhancedPETImageStorage", "NuclearMedicineImageStorage",
    "ComputedRadiographyImageStorage", "DigitalXRayImageStorageForPresentation",
    "DigitalMammographyXRayImageStorageForPresentation", "XRayAngiographicImageStorage",
    "UltrasoundImageStorage", "UltrasoundMultiFrameImageStorage", "SecondaryCaptureImageStorage",
    "MultiFrameTrueColorSecondaryCaptureImageStorage", "VLMicroscopicImageStorage",
    "VLWholeSlideMicroscopyImageStorage",
)  # fmt: skip
_OBJECTS = (
    "SegmentationStorage", "LabelMapSegmentationStorage", "RTStructureSetStorage", "RTDoseStorage",
    "ParametricMapStorage", "BasicTextSRStorage", "EnhancedSRStorage", "ComprehensiveSRStorage",
    "Comprehensive3DSRStorage",
)  # fmt: skip
_UNCOMPRESSED = ("1.2.840.10008.1.2.1", "1.2.840.10008.1.2")
_COMPRESSED = (  # JPEG baseline, JPEG lossless, JPEG-LS, JPEG 2000 lossless and lossy
    "1.2.840.10008.1.2.4.50", "1.2.840.10008.1.2.4.70", "1.2.840.10008.1.2.4.80", "1.2.840.10008.1.2.4.90",
    "1.2.840.10008.1.2.4.91",
)  # fmt: skip


@dataclass(frozen=True)
class Series:
    """Series in an archive."""

    patient: str
    date: str
    modality: str
    description: str
    instances: str
    study_uid: str
    series_uid: str


class Archive(Protocol):
    """Archive that is connected at each call; every refusal raises an `InputError`."""

    def find(self, filters: Mapping[str, str], watch: Watch) -> list[Series]:
        """List the series whose elements match, by DICOM keyword."""

    def fetch(self, series: Series, receive: Callable[[Any], None]) -> None:
        """Pass each instance of a series to `receive`, with its file meta information."""

    def storing(self) -> AbstractContextManager[Callable[[Any], int]]:
        """Return a function that stores an instance and returns the failure's status; 0 for none."""


class WebArchive:
    """Archive with DICOMweb. Without https a token is sent only to this computer."""

    def __init__(self, address: str, certificates: Path | None = None) -> None:
        from dicomweb_client.api import DICOMwebClient
        from requests import Session

        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(
                f"{plain(address)} is not an address of a PACS; expected https://host/path for DICOMweb, or dicom://AET@host:port"
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
                search_filters=dict(filters), limit=_MAX_SERIES,
                fields=["PatientID", "StudyDate", "SeriesDescription", "NumberOfSeriesRelatedInstances"],
            )  # fmt: skip
            return [_series_of(Dataset.from_json(dict(row))) for row in rows[:_MAX_SERIES]]

    def fetch(self, series: Series, receive: Callable[[Any], None]) -> None:
        """Pass each instance of a series to `receive`."""
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
    """Raise an `InputError` that states why a service refused, or that its answer is damaged."""
    import pydicom
    import requests

    host = plain(urlsplit(client.base_url).netloc, 100)
    try:
        yield
    except requests.exceptions.ConnectionError as error:
        raise InputError(f"{host}: {_failure_text(error)}") from error
    except requests.exceptions.Timeout as error:
        raise InputError(f"{host}: did not answer within {_TIMEOUT} s") from error
    except requests.exceptions.HTTPError as error:
        status = int(error.response.status_code)
        text = _REFUSALS.get(status, f"refused the request (status {status})")
        if status == 401 and AUTHORIZATION in os.environ:
            text = f"does not accept the password or token in {AUTHORIZATION} (status 401)"
        raise InputError(f"{host}: {text}") from error
    except requests.exceptions.JSONDecodeError as error:
        raise InputError(f"{host}: sent no DICOM in JSON; is this the address of DICOMweb?") from error
    except requests.exceptions.RequestException as error:
        raise InputError(f"{host}: {plain(error, 200)}") from error
    except (pydicom.errors.InvalidDicomError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{host}: sent damaged DICOM") from error


_REFUSALS = {
    400: "does not understand the request (status 400)",
    401: f"requires a login (status 401); set {AUTHORIZATION}",
    403: "does not allow this (status 403)",
    404: "has no such study or series, or no DICOMweb at this address (status 404)",
    409: "refused the data to be stored (status 409)",
    413: "refused a file because of its size (status 413)",
    503: "is busy (status 503); try again later",
}


class _EndedError(InputError):
    """Error: the archive ended an association without an answer, as busy ones sometimes do."""


class _Stop(BaseException):
    """Exception that leaves pynetdicom, which catches every `Exception` of a handler."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class DimseArchive:
    """Archive with DIMSE services.

    Raterscope's AE title is RATERSCOPE; another title follows the address as "?calling=AET".
    """

    def __init__(self, address: str, certificates: Path | None = None) -> None:
        import pynetdicom

        parts = urlsplit(address)
        try:
            port = parts.port
        except ValueError:
            port = None
        titles = (unquote(parts.username or ""), *parse_qs(parts.query).get("calling", [_CALLING])[:1])
        if not (parts.hostname and port and all(map(_is_title, titles))) or parts.password:
            raise InputError(
                f"{plain(address)} is not an address of a PACS; expected dicom://AET@host:port with the "
                "archive's AE title (1 to 16 letters)"
            )
        self._called, self._calling = titles
        self._host, self._port = parts.hostname, port
        self._tls = None
        if parts.scheme == "dicoms":
            self._tls = (ssl.create_default_context(cafile=certificates), self._host)
        self._problem: InputError | None = None
        self._socket: socket.socket | None = None
        self._received = 0
        self._rejection: tuple[int, int] | None = None
        logging.getLogger("pynetdicom").setLevel(logging.CRITICAL + 1)
        pynetdicom._config.LOG_RESPONSE_IDENTIFIERS = pynetdicom._config.LOG_REQUEST_IDENTIFIERS = False

    def find(self, filters: Mapping[str, str], watch: Watch) -> list[Series]:
        """List the series whose elements match, by DICOM keyword."""
        if "SeriesInstanceUID" in filters and "StudyInstanceUID" not in filters:
            raise InputError("also name the study of the series: DIMSE finds series by their study")
        try:
            return self._find(filters, watch)
        except _EndedError:
            return self._find(filters, watch)

    def _find(self, filters: Mapping[str, str], watch: Watch) -> list[Series]:
        series: list[Series] = []
        watch(0.0, "searching")
        with self._associated(_contexts("StudyRootQueryRetrieveInformationModelFind")) as association:
            requested = {
                "PatientID": "", "StudyDate": "", "StudyInstanceUID": "",
                "ModalitiesInStudy": filters.get("Modality", ""),
            }  # fmt: skip
            studies = self._query(association, "STUDY", requested | _only(filters, requested))
            for number, study in enumerate(studies, start=1):
                watch(number / (len(studies) + 1), f"searching study {number:,} of {len(studies):,}")
                requested = {
                    "Modality": "", "SeriesInstanceUID": "", "SeriesDescription": "",
                    "NumberOfSeriesRelatedInstances": "",
                }  # fmt: skip
                rows = self._query(
                    association,
                    "SERIES",
                    requested | _only(filters, requested) | {"StudyInstanceUID": str(study.StudyInstanceUID)},
                )
                for row in rows:
                    row.StudyInstanceUID = study.StudyInstanceUID
                    row.PatientID, row.StudyDate = study.get("PatientID"), study.get("StudyDate")
                    series.append(_series_of(row))
                if len(series) > _MAX_SERIES:
                    raise InputError(f"more than {_MAX_SERIES:,} series match; narrow the search")
        return series

    def _query(self, association: Any, level: str, elements: Mapping[str, str]) -> list[Any]:
        from pydicom import Dataset
        from pynetdicom.sop_class import StudyRootQueryRetrieveInformationModelFind as Model

        query = Dataset()
        query.QueryRetrieveLevel = level
        if not "".join(elements.values()).isascii():
            query.SpecificCharacterSet = "ISO_IR 192"
        for keyword, value in elements.items():
            setattr(query, keyword, value)
        rows: list[Any] = []
        for status, row in association.send_c_find(query, Model):
            self._received = 0
            code = self._code(association, status, "C-FIND")
            if code not in (0x0000, 0xFF00, 0xFF01):
                raise InputError(f"{self._name}: refused the query (status {code:04X}H)")
            if row is None:
                continue
            rows.append(row)
            if len(rows) > _MAX_SERIES:
                raise InputError(
                    f"more than {_MAX_SERIES:,} {level.lower()} entries match; narrow the search"
                )
        return rows

    def fetch(self, series: Series, receive: Callable[[Any], None]) -> None:
        """Pass each instance of a series to `receive`."""
        from pydicom.dataset import Dataset
        from pynetdicom import build_role, evt, sop_class

        def take(event: Any) -> int:
            self._received = 0
            try:
                instance = event.dataset
                instance.file_meta = event.file_meta
                receive(instance)
            except (LookupError, TypeError, AttributeError, ValueError) as error:
                raise _Stop(InputError(f"{self._name}: sent damaged DICOM")) from error
            except Exception as error:
                raise _Stop(error) from error
            return 0

        query = Dataset()
        query.QueryRetrieveLevel = "SERIES"
        query.StudyInstanceUID, query.SeriesInstanceUID = series.study_uid, series.series_uid
        contexts = [
            *_contexts("StudyRootQueryRetrieveInformationModelGet", *_IMAGES, *_OBJECTS),
            *(context for syntax in _COMPRESSED for context in _contexts(*_IMAGES, syntaxes=[syntax])),
        ]
        roles = [build_role(getattr(sop_class, name), scp_role=True) for name in (*_IMAGES, *_OBJECTS)]
        model = sop_class.StudyRootQueryRetrieveInformationModelGet
        with self._associated(contexts, [(evt.EVT_C_STORE, take)], roles) as association:
            for status, _ in association.send_c_get(query, model):
                code = self._code(association, status, "C-GET")
                failed = status.get("NumberOfFailedSuboperations") or 0
                if code not in (0x0000, 0xFF00):
                    number = f"; {failed:,} instances were not sent" if failed else ""
                    raise InputError(f"{self._name}: refused to send a series (status {code:04X}H){number}")

    @contextmanager
    def storing(self) -> Iterator[Callable[[Any], int]]:
        """Return a function that stores an instance and returns the failure's status; 0 for none."""
        from pynetdicom import build_context

        with ExitStack() as stack:
            kind, association = None, None

            def send(dataset: Any) -> int:
                nonlocal kind, association
                meta = dataset.file_meta
                requested = (meta.MediaStorageSOPClassUID, meta.TransferSyntaxUID)
                if requested != kind:
                    stack.close()
                    association = stack.enter_context(self._associated([build_context(*requested)]))
                    kind = requested
                assert association is not None
                try:
                    code = self._code(association, association.send_c_store(dataset), "C-STORE")
                except (ValueError, AttributeError) as error:
                    raise InputError("cannot be encoded as its header says") from error
                return 0 if code >> 12 == 0xB else code  # warnings: stored with changes

            def store(dataset: Any) -> int:
                nonlocal kind
                try:
                    return send(dataset)
                except _EndedError:
                    kind = None
                    return send(dataset)

            yield store

    @contextmanager
    def _associated(
        self, contexts: Sequence[Any], handlers: Sequence[Any] = (), roles: Sequence[Any] = ()
    ) -> Iterator[Any]:
        """Open an association within this context, and release it; it is aborted if anything fails."""
        from pynetdicom import AE, evt

        self._problem, self._socket, self._received, self._rejection = None, None, 0, None
        host = self._reach()
        entity = AE(self._calling)
        entity.acse_timeout = entity.dimse_timeout = entity.network_timeout = _TIMEOUT
        entity.connection_timeout = _TIMEOUT
        association = entity.associate(
            host, self._port, list(contexts), self._called, ext_neg=list(roles),
            tls_args=self._tls,
            evt_handlers=[
                (evt.EVT_CONN_OPEN, self._limit), (evt.EVT_PDU_RECV, self._note_rejection), *handlers,
            ],
        )  # fmt: skip
        if not association.is_established:
            if self._socket is not None:
                self._socket.close()  # pynetdicom leaves it open where the archive closed its end
            raise self._refusal(association, contexts)
        try:
            yield association
        except BaseException as error:
            association.abort()
            if isinstance(error, _Stop):
                raise error.error from error.error.__cause__
            raise
        association.release()

    def _reach(self) -> str:
        """Return the archive's numeric address, after a test connection with clear errors."""
        try:
            with socket.create_connection((self._host, self._port), _TIMEOUT) as connection:
                if self._tls is not None:
                    context, name = self._tls
                    connection = context.wrap_socket(connection, server_hostname=name)
                with connection:
                    return str(connection.getpeername()[0])
        except TimeoutError as error:
            raise InputError(f"{self._name}: did not answer within {_TIMEOUT} s") from error
        except OSError as error:
            raise InputError(f"{self._name}: {_failure_text(error)}") from error

    def _limit(self, event: Any) -> None:
        """Limit the time that the archive may be silent, and the size of a message."""
        transport = event.assoc.dul.socket
        self._socket = transport.socket
        transport.socket.settimeout(_TIMEOUT)
        transport.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        read = transport.recv

        def recv(count: int) -> Any:
            self._received += count
            if self._received > _MAX_BYTES:
                self._problem = InputError(f"{self._name}: sends more than {_MAX_BYTES >> 20:,} MB at once")
                raise OSError
            return read(count)

        transport.recv = recv

    def _note_rejection(self, event: Any) -> None:
        """Record the reason for a rejection, which pynetdicom may lose."""
        from pynetdicom.pdu import A_ASSOCIATE_RJ

        if isinstance(event.pdu, A_ASSOCIATE_RJ):
            self._rejection = event.pdu.source, event.pdu.reason_diagnostic

    @property
    def _name(self) -> str:
        return plain(f"{self._host}:{self._port}", 100)

    def _code(self, association: Any, status: Any, service: str) -> int:
        """Return the code of a status. Raises `InputError` if the archive sent none."""
        self._received = 0
        if "Status" in status:
            return int(status.Status)
        if self._problem is not None:
            raise self._problem
        if association._sent_abort:
            raise InputError(f"{self._name}: did not answer within {_TIMEOUT} s")
        raise _EndedError(
            f"{self._name}: ended the association; does it know the AE title {self._calling}, and allow it "
            f"{service}?"
        )

    def _refusal(self, association: Any, contexts: Sequence[Any]) -> InputError:
        if self._rejection is not None:
            text = _REJECTIONS.get(self._rejection, "refused the association")
            text = text.format(self._called, self._calling)
        elif association.acceptor.primitive is None:
            text = f"is not a DICOM archive, expects TLS (dicoms://), or did not answer within {_TIMEOUT} s"
        else:
            syntax = contexts[0]
            text = f"does not offer {syntax.abstract_syntax.name} in {syntax.transfer_syntax[0].name}"
        return self._problem or InputError(f"{self._name}: {text}")


_REJECTIONS = {
    (1, 3): "does not know the AE title {1}; register it in the archive, or add ?calling=AET to the address",
    (1, 7): "is not called {0}; write its AE title before the @ of the address",
    (3, 1): "is busy; try again later",
    (3, 2): "has too many connections; try again later",
}


def _is_title(text: str) -> bool:
    """Return whether a text can be an AE title."""
    return 0 < len(text.strip()) <= 16 and text.isascii() and text.isprintable() and "\\" not in text


def _only(filters: Mapping[str, str], keywords: Mapping[str, str]) -> dict[str, str]:
    return {keyword: value for keyword, value in filters.items() if keyword in keywords}


def _contexts(*names: str, syntaxes: Sequence[str] = _UNCOMPRESSED) -> list[Any]:
    from pynetdicom import build_context, sop_class

    return [build_context(getattr(sop_class, name), list(syntaxes)) for name in names]


def _failure_text(error: BaseException | None) -> str:
    """Explain why no connection was made, from an error and its causes."""
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


def _series_of(dataset: Any) -> Series:
    """Return the series that an answer describes."""

    def text(keyword: str) -> str:
        value = dataset.get(keyword)
        return "" if value is None else plain(value, 100)

    return Series(
        text("PatientID"), text("StudyDate"), text("Modality"), text("SeriesDescription"),
        text("NumberOfSeriesRelatedInstances"), text("StudyInstanceUID"), text("SeriesInstanceUID"),
    )  # fmt: skip
