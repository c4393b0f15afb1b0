"""Images of clicks with what was found on them, as pictures."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image, ImageDraw

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, counted, plain
from raterscope.app.kinds.clicks.report.counted_image import CountedImage
from raterscope.app.page.contents import Gallery, Picture, Swatch
from raterscope.app.page.pictures import photograph, scale_bar
from raterscope.app.page.units import significant
from raterscope.app.review import Measures
from raterscope.app.study import Study
from raterscope.app.study.places import digest_of_file
from raterscope.figures.colours import DARK

__all__ = ["images_found"]

_SIDE = 560  # pixels of a picture's longer side
_RADIUS = 6
_MOST = 30
"""Images that are shown."""


def images_found(
    study: Study, found: Sequence[CountedImage], measures: Measures, watch: Watch = silent
) -> Gallery | None:
    """Show the images, of many those with the most spots in dispute; None where no file is at hand."""
    order = sorted(range(len(found)), key=lambda at: -int(found[at].disputed.sum()))
    shown = [found[at] for at in sorted(order[:_MOST])]
    pictures = []
    for done, one in enumerate(shown):
        watch(done / len(shown), f"drawing {plain(one.entry.name)}")
        picture = _picture(study, one, measures.pixel_size(one.entry.id, one.entry.pixel_size))
        if picture is not None:
            pictures.append(picture)
    if not pictures:
        return None
    legend = (
        Swatch(DARK.accent, "present: circles"),
        Swatch(DARK.disputed, "in dispute, present or not: squares"),
    )
    lost = len(shown) - len(pictures)
    note = []
    if len(shown) < len(found):
        note.append(f"Of {len(found):,} images those with the most spots in dispute are shown.")
    if lost:
        note.append(f"The files of {counted(lost, 'image')} cannot be read.")
    return Gallery("Images with what was found", pictures, legend, " ".join(note))


def _picture(study: Study, one: CountedImage, pixel_size: float | None) -> Picture | None:
    from raterscope.app.formats.pyramids import is_large, load_overview

    place = study.locate(one.entry)
    if place is None or place.is_dir():
        return None
    try:
        large = is_large(one.entry.width, one.entry.height)  # kept by its content, as the window does
        pixels = load_overview(place, _SIDE, digest_of_file(place) if large else None)
    except (InputError, MemoryError):
        return None
    image = Image.fromarray(pixels).convert("RGB")
    width, height = one.entry.width, one.entry.height
    scale = min(1.0, _SIDE / max(width, height))
    image = image.resize((max(1, round(width * scale)), max(1, round(height * scale))), Image.Resampling.BOX)
    brush = ImageDraw.Draw(image)
    for x, y, present, disputed in zip(
        one.spots.x * scale, one.spots.y * scale, one.spots.present, one.disputed, strict=True
    ):
        if not (present or disputed):
            continue
        draw = brush.rectangle if disputed else brush.ellipse
        for radius, colour, line in (
            (_RADIUS + 1, "#000000", 1),
            (_RADIUS, DARK.disputed if disputed else DARK.accent, 2),
        ):
            draw((x - radius, y - radius, x + radius, y + radius), outline=colour, width=line)
    words = f"{int(one.spots.present.sum()):,} found"
    disputed = int(one.disputed.sum())
    words += f", {disputed:,} in dispute" if disputed else ""
    if pixel_size is not None:
        words += f"; bar {scale_bar(image, scale / pixel_size, 'µm')}"
    elif scale < 1:
        words += f"; shown at {significant(100 * scale, 2)} % of its size"
    return photograph(image, plain(one.entry.name), words)
