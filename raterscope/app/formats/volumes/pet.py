"""Standardised uptake values of PET images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from raterscope.app.formats.volumes.dicom_headers import SliceHead

SUV = "SUV"
TAGS = (
    "Units", "DecayCorrection", "PatientWeight", "SeriesDate", "SeriesTime", "AcquisitionDate",
    "AcquisitionTime", "RadiopharmaceuticalInformationSequence",
)  # fmt: skip


def suv_factor(data: Any) -> float | None:
    """Return the factor from Bq/ml to the uptake per body weight, g/ml; None where the header has no dose.

    Activity is corrected for decay to the start of the series or to the injection. A series whose time is
    later than its acquisition was processed, so that its time is not that of the scan: None.
    """
    dose = next(iter(data.get("RadiopharmaceuticalInformationSequence") or ()), None)
    if dose is None or str(data.get("Units", "")) != "BQML":
        return None
    try:
        activity, weight = float(dose.RadionuclideTotalDose), 1000.0 * float(data.PatientWeight)
        correction = str(data.DecayCorrection)
        if correction == "START":
            begin = _moment(data.SeriesDate, data.SeriesTime)
            if begin > _moment(data.get("AcquisitionDate") or data.SeriesDate, data.AcquisitionTime):
                return None
            stated = str(dose.get("RadiopharmaceuticalStartDateTime") or "")
            injected = _moment(stated[:8] or data.SeriesDate, stated[8:] or dose.RadiopharmaceuticalStartTime)
            if injected > begin and not stated:  # before midnight
                injected -= timedelta(days=1)
            seconds = (begin - injected).total_seconds()
            activity *= 0.5 ** (seconds / float(dose.RadionuclideHalfLife))
        elif correction != "ADMIN":
            return None
        factor = weight / activity
    except (AttributeError, TypeError, ValueError, ArithmeticError):
        return None
    return factor if 0 < factor < float("inf") and weight > 0 else None


def _moment(day: Any, clock: Any) -> datetime:
    """Combine a date and a time of DICOM; the time zone of a date with time is dropped."""
    text = str(clock).replace(":", "").partition("+")[0].partition("-")[0]
    seconds = float(text[4:] or 0)
    whole = time(int(text[:2]), int(text[2:4] or 0), int(seconds), round(seconds % 1 * 1e6) % 1_000_000)
    digits = str(day).replace(".", "")
    return datetime.combine(date(int(digits[:4]), int(digits[4:6]), int(digits[6:8])), whole)


def as_suv(heads: Sequence[SliceHead]) -> list[SliceHead]:
    """Convert the scale of all slices to uptake values, if they have one factor."""
    factor = heads[0].suv_factor
    if factor is None or any(head.suv_factor != factor for head in heads):
        return list(heads)
    return [
        replace(
            head,
            slope=head.slope * factor,
            intercept=head.intercept * factor,
            window=None if head.window is None else (head.window[0] * factor, head.window[1] * factor),
            unit=SUV,
        )
        for head in heads
    ]
