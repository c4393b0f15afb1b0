"""Calibration of the probabilities in a report: one plot and one sentence for each result."""

from __future__ import annotations

from collections.abc import Mapping

from raterscope.app.errors import plain
from raterscope.app.page.charts import LINES, draw_lines, paper_line
from raterscope.app.page.contents import Block, Gallery, Notices, Prose, Section
from raterscope.app.trust import Trust, bin_intervals


def trust_section(trusts: Mapping[str, Trust]) -> Section:
    """Compare each result's probabilities with ground truth, by title."""
    blocks: list[Block] = []
    for title, trust in trusts.items():
        words = trust.in_words()
        blocks.append(
            Notices([f"{plain(title)}: {words}"]) if trust.contradicted else Prose([(plain(title), words)])
        )
        if trust.judged:
            sure = trust.calibration
            filled = sure.count > 0
            low, high = bin_intervals(sure)[:, filled] if trust.independent else (None, None)
            line = paper_line(sure.posterior[filled], sure.share[filled], LINES[0], True, low, high)
            shaded = "; shaded: 95 % interval" if trust.independent else ""
            blocks.append(
                Gallery(
                    "",
                    [
                        draw_lines(
                            [line], *trust.axes, "Calibration",
                            f"on the diagonal a probability is right as often as it says{shaded}",
                            diagonal=True,
                        )
                    ],
                )
            )  # fmt: skip
    return Section("How far to trust this", blocks)
