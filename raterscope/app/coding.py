"""Coding of a structure: category, type, colour, role in radiotherapy, and name in exports."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

Colour = tuple[int, int, int]

ROLES = (
    "GTV", "CTV", "PTV", "ORGAN", "AVOIDANCE", "EXTERNAL", "TREATED_VOLUME", "IRRAD_VOLUME", "BOLUS",
    "CAVITY", "CONTRAST_AGENT", "CONTROL", "DOSE_REGION", "DOSE_MEASUREMENT", "SUPPORT", "FIXATION",
    "MARKER", "REGISTRATION", "ISOCENTER", "BRACHY_CHANNEL", "BRACHY_ACCESSORY", "BRACHY_SRC_APP",
    "BRACHY_CHNL_SHLD",
)  # fmt: skip
"""Defined terms of RT ROI Interpreted Type (DICOM PS3.3, C.8.8.8.1), the usual ones first."""

_VALUE = re.compile(r"[^\\\x00-\x1f]{1,64}")
_SCHEME = re.compile(r"[\w .+-]{1,16}")
_ROLE = re.compile(r"[A-Z0-9_ ]{0,16}")
_LONGEST = 64


@dataclass(frozen=True)
class Code:
    """A concept of a coding scheme."""

    # value, scheme: "80891009" of "SCT"
    value: str
    scheme: str
    meaning: str

    def __post_init__(self) -> None:
        if not (_VALUE.fullmatch(self.value) and _SCHEME.fullmatch(self.scheme)):
            raise ValueError(f"{self.scheme}:{self.value} is not a code; expected a scheme and a value.")
        if not _VALUE.fullmatch(self.meaning):
            raise ValueError(f"the code {self.value} has no meaning of up to {_LONGEST} characters.")

    def same_as(self, other: Code | None) -> bool:
        """Check whether both are the same concept, regardless of the wording."""
        return other is not None and (self.value, self.scheme) == (other.value, other.scheme)


TISSUE = Code("85756007", "SCT", "Tissue")
"""Type of a structure about which nothing is known."""


@dataclass(frozen=True, kw_only=True)
class Coding:
    """Coding of a structure, besides its name; fields that are None or empty are unknown."""

    # category, type, modifier: segmented property category, type, and type modifier: the side of the body
    category: Code | None = None
    type: Code | None = None
    modifier: Code | None = None
    region: Code | None = None  # anatomic region, for a type that may be anywhere
    colour: Colour | None = None  # (red, green, blue): 0 to 255
    role: str = ""  # RT ROI interpreted type, one of `ROLES`
    label: str = ""  # name in exports, where it is another than the structure's

    def __post_init__(self) -> None:
        if self.colour is not None and not (
            len(self.colour) == 3 and all(0 <= value <= 255 for value in self.colour)
        ):
            raise ValueError(f"the colour {self.colour}; expected red, green and blue, 0 to 255.")
        if not _ROLE.fullmatch(self.role):
            raise ValueError(f"the role {self.role[:20]!r}; expected one such as {', '.join(ROLES[:6])}.")
        if len(self.label) > _LONGEST or any(ord(letter) < 32 for letter in self.label) or "\\" in self.label:
            raise ValueError(f"the name in exports; expected up to {_LONGEST} characters of text.")

    @property
    def specific(self) -> bool:
        """True if the type is more specific than "tissue"."""
        return self.type is not None and not self.type.same_as(TISSUE)


NOTHING_CODED = Coding()


def merged(before: Coding, new: Coding) -> Coding:
    """Fill missing fields of a coding from another; codes that belong together stay together.

    The type "tissue" is replaced by any more specific type.
    """
    codes = before if before.specific or (before.type is not None and not new.specific) else new
    return replace(
        codes,
        colour=before.colour or new.colour,
        role=before.role or new.role,
        label=before.label or new.label,
    )
