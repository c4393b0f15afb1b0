"""Observer variability of masks in a report: volumes, outlines, readers, and limits of a protocol."""

from __future__ import annotations

from collections.abc import Sequence

from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import plain
from raterscope.app.kinds.masks.outline_differences import (
    OutlineDifferences,
    dice_picture,
    difference_statistics,
    differences_table,
    measure_differences,
)
from raterscope.app.kinds.masks.variability import (
    FLAT,
    Variability,
    measure_variability,
    variability_statistics,
    variability_table,
)
from raterscope.app.page.contents import Block, Gallery, Notices, Section
from raterscope.app.page.variability import (
    Protocol,
    Statistic,
    bias_picture,
    bland_altman_pictures,
    protocol_table,
    readers_table,
)
from raterscope.app.study import Study

_VARIABILITY = "Observer variability"


def variability_section(
    study: Study, items: Sequence[int], protocol: Protocol, watch: Watch = silent
) -> Section:
    """Report the variability of every structure."""
    of_volumes = measure_variability(study, tuple(items), part(watch, 0.0, 0.1))
    of_outlines = measure_differences(study, items, protocol.tolerance, part(watch, 0.1, 0.9))
    volumes = {variability.structure: variability for variability in of_volumes}
    outlines = {differences.structure: differences for differences in of_outlines}
    sections = [
        _structure_section(structure, volumes.get(structure), outlines.get(structure), protocol)
        for structure in dict.fromkeys((*outlines, *volumes))
    ]
    if not sections:
        return Section(_VARIABILITY, [Notices(["No structure was marked by two raters."])])
    if len(sections) == 1:
        return Section(_VARIABILITY, sections[0].blocks, breaks=True)
    return Section(_VARIABILITY, sections=sections, breaks=True)


def _structure_section(
    structure: str, volumes: Variability | None, outlines: OutlineDifferences | None, protocol: Protocol
) -> Section:
    blocks: list[Block] = []
    statistics: list[Statistic] = []
    pictures = []
    if outlines is not None:
        blocks.append(differences_table(outlines))
        statistics += difference_statistics(outlines)
        forest = dice_picture(outlines)
        pictures += [] if forest is None else [forest]
    if volumes is not None:
        blocks.append(variability_table(volumes))
        statistics += variability_statistics(volumes)
        quantity = "Area" if volumes.unit in FLAT else "Volume"
        if volumes.readers is not None:
            blocks.append(readers_table(volumes.readers, quantity, volumes.unit))
            pictures.append(bias_picture(volumes.readers, quantity, volumes.unit))
        pictures += bland_altman_pictures(volumes.measurements, quantity, volumes.unit)
    limits = protocol_table(protocol, statistics)
    if limits is not None:
        blocks.insert(0, limits)
    if pictures:
        blocks.append(Gallery("Readers compared", pictures))
    return Section(plain(structure), blocks)
