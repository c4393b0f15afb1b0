"""Section of the report on several experts: whose reads were merged, and how far they agree."""

from __future__ import annotations

from raterscope.app.errors import plain
from raterscope.app.page.contents import Block, Prose, Section, Table
from raterscope.app.study import Study
from raterscope.app.study.expert_agreement import ExpertAgreement, Interval, read_agreement
from raterscope.text import percent

_COLUMNS = (
    "Kind", "First", "Second", "Decided by both", "Alike", "Kappa (95 % interval)", "Alpha (95 % interval)",
    "Dice (95 % interval)",
)  # fmt: skip
_ABOUT = (
    "Of each expert the last verdict counts, before differences were settled. Cohen's kappa and "
    "Krippendorff's alpha are of subjects, Dice is of the voxels that both settled. Intervals are of the "
    "bootstrap, for Dice over the structures of all cases."
)


def experts_section(study: Study) -> Section | None:
    """Describe the merged reads and the agreement of the experts; None for a study of one expert."""
    reads, agreements = study.settings.reads(), list(read_agreement(study))
    if not (reads or agreements):
        return None
    blocks: list[Block] = [Prose([("Merged", f"{plain(read.in_words(), 300)}.") for read in reads])]
    if agreements:
        rows = [
            (kind.capitalize(), plain(first, 40), plain(second, 40), *_cells(agreement))
            for kind, first, second, agreement in agreements
        ]
        used = [at for at in range(len(_COLUMNS)) if at < 5 or any(row[at] for row in rows)]
        blocks.append(
            Table(
                "Agreement between experts", [_COLUMNS[at] for at in used],
                [[row[at] for at in used] for row in rows], _ABOUT, frozenset({0, 1, 2}),
            )
        )  # fmt: skip
    return Section("Several experts", blocks)


def _cells(agreement: ExpertAgreement) -> tuple[str, ...]:
    voxels = "" if agreement.kappa.in_words() or not agreement.dice.in_words() else " voxels"
    return (
        f"{agreement.count:,}{voxels}", percent(agreement.alike), _brief(agreement.kappa),
        _brief(agreement.alpha), _brief(agreement.dice),
    )  # fmt: skip


def _brief(value: Interval) -> str:
    return value.in_words().replace("95 % interval ", "")
