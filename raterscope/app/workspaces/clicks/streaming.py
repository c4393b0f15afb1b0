"""Streams of clicks on screen: live watching of a source, or replay of the clicks of one image."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QCursor
from PySide6.QtWidgets import QFileDialog

from raterscope.algorithms.clicks.image_priors import Experience, experience_of
from raterscope.algorithms.clicks.stopping import count_changes
from raterscope.algorithms.clicks.stream import StreamPlan
from raterscope.algorithms.evaluation import RADIUS
from raterscope.algorithms.progress import Watch
from raterscope.algorithms.settings import SettingsError
from raterscope.app.errors import plain
from raterscope.app.formats import UnknownColumns
from raterscope.app.formats.points.tables import FIELDS
from raterscope.app.kinds.clicks.live_source import LiveSource, WatchRequest
from raterscope.app.kinds.clicks.live_watching import Order, WatchedImage, WatchPlan
from raterscope.app.review import known_spots
from raterscope.app.study import Study, streams
from raterscope.app.workspaces.clicks.click_streams import LiveWatch, Replay
from raterscope.app.workspaces.clicks.scene import Scene
from raterscope.app.workspaces.clicks.screen import ClicksCore, ClicksPart
from raterscope.app.workspaces.clicks.spots import ImageResult, Settling
from raterscope.app.workspaces.review_queue import ReviewQueue
from raterscope.figures.courses import StreamTruth
from raterscope.text import counted
from raterscope.widgets.dialogs.import_dialogs import ColumnMappingDialog, MappingField, TableKind
from raterscope.widgets.panels.stream_panel import LiveLine, ReplayLine
from raterscope.widgets.parts import Menu

SOURCES = "Clicks (*.csv *.tsv *.txt *.json *.jsonl *.ndjson);;All files (*)"
MAX_STEPS = 60
"""Maximum number of steps of a replay, unless a number of annotators per step is chosen."""
CUT_SHORT = "The study was closed while it was watched."
REPLAYED, WATCHED = "Replay", "Watching"
NO_CLICKS = "No image with clicks is on screen."


class Streaming(ClicksPart):
    """Controller of a stream's panel and curves, for the watched source or the replay."""

    moved = Signal()  # the scene on screen must be shown again, see `with_stream_state`

    def __init__(self, core: ClicksCore, review_queue: ReviewQueue) -> None:
        super().__init__(core)
        self._review_queue = review_queue
        self.as_read: Scene | None = None
        """Scene on screen as read from the study, without changes by a stream or replay."""
        self._order: Order = "random"
        self._seed = 0
        self._per_step = 1
        self._source: streams.StreamEntry | None = None
        self.live = LiveWatch(core.document, core.jobs, self)
        self.replay = Replay(core.jobs, self)
        core.document.replaced.connect(self._on_replaced)
        core.session.cleared.connect(self._clear)
        panel = core.screen.stream
        panel.offers.replay.clicked.connect(self._on_replay_requested)
        panel.replay.order.chosen.connect(self._on_order_chosen)
        panel.replay.batch_chosen.connect(self._on_batch_chosen)
        panel.leave.clicked.connect(self.leave_replay)
        panel.replay.play_toggled.connect(self.replay.play)
        panel.replay.position_chosen.connect(self.replay.go_to)
        panel.replay.speed_chosen.connect(self._on_speed_chosen)
        panel.replay.shuffle.clicked.connect(self._on_shuffle_requested)
        panel.offers.watch.clicked.connect(self._on_watch_requested)
        panel.offers.resume.clicked.connect(self._on_resume_requested)
        panel.live.pause_toggled.connect(self.live.pause)
        panel.live.stop.clicked.connect(self.live.stop)
        panel.stopping_changed.connect(self._on_stopping_changed)
        core.screen.curves.figure.chosen.connect(self.replay.go_to)
        review_queue.all_read.connect(self._on_queue_read)
        self.replay.changed.connect(self._show_state)
        self.replay.moved.connect(self.moved)
        self.replay.refused.connect(core.screen.refused)
        self.live.changed.connect(self._show_state)
        self.live.stepped.connect(self._on_stepped)
        self.live.advanced.connect(self._on_advanced)
        self.live.noticed.connect(core.screen.message)
        self.live.refused.connect(self._on_refused)
        self.live.columns_unknown.connect(self._ask_columns)
        self.live.stopped.connect(self._on_stopped)
        self._on_replaced()

    @property
    def plan(self) -> WatchPlan:
        """Plan of a stream, with the stop rule of the panel."""
        return WatchPlan(stopping=self._screen.stream.stopping)

    def _clear(self) -> None:
        self.replay.leave()
        self.as_read = None
        self._show_state()

    def with_stream_state(self, scene: Scene) -> Scene:
        """Return a scene with the state of the stream or replay, or unchanged without one."""
        if self.replay.on and (self.as_read is None or scene.image.id != self.as_read.image.id):
            self.replay.leave()
        self.as_read = scene
        self._show_state()
        if self.replay.waiting is not None:
            return self._replayed(scene)
        watched = self._watched(scene.image.id)
        following = self.live.following
        if watched is None or following is None:
            return scene
        clicks = following.clicks(scene.image.id)
        names = self._document.contents.annotators if self._document.contents else ()
        if not set(names).issuperset(clicks.annotators):  # the study is still being read
            return scene
        note = f"watching {plain(following.request.source.name, 80)}, {_stop_rule(watched)}"
        note += "" if following.is_settled_image(scene.image.id) else ", not settled"
        return replace(scene, clicks=clicks, fusion=watched.fusion, run=None, stream_note=note)

    def _replayed(self, scene: Scene) -> Scene:
        waiting, position = self.replay.waiting, self.replay.position
        assert waiting is not None
        clicks = waiting.clicks(position)
        fusion = self.replay.steps[position - 1].fusion if position else None
        note = f"replay, {len(clicks.annotators):,} of {counted(len(waiting.names), 'annotator')}"
        return replace(scene, clicks=clicks, fusion=fusion, run=None, stream_note=note, replayed=True)

    def _replay_notice(self) -> str:
        """State how far the last step of a replay differs from the run; empty elsewhere."""
        scene, replay = self.as_read, self.replay
        if scene is None or scene.fusion is None or scene.run is None or not replay.at_end:
            return ""
        changed = count_changes(scene.fusion, replay.steps[-1].fusion)
        if not changed:
            return ""
        are = "decision differs" if changed == 1 else "decisions differ"
        return (
            f"{changed:,} {are} from run {scene.run.id}, which detected "
            f"{counted(int(scene.fusion.detection.detected.sum()), 'structure')} here. A replay follows one "
            "image and uses your present decisions; a run fuses all images together."
        )

    def _watched(self, image: int) -> WatchedImage | None:
        following = self.live.following
        return None if following is None else following.watched.get(image)

    def _show_tabs(self) -> None:
        self._screen.left_tabs.setCurrentWidget(self._screen.stream)
        self._screen.middle_tabs.setCurrentWidget(self._screen.curves)

    # Replay

    def _on_replay_requested(self) -> None:
        scene = self.as_read
        if scene is None or not len(scene.clicks.annotators):
            self._screen.message.emit("There are no clicks to replay.")
            return
        count = len(scene.clicks.annotators)
        self._order = "random" if scene.clicks.time is None else "time"
        self._per_step = -(-count // MAX_STEPS)
        self._show_tabs()
        self._replay()

    def _replay(self) -> None:
        if self.as_read is not None:
            scene, contents = self.as_read, self._document.contents
            clicks, truth = scene.clicks, scene.truth
            radius = RADIUS if contents is None else contents.matching_radius
            if contents is not None:
                clicks = replace(clicks, known=known_spots(contents.review.spots(scene.image.id)))
            self.replay.start(
                clicks, self._order, self._per_step, self._seed, self._plan_of(scene), truth, radius,
                self._experience_for(scene),
            )  # fmt: skip
            self.moved.emit()

    def _plan_of(self, scene: Scene) -> WatchPlan:
        """Return the plan of a replay: the plan of the run on screen if that can be replayed."""
        if scene.run is None:
            return self.plan
        try:
            return replace(self.plan, stream=StreamPlan.from_dict(scene.run.settings))
        except SettingsError:
            self._screen.message.emit(
                "The replay uses OEM and DEM, unlike the run: its detections may differ."
            )
            return self.plan

    def _experience_for(self, scene: Scene) -> Callable[[], Experience]:
        """Return a function that computes the experience from the other images of the latest runs."""
        results = [
            (result.fusion, result.annotators, result.weights)
            for image, result in self._review_queue.results.items()
            if image != scene.image.id and result.fusion is not None
        ]
        fusions, names, weights = ([result[part] for result in results] for part in range(3))
        return partial(experience_of, fusions, names, weights=weights)

    def _on_order_chosen(self, order: Order) -> None:
        self._order = order
        self._replay()

    def _on_shuffle_requested(self) -> None:
        self._seed += 1
        self._replay()

    def _on_batch_chosen(self, annotators: int) -> None:
        self._per_step = annotators
        self._replay()

    def _on_speed_chosen(self, speed: float) -> None:
        self.replay.set_speed(speed)
        self._show_state()

    def leave_replay(self) -> None:
        """Show the last fusion again."""
        self.replay.leave()
        self._screen.message.emit("")
        self.moved.emit()

    # Watched source

    def _on_watch_requested(self) -> None:
        menu = Menu(self._screen)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction("A file\N{HORIZONTAL ELLIPSIS}").triggered.connect(self._on_file_requested)
        menu.addAction("A folder\N{HORIZONTAL ELLIPSIS}").triggered.connect(self._on_folder_requested)
        menu.popup(QCursor.pos())

    def _on_file_requested(self) -> None:
        name, _ = QFileDialog.getOpenFileName(self._screen, "Watch a file", "", SOURCES)
        if name:
            self.watch(Path(name))

    def _on_folder_requested(self) -> None:
        name = QFileDialog.getExistingDirectory(self._screen, "Watch a folder")
        if name:
            self.watch(Path(name))

    def watch(self, source: Path) -> None:
        """Watch a file or a folder, and import its clicks."""
        if self._document.contents is None:
            self._screen.message.emit("Open or create a study first. New clicks are stored in it.")
            return
        self._follow(WatchRequest(source, self.plan, {}))

    def _follow(self, request: WatchRequest) -> None:
        self.replay.leave()
        self._show_tabs()
        self.live.start(request)

    def _on_resume_requested(self) -> None:
        if self._source is not None:
            mapping = self._source.settings.get("mapping")
            columns = mapping if isinstance(mapping, dict) else {}
            self._follow(WatchRequest(self._source.source, self.plan, columns))

    def _on_stopped(self, run: int | None) -> None:
        self._show_runs_in_queue()
        outcome = f"its result is stored as run {run}" if run is not None else "it contained no clicks"
        self._screen.message.emit(f"The source is no longer watched; {outcome}.")

    def _on_refused(self, sentence: str) -> None:
        self._screen.refused.emit(sentence)
        if self._document.contents is not None:
            self._show_runs_in_queue()

    def _on_replaced(self) -> None:
        self.live.forget()
        self.replay.leave()
        self._source = None
        if self._document.contents is not None:
            self._look_for_source()
        self._show_state()

    def _show_runs_in_queue(self) -> None:
        """Show the results of runs in the queue again, and offer to resume the source."""
        self._look_for_source()
        if self._document.contents is not None:
            self._review_queue.reread([entry.id for entry in self._document.items("clicks")])

    def _look_for_source(self) -> None:
        job = self._document.ask("Looking for watched sources", _streams)
        job.finished.connect(self._on_sources)

    def _on_sources(self, entries: Sequence[streams.StreamEntry]) -> None:
        self._source = max(entries, key=lambda entry: entry.seen, default=None)
        self._show_state()

    def _ask_columns(self, request: WatchRequest, unknown: UnknownColumns) -> None:
        fields = tuple(MappingField(name, words, needed) for name, words, needed in FIELDS)
        kind = TableKind("clicks", fields, unknown.guess)
        file = request.source if unknown.file is None else unknown.file
        dialog = ColumnMappingDialog(
            unknown.header, unknown.rows, (kind,), 0, file.name, parent=self._screen.window()
        )
        dialog.accepted.connect(partial(self._on_mapped, request, dialog))
        dialog.open()
        self._show_runs_in_queue()

    def _on_mapped(self, request: WatchRequest, dialog: ColumnMappingDialog) -> None:
        mapping = dict.fromkeys(dialog.header, "ignore") | dialog.mapping
        self._follow(replace(request, mapping=mapping))

    def _on_stopping_changed(self) -> None:
        """Apply another stop rule; a replay is computed again."""
        following = self.live.following
        if following is not None:
            following.request = replace(following.request, plan=self.plan)
        elif self.replay.on:
            self._replay()
        self._show_state()

    def _on_stepped(self, image: int, _watched: WatchedImage) -> None:
        if self.as_read is not None and self.as_read.image.id == image:
            self.moved.emit()

    def _on_advanced(self, images: Sequence[int]) -> None:
        following = self.live.following
        if following is None:
            return
        self._show_in_queue(images)
        if self.as_read is not None and self.as_read.image.id in images:
            self.moved.emit()

    # Display

    def _show_in_queue(self, images: Sequence[int]) -> None:
        """Show the results of the watched source in the queue, instead of those of a run."""
        following = self.live.following
        if following is not None:
            self._review_queue.take({image: _known(following, image) for image in images})

    def _on_queue_read(self) -> None:
        """Show the results of the watched source in the queue again after a fusion."""
        following = self.live.following
        if following is not None:
            self._show_in_queue(tuple(following.watched))

    def _show_state(self) -> None:
        """Show the state of replay or source in the panel, the curves and the notes."""
        panel, curves, plan = self._screen.stream, self._screen.curves, self.plan
        scene, following = self.as_read, self.live.following
        self._screen.notes.set_note(REPLAYED, self._replay_notice())
        self._screen.notes.set_note(WATCHED, "" if following is None else following.settling_notice)
        if self.replay.waiting is not None and scene is not None:
            panel.show_replay(self._replay_line(scene))
            steps = tuple(self.replay.steps)  # a copy: steps are added meanwhile
            position = self.replay.position
            history = steps[-1].history if steps else None
            panel.set_state(history, position)
            curves.set_history(history, plan.stopping, self._truth(len(steps)))
            curves.set_position(position)
        elif following is not None:
            panel.show_live(self._live_line())
            watched = None if scene is None else self._watched(scene.image.id)
            history = None if watched is None else watched.history
            panel.set_state(history, 0 if history is None else len(history))
            curves.set_history(history, plan.stopping)
            curves.set_position(0 if history is None else len(history))
        else:
            panel.show_idle()
            panel.set_state(None)
            has_clicks = scene is not None and len(scene.clicks.annotators) > 0
            panel.offers.set_replayable("" if has_clicks else NO_CLICKS)
            source = self._source
            panel.offers.set_resumable(
                "" if source is None else plain(source.source.name, 80),
                "" if source is None else _why_ended(source),
            )
            curves.set_history(None)

    def _replay_line(self, scene: Scene) -> ReplayLine:
        return ReplayLine(
            annotators=len(scene.clicks.annotators),
            steps=self.replay.total,
            ready=len(self.replay.steps),
            position=self.replay.position,
            playing=self.replay.playing,
            order=self._order,
            timed=scene.clicks.time is not None,
            batch=self._per_step,
            speed=self.replay.speed,
        )

    def _live_line(self) -> LiveLine:
        live, following = self.live, self.live.following
        assert following is not None
        clicks, annotators, images = following.counts
        return LiveLine(
            name=plain(following.request.source.name, 200),
            text="paused" if live.paused else "waiting for new clicks" if live.waiting else "reading",
            paused=live.paused,
            since=live.since,
            clicks=clicks,
            annotators=annotators,
            images=images,
            refused=live.refused_lines,
            notice=live.notice,
        )

    def _truth(self, steps: int) -> StreamTruth | None:
        measured = np.array(self.replay.measured[:steps])
        return StreamTruth(measured[:, 0], measured[:, 1]) if len(measured) else None


def _known(following: LiveSource, image: int) -> ImageResult:
    watched = following.watched[image]
    settling = Settling(watched.fusion.marked.shape[0], watched.outlook.expected, watched.firm)
    return ImageResult(watched.fusion, following.annotators(image), settling, weights=watched.weights)


def _why_ended(source: streams.StreamEntry) -> str:
    reason = plain(source.ended, 300) or CUT_SHORT
    return f"{reason} Last arrival {source.seen.astimezone():%Y-%m-%d %H:%M}."


def _stop_rule(watched: WatchedImage) -> str:
    if watched.firm:
        return "stop rule met"
    if not watched.outlook.reliable:
        return "stop rule cannot be judged: each annotator clicked once"
    return "stop rule not met"


def _streams(study: Study, _watch: Watch) -> list[streams.StreamEntry]:
    return streams.streams(study)
