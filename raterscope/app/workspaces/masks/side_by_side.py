"""Two runs, raters, programs or maps on the slices, left and right of a movable divider."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from raterscope.algorithms.masks.fusion import CaseResult
from raterscope.algorithms.progress import Watch
from raterscope.app.contents import Contents
from raterscope.app.review import Region
from raterscope.app.session import LatestTask
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.runs import run_title
from raterscope.app.workspaces.masks import view
from raterscope.app.workspaces.masks.raters import Raters
from raterscope.app.workspaces.masks.region_review import RegionReview
from raterscope.app.workspaces.masks.scene import Piece, Scene, consensus_of
from raterscope.app.workspaces.masks.screen import MAPS, MasksCore, MasksPart
from raterscope.widgets.divider import Side
from raterscope.widgets.panels.task_panel import PROGRAM
from raterscope.widgets.volume.scene import HeatMap, Layers, Outline

COMPARED_MAPS = ("disagreement", "doubt", "another", "truth", "uncertainty", "probability")
"""Maps that need no selected rater."""

Results = Mapping[int, tuple[RunEntry, CaseResult]]
"""Results of the case by run."""

RUN, RATER, TRUTH, MAP = "run", "rater", "truth", "map"
Choice = tuple[str, str]
"""Content of a side: run, rater, truth or map, with its number or name."""


class SideBySide(MasksPart):
    """Two runs, raters or maps on the slices, until another case is shown."""

    def __init__(self, core: MasksCore, reviewing: RegionReview, raters: Raters) -> None:
        super().__init__(core)
        self._reviewing, self._raters = reviewing, raters
        self._volume = core.screen.volume
        self._task = LatestTask()
        self._chosen: tuple[Choice, Choice] | None = None
        self._results: dict[int, tuple[RunEntry, CaseResult]] = {}
        """Results of the case read so far, without that of the run on screen."""
        self._volume.divider.side_chosen.connect(self._on_side_chosen)
        reviewing.consensus_changed.connect(self._refresh)
        core.session.view_changed.connect(self._on_view)
        core.session.scene_changed.connect(self._on_scene)
        core.session.cleared.connect(self.leave)

    @property
    def on(self) -> bool:
        """Whether two sides are shown."""
        return self._chosen is not None

    def leave(self) -> None:
        """Show all outlines on the whole slices again."""
        self._task.cancel()
        self._chosen = None
        self._results.clear()
        self._volume.set_sides(None)

    def toggle(self) -> None:
        """Show two sides, initially the run on screen and the latest other run; or one side again."""
        if self.on:
            self.leave()
            return
        if not self._session.shown or self._session.covered:
            self._screen.message.emit("Show a case outside blind mode first.")
            return
        empty = {(RATER, name) for name in self._session.scene.nothing.get(self._session.part, ())}
        shown = [choice for choice in self._choices() if choice[0] != MAP and choice not in empty]
        if len(shown) < 2:
            self._screen.message.emit("Comparing needs two masks of this structure. Import or fuse another.")
            return
        left = self._run_on_screen() or shown[0]
        others = [choice for choice in shown if choice != left]
        runs = [choice for choice in others if choice[0] == RUN]
        self._show(left, max(runs, key=lambda choice: int(choice[1]), default=others[0]))

    def _run_on_screen(self) -> Choice | None:
        run = self._session.scene.run
        return None if run is None else (RUN, str(run.id))

    def _choices(self) -> dict[Choice, str]:
        """Return the possible contents of a side, with their labels."""
        contents, scene, structure = self._document.contents, self._session.scene, self._session.part
        choices = {} if contents is None else _runs(contents, scene)
        about = dict.fromkeys(scene.nothing.get(structure, ()), f", {view.DREW_NOTHING}")
        about |= dict.fromkeys(scene.programs.get(structure, {}), PROGRAM)
        choices |= {(RATER, name): f"{name}{about.get(name, '')}" for name in scene.drawn(structure)}
        if structure in scene.truth:
            choices[TRUTH, ""] = view.TRUTH
        return choices | {(MAP, name): f"map: {MAPS[name]}" for name in COMPARED_MAPS}

    def _on_scene(self, scene: Scene) -> None:
        previous = self._session.previous
        if previous is None or previous.image.id != scene.image.id:
            self.leave()

    def _on_view(self) -> None:
        """Show another structure or run on both sides."""
        if self._session.covered:
            self.leave()
        else:
            self._refresh()

    def _refresh(self) -> None:
        if self._chosen is not None and self._session.shown:
            choices = self._choices()
            if all(choice in choices for choice in self._chosen):
                self._show(*self._chosen)
            else:
                self.leave()

    def _on_side_chosen(self, right: int, name: str) -> None:
        kind, _, what = name.partition(" ")
        if self._chosen is not None:
            left_choice, right_choice = self._chosen
            chosen = (kind, what)
            self._show(*((left_choice, chosen) if right else (chosen, right_choice)))

    def _show(self, left: Choice, right: Choice) -> None:
        scene = self._session.scene
        self._chosen = left, right
        runs = {int(name) for kind, name in (left, right) if kind == RUN}
        shown = None if scene.run is None else scene.run.id
        missing = runs - self._results.keys() - {shown}
        if missing:
            job = self._document.ask("Reading another run", partial(_read, scene.image.id, tuple(missing)))
            self._task.follow(job, self._on_read, failed=self._on_failed)
        else:
            self._draw()

    def _on_read(self, results: Results) -> None:
        self._results |= results
        self._draw()

    def _on_failed(self, sentence: str) -> None:
        self.leave()
        self._screen.refused.emit(sentence)

    def _draw(self) -> None:
        scene, structure = self._session.scene, self._session.part
        if self._chosen is None:
            return
        regions = self._document.review.regions(scene.image.id)
        colours, chosen = self._document.numbers, self._raters.current
        drawn = {outline.key: outline for outline in view.outlines(scene, structure, None, colours, chosen)}
        shown = None if scene.run is None else scene.run.id
        sides: list[tuple[Callable[[], Outline | None], str]] = []
        for kind, name in self._chosen:
            outline: Callable[[], Outline | None] = partial(_consensus, None)
            if kind == RUN and int(name) == shown:
                outline = partial(_consensus, self._reviewing.consensus)
            elif kind == RUN and int(name) in self._results:
                run, result = self._results[int(name)]
                outline = partial(_fused, replace(scene, run=run, result=result), structure, regions)
            elif kind != MAP:
                outline = partial(drawn.get, name or f"\n{view.TRUTH}")
            sides.append((outline, name if kind == MAP else "none"))
        job = self._jobs.start("Making maps", partial(_make_sides, scene, structure, sides), quiet=True)
        self._task.follow(job, self._on_made, failed=self._on_failed)

    def _on_made(self, made: Sequence[tuple[Outline | None, HeatMap | None, str]]) -> None:
        if self._chosen is None:
            return
        words = self._choices()
        choices = tuple((f"{kind} {name}", title) for (kind, name), title in words.items())
        left, right = (
            Layers(
                words.get(choice, choice[1]),
                () if outline is None else (replace(outline, key=f"\nside {side}"),),
                heat,
            )
            for side, (choice, (outline, heat, _)) in enumerate(zip(self._chosen, made, strict=True))
        )
        self._volume.set_sides((Side(left.title, choices), Side(right.title, choices)), (left, right))
        reason = next((reason for *_, reason in made if reason), "")
        if reason:
            self._screen.message.emit(reason)


def _runs(contents: Contents, scene: Scene) -> dict[Choice, str]:
    return {
        (RUN, str(run.id)): f"run {run.id}: {run_title(run)}"
        for run in contents.runs_of("masks")
        if scene.image.id in run.items
    }


def _consensus(piece: Piece | None) -> Outline | None:
    if piece is None or not piece.values.any():
        return None
    return view.consensus_outline(piece)


def _read(image: int, runs: tuple[int, ...], study: Study, watch: Watch) -> Results:
    results = {}
    for done, run in enumerate(runs):
        watch(done / len(runs), "reading")
        entry, result = study.shown.run_and_result(image, "masks", run)
        if entry is not None and result is not None:
            results[run] = entry, result
    return results


def _fused(scene: Scene, structure: str, regions: list[Region]) -> Outline | None:
    return _consensus(consensus_of(scene, structure, regions))


def _make_sides(
    scene: Scene, structure: str, sides: Sequence[tuple[Callable[[], Outline | None], str]], watch: Watch
) -> list[tuple[Outline | None, HeatMap | None, str]]:
    """Make the outline and the map of each side; return also why a map cannot be shown."""
    watch(0.0, "making maps")
    return [(outline(), *view.heat_map(scene, structure, name, None, None)) for outline, name in sides]
