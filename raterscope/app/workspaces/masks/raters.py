"""Raters of the case on screen, compared and excluded; alternative consensuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal

from raterscope.algorithms.annotators.similarity import CaseAgreement, RaterTree, cluster_raters
from raterscope.algorithms.masks.catalogue import fuser_title
from raterscope.algorithms.masks.data import BoolArray, MaskFusion
from raterscope.algorithms.progress import Watch
from raterscope.app.contents import Contents
from raterscope.app.errors import plain
from raterscope.app.kinds.masks.annotators import (
    CONSENSUS,
    DICE,
    ConsensusChange,
    FusedCase,
    agreements_of_runs,
    fuse_without,
    gather_case,
)
from raterscope.app.review import Decision
from raterscope.app.session import LatestTask, while_shown
from raterscope.app.study import RunEntry
from raterscope.app.workspaces.annotator_decisions import PreviewedExclusion
from raterscope.app.workspaces.masks import view
from raterscope.app.workspaces.masks.scene import Piece, Scene
from raterscope.app.workspaces.masks.screen import MasksCore, MasksPart
from raterscope.text import counted
from raterscope.widgets.canvas.tiles import to_picture
from raterscope.widgets.dialogs.review_dialogs import ExclusionDialog
from raterscope.widgets.layouts import DeferredContent
from raterscope.widgets.panels.exclusion_panel import Change, ExclusionPanel
from raterscope.widgets.panels.rater_panels import AlternativeCard, AlternativesPanel

UNITS = {DICE: (1.0, "Dice distance"), CONSENSUS: (100.0, "% of cases apart")}

NO_MIXTURE = (
    "Fuse with the mixture of consensuses to see which raters follow the same consensus over the cases."
)


class Raters(MasksPart):
    """Controller of rater table, matrix and dendrogram, which share the selection of a rater or pair."""

    chosen = Signal(object)
    pair_chosen = Signal(str, str)

    def __init__(self, core: MasksCore) -> None:
        super().__init__(core)
        self._task = LatestTask()
        self.current: str | None = None
        self.pair: tuple[str, str] | None = None
        self._names: set[str] = set()
        self._tree: _Clustered | None = None
        self._deferred_model = DeferredContent(core.screen.model_table)
        core.screen.table.selected.connect(self.choose)
        core.screen.region_panel.votes.chosen.connect(self.choose)
        core.screen.volume.outline_clicked.connect(self._on_outline)
        core.screen.model_table.selected.connect(self.choose)
        core.screen.volume.crosshair_moved.connect(self._request_model)
        core.screen.matrix.figure.chosen.connect(self._on_pair)
        core.screen.tree.figure.chosen.connect(self._on_branch)
        core.screen.tree_panel.basis_chosen.connect(self._on_basis)
        core.session.view_changed.connect(self._on_view)
        core.session.cleared.connect(self._clear)

    def _clear(self, reason: str = "") -> None:
        screen = self._screen
        self._task.cancel()
        self._deferred_model.cancel()
        for widget in (screen.table, screen.model_table, screen.matrix, screen.tree, screen.alternatives):
            widget.set_nothing(reason)
        screen.model_table.set_rows(())
        screen.table.set_rows([])
        screen.matrix.set_matrix((), (), np.zeros((0, 0)))
        screen.tree.set_tree(np.zeros((0, 4)), (), ())

    @while_shown
    def refresh(self) -> None:
        """Update the excluded raters after a decision."""
        self._on_view(self._session.scene)

    def _on_view(self, scene: Scene) -> None:
        """Show another case, run or structure; nothing while it is covered."""
        contents, screen, structure = self._document.contents, self._screen, self._session.part
        if contents is None or self._session.covered:
            self._clear(view.HIDDEN)
            if self.current is not None:
                self.choose(None)
            return
        self._task.cancel()
        for widget in (screen.table, screen.model_table, screen.matrix, screen.tree, screen.alternatives):
            widget.set_nothing("")
        self._request_model()
        numbers = contents.numbers
        excluded = contents.review.excluded
        unit = scene.image.lattice.length_unit
        self._screen.table.set_rows(view.rater_rows(scene, structure, numbers, excluded), unit)
        report, fusion = scene.report(structure), scene.fusion(structure)
        names = () if fusion is None else fusion.annotators
        agreement = np.zeros((0, 0)) if report is None else report.pair_dice
        if len(names) == 1:
            self._screen.matrix.set_nothing("This case has one rater.")
        self._screen.matrix.set_matrix(names, [numbers.get(name, 0) for name in names], agreement)
        self._names = set(names)
        self._show_tree(contents)
        masks = {**scene.excluded.get(structure, {}), **scene.drawn(structure)}
        if self.current is not None and self.current not in masks:
            self.choose(None)
        elif self.current is not None:
            self._mark()

    def _request_model(self) -> None:
        self._deferred_model.request(self._show_model)

    @while_shown
    def _show_model(self) -> None:
        """Show the model's estimates for each rater, with tau at the crosshair."""
        contents, scene, structure = self._document.contents, self._session.scene, self._session.part
        fusion = None if self._session.covered else scene.fusion(structure)
        if contents is None or fusion is None:
            self._screen.model_table.set_rows(())
            return
        rows = view.model_rows(scene, structure, contents.numbers, self._screen.volume.crosshair)
        if not rows:
            self._screen.model_table.set_nothing(view.no_model(fusion))
        unit = scene.image.lattice.length_unit
        self._screen.model_table.set_rows(rows, unit, fuser_title(fusion.algorithm))
        self._screen.model_table.select(self.current)

    def choose(self, name: str | None) -> None:
        """Select a rater everywhere, or none."""
        self.current = name
        self._mark()
        self.chosen.emit(name)

    def _on_outline(self, key: str) -> None:
        if not key.startswith("\n"):
            self.choose(key)

    def _on_pair(self, first: str, second: str) -> None:
        if first == second:
            self.choose(first)
        else:
            self.pair = (first, second)
            self.pair_chosen.emit(first, second)

    def _on_branch(self, names: tuple[str, ...]) -> None:
        if len(names) == 1:
            self.choose(names[0])
        elif len(names) == 2:
            self._on_pair(names[0], names[1])

    def _mark(self) -> None:
        self._screen.table.select(self.current)
        self._screen.model_table.select(self.current)
        self._screen.matrix.select(self.current)
        self._screen.region_panel.votes.choose(self.current)
        self._screen.tree.select((self.current,) if self.current else ())

    def _on_basis(self, _basis: str) -> None:
        contents = self._document.contents
        if contents is not None and self._names:
            self._task.cancel()
            self._show_tree(contents)

    def _show_tree(self, contents: Contents) -> None:
        """Show the dendrogram of the raters who share cases with the raters of this case."""
        basis, runs = self._screen.tree_panel.basis, contents.runs_of("masks")
        key = contents.path, tuple(run.id for run in runs), basis, frozenset(self._names)
        if self._tree is not None and self._tree[0] == key:
            self._on_tree(contents.numbers, self._tree)
        else:
            work = partial(_cluster_sharing, key, runs)
            job = self._jobs.start("Joining raters", work, quiet=True)
            self._task.follow(job, partial(self._on_tree, contents.numbers))

    def _on_tree(self, numbers: Mapping[str, int], clustered: _Clustered) -> None:
        self._tree = clustered
        (_, _, basis, _), cases, tree = clustered
        if basis == CONSENSUS and tree is None:
            self._screen.tree.set_nothing(NO_MIXTURE)
        self._screen.tree.set_title(f"Raters over {cases} case{'' if cases == 1 else 's'}")
        if tree is None:
            self._screen.tree.set_tree(np.zeros((0, 4)), (), ())
            return
        scale, unit = UNITS[basis]
        leaves = [numbers.get(name, 0) for name in tree.names]
        linkage = tree.linkage * (1.0, 1.0, scale, 1.0)
        self._screen.tree.set_tree(linkage, tree.names, leaves, "complete linkage", unit)
        self._screen.tree.select((self.current,) if self.current else ())


_Key = tuple[Path, tuple[int, ...], str, frozenset[str]]
"""Inputs of a tree: study, runs, basis and raters."""
_Clustered = tuple[_Key, int, RaterTree | None]
"""A tree with the number of its cases; None without cases."""


def _cluster_sharing(key: _Key, runs: Sequence[RunEntry], watch: Watch) -> _Clustered:
    watch(0.0, "joining raters")
    _, _, basis, names = key
    tables = _sharing(agreements_of_runs(runs, basis), set(names))
    return key, len(tables), cluster_raters(tables) if tables else None


def _sharing(tables: list[CaseAgreement], names: set[str]) -> list[CaseAgreement]:
    """Keep the cases connected to these raters: annotated by them, or by raters connected to them."""
    connected, count = set(names), -1
    while len(connected) != count:
        count = len(connected)
        for table in tables:
            if connected & set(table.annotators):
                connected |= set(table.annotators)
    return [table for table in tables if connected & set(table.annotators)]


_GROUND, _OTHER, _SHOWN = 34, 96, 235
"""Greys of a card's picture: background, only in another consensus, in this consensus."""


class Alternatives(QObject):
    """Cards of the alternative consensuses of the fusion."""

    shown = Signal(object)  # consensus to draw; None for that of the fusion

    def __init__(self, panel: AlternativesPanel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._panel = panel
        self._fusion: MaskFusion | None = None
        panel.alternative_chosen.connect(self._on_chosen)

    def show(self, fusion: MaskFusion | None, numbers: Mapping[str, int]) -> None:
        """Show another fusion."""
        self._fusion = fusion
        self._panel.set_alternatives([] if fusion is None else _cards(fusion, numbers))

    def _on_chosen(self, index: int) -> None:
        if self._fusion is not None and index < len(self._fusion.alternatives):
            self.shown.emit(Piece(self._fusion.origin, self._fusion.alternatives[index].mask[0]))


def _cards(fusion: MaskFusion, numbers: Mapping[str, int]) -> list[AlternativeCard]:
    if not fusion.alternatives:
        return []
    masks = np.stack([member.mask[0] for member in fusion.alternatives])
    # The slice on which the consensuses differ most
    differ = (masks != masks[0]).any(axis=0).sum(axis=(1, 2))
    at = int(differ.argmax())
    cards = []
    for number, alternative in enumerate(fusion.alternatives, start=1):
        members = sorted(
            zip(fusion.annotators, alternative.responsibility.tolist(), strict=True),
            key=lambda member: -member[1],
        )
        cards.append(
            AlternativeCard(
                title=f"Consensus {number}",
                weight=alternative.weight,
                members=[(name, numbers.get(name, 0), share) for name, share in members],
                picture=to_picture(_picture(alternative.mask[0, at], np.any(masks[:, at], axis=0))),
            )
        )
    return cards


def _picture(consensus: BoolArray, any_consensus: BoolArray) -> NDArray[np.uint8]:
    grey = np.where(consensus, _SHOWN, np.where(any_consensus, _OTHER, _GROUND)).astype(np.uint8)
    rows, columns = np.flatnonzero(any_consensus.any(axis=1)), np.flatnonzero(any_consensus.any(axis=0))
    if not len(rows):
        return grey
    return grey[max(rows[0] - 2, 0) : rows[-1] + 3, max(columns[0] - 2, 0) : columns[-1] + 3]


REASONS = ("draws something else", "always too large", "always too small", "unfinished")
NOT_FUSED = "Press Fuse (F5) first to preview what would change."
NOT_IN_RUN = "The run shown does not include masks of this rater for this case."


@dataclass(frozen=True)
class _Preview:
    """Structures of the case whose consensus would change."""

    structures: tuple[ConsensusChange, ...]

    def summary(self) -> str:
        changed = sum(structure.changed for structure in self.structures)
        total = counted(sum(structure.before for structure in self.structures), "voxel")
        return (
            f"would change {f'{changed:,}' if changed else 'none'} of {total} of the consensus on this case"
        )

    def changes(self) -> Sequence[Change]:
        return [
            Change(key, plain(change.structure), f"{change.before:,}", f"{change.after:,}")
            for key, change in enumerate(self.structures)
            if change.changed
        ]


class Exclusion(MasksPart):
    """Exclusion of raters after a preview, and restoring."""

    message = Signal(str)

    def __init__(self, core: MasksCore) -> None:
        super().__init__(core)
        self._name = ""
        self._excluding = PreviewedExclusion(core.document, self._show, lambda: None, core.kind)
        core.screen.table.exclude_requested.connect(self.exclude)
        core.screen.table.include_requested.connect(self.include)

    def include(self, name: str) -> None:
        """Restore a rater."""
        self._document.record(Decision(verb="include", annotators=(name,)))

    def exclude_chosen(self) -> None:
        """Open the dialog for the rater selected in the table, or restore an excluded one."""
        table = self._screen.table
        if table.current is None:
            self.message.emit("Select a rater in the table (1 to 9), then press X.")
        else:
            table.exclude_current()

    def exclude(self, name: str) -> None:
        """Preview the fusion without a rater, and ask for a reason to exclude them."""
        self._name = name
        dialog = ExclusionDialog(
            name, self._screen.window(), reasons=REASONS, marks="masks", answers="structures"
        )
        self._excluding.open(dialog, (name,))

    def _show(self, panel: ExclusionPanel) -> None:
        scene = self._session.scene if self._session.shown else None
        if scene is None or scene.run is None or scene.result is None:
            panel.show_unknown(NOT_FUSED)
            return
        job = self._document.ask("Reading the masks", partial(gather_case, scene.run.id, scene.image.id))
        self._excluding.follow("reading the masks", job, self._on_gathered)

    def _on_gathered(self, panel: ExclusionPanel, fused: FusedCase | None) -> None:
        names = (self._name,)
        if fused is None or not any(fused.drew(structure, names) for structure in fused.case.records):
            panel.show_unknown(NOT_IN_RUN)
            return
        job = self._jobs.start("Fusing without a rater", partial(fuse_without, fused, names))
        self._excluding.follow("fusing", job, self._on_fused)

    def _on_fused(self, panel: ExclusionPanel, structures: tuple[ConsensusChange, ...]) -> None:
        panel.show_preview(_Preview(structures))
