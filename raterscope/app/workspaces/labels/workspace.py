"""The labels workspace: the tasks of a question, its annotators, and their reliability."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices

from raterscope.algorithms.labels.fusion import LabelPlan, QuestionSettings
from raterscope.algorithms.progress import Watch
from raterscope.app.assessment import MATTERS, Change
from raterscope.app.contents import Contents
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.sounds import Sound, find_media, media_kind, outline, read_sound
from raterscope.app.kinds.labels.runs import Draft, explain_not_converged
from raterscope.app.review import CommentSubject, Decision, GoldSubject, ReviewState, SampledItem, TaskSubject
from raterscope.app.session import LatestTask, while_shown
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.labels import read_contents, set_scheme
from raterscope.app.study.records import ImageEntry, Scheme
from raterscope.app.workspaces.comments import Comments
from raterscope.app.workspaces.labels import view
from raterscope.app.workspaces.labels.annotator_detail import AnnotatorDetail, Exclusion
from raterscope.app.workspaces.labels.budget import ActiveLearning, CostMeasurement
from raterscope.app.workspaces.labels.method_comparison import (
    CrossValidation,
    DecisionRates,
    MethodComparison,
)
from raterscope.app.workspaces.labels.scene import (
    LabelsSession,
    Scene,
    analyse,
    disputed_tasks,
    read_scene,
)
from raterscope.app.workspaces.labels.screen import LabelsCore, LabelsPart, LabelsScreen
from raterscope.app.workspaces.labels.tasks import TaskReview
from raterscope.app.workspaces.labels.view import cell_tasks
from raterscope.app.workspaces.layout import ActionEntry
from raterscope.app.workspaces.navigation import QuestionNavigation, find_file_problem
from raterscope.app.workspaces.review_order import RemainingQuestions, next_unit
from raterscope.app.workspaces.sample_queue import StudyQueue
from raterscope.app.workspaces.screen import BlindTexts
from raterscope.app.workspaces.task_pictures import ContentTab, TaskPictures, load_picture
from raterscope.widgets.dialogs.answers import Answers, AnswersDialog
from raterscope.widgets.panels.card_panels import GridView
from raterscope.widgets.panels.fuse_panel import RunRequest
from raterscope.widgets.panels.task_content import TaskContent


def open_device(rate: int) -> Any:
    """Open the system's sound device."""
    import miniaudio

    return miniaudio.PlaybackDevice(nchannels=2, sample_rate=rate)


class SoundPlayer:
    """Player of a sound; see `widgets.panels.task_content.Player`."""

    def __init__(self, sound: Sound, device: Callable[[int], Any] = open_device) -> None:
        self._sound, self._open = sound, device
        self._device: Any = None
        self._at = 0
        self.playing = False

    @property
    def position(self) -> float:
        """Seconds played so far."""
        return self._at / self._sound.rate

    def play(self, start: float) -> None:
        """Play from a given time. Raises OSError if there is no sound device."""
        self.pause()
        self._at = int(start * self._sound.rate)
        try:
            self._device = self._open(self._sound.rate)
            stream = self._stream()
            next(stream)
            self.playing = True
            self._device.start(stream)
        except Exception as error:
            self.pause()
            raise OSError(str(error) or "there is no sound device") from error

    def pause(self) -> None:
        """Stop at the current position."""
        self.playing = False
        device, self._device = self._device, None
        if device is not None:
            device.close()

    def _stream(self) -> Generator[bytes, int, None]:
        """Yield the next frames that the device requests."""
        needed = yield b""
        while self.playing and self._at < len(self._sound.samples):
            frames = self._sound.samples[self._at : self._at + needed]
            self._at += len(frames)
            needed = yield frames.tobytes()
        self.playing = False


class TaskContents(LabelsPart):
    """Large view of the selected task, while its tab in the centre is open."""

    def __init__(self, core: LabelsCore, tasks: TaskReview) -> None:
        super().__init__(core)
        self._view = core.screen.content
        self.tab = ContentTab(core.screen.middle_tabs, self._view)
        self._tasks = tasks
        self._content: TaskContent | None = None
        self._reading, self._loading = LatestTask(), LatestTask()
        tasks.selected.connect(self._show)
        core.session.cleared.connect(self._clear)
        core.screen.middle_tabs.currentChanged.connect(self._show)
        self._film: Path | None = None
        self._view.film.clicked.connect(self._open_film)

    def _clear(self) -> None:
        self._reading.cancel()
        self._loading.cancel()
        self._content = None
        self._view.show_content(None)

    @while_shown
    def _show(self, _selected: object = None) -> None:
        task = self._tasks.current
        if task is None:
            self._clear()
        elif self.tab.open:
            scene = self._session.scene
            name = scene.labels.tasks[task]
            if self._content is None or self._content.name != name:
                work = partial(_read, name, scene.question.id, scene.pictures.get(task))
                job = self._document.ask("Reading the task", work)
                self._reading.follow(job, self._on_read)

    def _on_read(self, read: _Read) -> None:
        self._content, self._film = read.content, read.film
        self._loading.cancel()
        self._view.show_content(self._content)
        if read.picture is not None:
            job = self._jobs.start("Reading a picture", partial(load_picture, read.picture), quiet=True)
            self._loading.follow(job, partial(self._on_loaded, read.picture))
        elif read.sound is not None:
            job = self._jobs.start("Reading a sound", partial(_load_sound, read.sound), quiet=True)
            self._loading.follow(job, self._on_sound)

    def _on_loaded(self, path: Path, pixels: NDArray[np.uint8] | None) -> None:
        content = self._content
        if content is not None:
            problem = "" if pixels is not None else f"{plain(path.name)} is damaged, or no picture."
            self._content = replace(
                content, has_picture=pixels is not None, pixels=pixels, problem=problem or content.problem
            )
            self._view.show_content(self._content)

    def _on_sound(self, loaded: tuple[Sound, NDArray[np.float32]] | str) -> None:
        if self._content is None:
            return
        if isinstance(loaded, str):
            self._content = replace(self._content, problem=loaded)
            self._view.show_content(self._content)
        else:
            sound, levels = loaded
            self._view.show_sound(SoundPlayer(sound), levels, sound.seconds)

    def _open_film(self) -> None:
        if self._film is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._film)))


class _Read(NamedTuple):
    """Contents of a task, and their files."""

    content: TaskContent
    picture: Path | None = None
    sound: Path | None = None
    film: Path | None = None


def _read(name: str, question: int, entry: ImageEntry | None, study: Study, watch: Watch) -> _Read:
    watch(0.0, "reading the task")
    picture = None if entry is None else study.locate(entry)
    texts = read_contents(study, question, name)
    files = {kind: text for text in (name, *texts.values()) if (kind := media_kind(text))}
    located = {kind: find_media(text, study.path.parent) for kind, text in files.items()}
    lost = [plain(text, 200) for kind, text in files.items() if located[kind] is None]
    problem = f"{lost[0]} is not in the folder of the study or below it." if lost else ""
    missing = None if entry is None else find_file_problem(entry, study)
    problem = problem if missing is None else plain(missing.sentence, 500)
    film = located.get("film")
    content = TaskContent(
        name, picture is not None, None, texts, problem=problem, film="" if film is None else plain(film.name)
    )
    return _Read(content, picture, located.get("sound"), film)


def _load_sound(path: Path, watch: Watch) -> tuple[Sound, NDArray[np.float32]] | str:
    watch(0.0, "reading a sound")
    try:
        sound = read_sound(path)
    except InputError as error:
        return f"{str(error).rstrip('.')}."
    return sound, outline(sound)


BLIND = BlindTexts(
    "Blind mode: hide names, and votes until you decide",
    "Names are hidden, and votes until you decide.",
    "Names and votes are shown.",
)
MAX_STORED = 20
"""Maximum number of selected annotators that are restored after a crash."""


class LabelsWorkspace(LabelsScreen):
    """Review of labels: tasks and their votes, annotators and their reliability, the expert's decisions."""

    def build(self) -> Iterator[None]:
        """Make the widgets, then connect them with the study."""
        yield from super().build()
        document, jobs = self._document, self._jobs
        self.session = self._session = LabelsSession(self)
        self.core = core = LabelsCore(self, document, jobs, self.session, "labels", BLIND)
        self._cell: tuple[tuple[int, ...], int, int] | None = None
        """Annotators, true class and label of the cell with the listed tasks."""
        self._finding = LatestTask()
        self.navigation = QuestionNavigation(
            document, jobs, core.runs, "votes", read_scene, analyse, self.question
        )
        self.pictures = TaskPictures(document, jobs, self)
        self.remaining = RemainingQuestions(
            document, self.runs, self.queue, "labels", disputed_tasks, _settled,
            ReviewState.contested_tasks, noun="task", waits="disputed",
            tip=f"A decision matters where the answer is wrong with a probability of {MATTERS:g} or more.",
        )  # fmt: skip
        self.study_queue = StudyQueue(document, self, self.remaining, lambda: self.session.blind)
        self.tasks = TaskReview(core, self.pictures, self._go_elsewhere, self.study_queue)
        self.task_contents = TaskContents(core, self.tasks)
        self.annotator_detail = AnnotatorDetail(core)
        self.exclusion_preview = Exclusion(core)
        self.active_learning = ActiveLearning(core, self.tasks)
        self.cost_measurement = CostMeasurement(core)
        self.method_comparison = MethodComparison(core)
        self.cross_validation = CrossValidation(core)
        self.decision_rates = DecisionRates(core)
        self._connect()
        core.connect_screen(self.navigation)
        yield
        self._make_actions()

    def _connect(self) -> None:
        self.session.scene_settled.connect(self._show_run_trace)
        self.runs.ended.connect(self._show_run_trace)
        self.session.blind_changed.connect(self._find_cell_tasks)
        self.describe.clicked.connect(self._on_describe)
        self.study_queue.chosen.connect(self._go_to_task)
        self.session.blind_changed.connect(self.study_queue.show_tab)
        self.session.blind_changed.connect(self._show_advice)
        self.tasks.changed.connect(self._show_status)
        self.tasks.exhausted.connect(self._on_exhausted)
        self.core.sample.chosen.connect(self._go_to_sampled)
        self.comments = Comments(self.core, self.task_panel, self._to_comment)
        self.tasks.selected.connect(self.comments.refresh)
        self.tasks.message.connect(self.message)
        self.task_panel.votes.chosen.connect(self._on_voter)
        self.task_panel.classes.left.connect(self.queue.view.setFocus)
        self.annotator_detail.community_chosen.connect(self._on_community)
        self.annotator_detail.cell_chosen.connect(self._on_cell)
        self.drift.fuse.clicked.connect(self._on_dynamic_requested)
        self.method_table.in_part.clicked.connect(self._on_part_requested)
        self.exclusion_preview.message.connect(self.message)
        for part in (self.cross_validation, self.active_learning, self.cost_measurement):
            part.refused.connect(self.refused)
        self.cell_tasks.chosen.connect(self.tasks.select)
        self.ask.chosen.connect(lambda key: self.tasks.select(key[0]))
        self.exclusion_preview.task_chosen.connect(self.tasks.select)
        self.pictures.serve(self.cell_tasks.pictures)
        self.method_table.table.run_chosen.connect(self.runs.choose)

    def _make_actions(self) -> None:
        described: tuple[ActionEntry, ...] = (
            ("Next disputed task", "Tab", partial(self.tasks.go, 1)),
            ("Previous disputed task", "Shift+Tab", partial(self.tasks.go, -1)),
            ("Skip", "S", self.tasks.skip),
            ("Undo the decision on the task", "C", self.tasks.clear),
            ("Decide for the parent class", "P", self.tasks.decide_parent),
            ("Mark the task as gold, or remove the mark", "G", self.tasks.mark_gold),
            ("Find a class by its name", "/", self.task_panel.find_class),
            ("Show the task large, or the annotators again", "D", self.task_contents.tab.toggle),
            ("Budget of votes to ask for", "B", self.active_learning.ask_budget),
            ("Exclude selected annotators", "X", self.exclusion_preview.begin),
            *self.comments.actions,
            *self.core.navigation_actions("question"),
            ("Leave the panel", "Esc", self.close_fuse_panel),
        )
        self.add_actions(described, (self.wall, self.queue.view, self.task_panel))
        self.add_digits(self._on_digit, "Label the task with this class", first=0)

    # Display

    def show_change(self, change: Change) -> None:
        """Select a task whose answer differs in another run."""
        if change.name in self.session.scene.number_of:
            self.tasks.select(self.session.scene.number_of[change.name])

    def annotators_on_screen(self) -> Sequence[str]:
        """Return the annotators of the question."""
        return self.session.scene.labels.annotators if self.session.shown else ()

    def choose_annotator(self, name: str) -> None:
        """Choose an annotator everywhere."""
        self.annotator_detail.choose((self.annotators_on_screen().index(name),))

    def view_state(self) -> dict[str, Any]:
        """Return the task and the selected annotators too."""
        names = self.annotator_detail.names(self.session.selection[:MAX_STORED])
        return {**super().view_state(), "task": self.tasks.current, "annotators": list(names)}

    def restore_view(self, state: Mapping[str, Any]) -> None:
        """Select the task and the annotators."""
        super().restore_view(state)
        self.study_queue.begin_elsewhere()
        names, task = state.get("annotators"), state.get("task")
        if isinstance(names, list):
            index = {name: number for number, name in enumerate(self.annotators_on_screen())}
            self.annotator_detail.choose(
                [index[name] for name in names if isinstance(name, str) and name in index]
            )
        if self.session.shown and isinstance(task, int) and 0 <= task < len(self.session.scene.labels.tasks):
            self.tasks.go_to(task)

    def forget_study(self) -> None:
        """Drop all data of the previous study."""
        self.pictures.forget()
        self.study_queue.reset()

    def on_study_changed(self) -> None:
        """Count the remaining tasks, and offer to describe the answers of the question."""
        self.remaining.reread()
        self.describe.setEnabled(self.navigation.current is not None)

    def on_cleared(self) -> None:
        """Clear the screen, because there is no question."""
        self.remaining.select(None)
        self._leave_cell()
        self.status_changed.emit("")
        self.show_draft(None)
        self.method_table.set_advice(())

    def on_scene(self, scene: Scene) -> None:
        """Show a question and the notes of its run."""
        self.remaining.select(scene.question.id)
        self._leave_cell()
        self._show_status()
        fusion, run = scene.fusion, scene.run
        self.show_not_converged(explain_not_converged(fusion, run.settings) if fusion and run else "")
        self._show_advice()

    @while_shown
    def _show_advice(self) -> None:
        scene, analysis = self.session.scene, self.session.analysis
        sentences = (*analysis.advice, *(scene.fusion.notices if scene.fusion else ()))
        if self.session.blind:
            sentences = view.without_names(sentences, scene.labels.annotators)
        self.method_table.set_advice(sentences, err_together=analysis.err_together)

    def _show_run_trace(self) -> None:
        fusion = self.session.scene.fusion if self.session.shown else None
        self.show_draft(None if fusion is None else Draft("", fusion))

    def _leave_cell(self) -> None:
        self._cell = None
        self._finding.cancel()
        self.cell_tasks.show_tasks(None)
        self.cell_tasks.pictures.forget()

    def show_draft(self, draft: Draft | None) -> None:
        """Plot the convergence so far."""
        if draft is None:
            self.progress.set_trace(np.empty(0))
            return
        trace = draft.fusion.trace
        if len(trace.objective):
            self.progress.set_objective(trace.name)
            self.progress.set_trace(trace.objective, converged=trace.converged)
        else:
            self.progress.set_objective("log10 of largest change")
            change = np.log10(np.maximum(trace.change, 1e-16))
            self.progress.set_trace(change, converged=trace.converged)

    @while_shown
    def _show_status(self) -> None:
        several = self.question.count() > 1
        text = view.status(self.session.scene, self.session.analysis, self.tasks.waiting, several=several)
        self.status_changed.emit(text)

    # Selected annotators

    def _on_community(self) -> None:
        self.tasks.set_members(frozenset(self.annotator_detail.members))

    @while_shown
    def _on_voter(self, number: int) -> None:
        """Select the annotator of a vote by their number in the study."""
        self.annotator_detail.choose(np.flatnonzero(self.session.scene.annotator_ids == number).tolist())

    @while_shown
    def _on_cell(self, true: int, output: int) -> None:
        if self.session.scene.fusion is not None:
            self._cell = (self.session.selection, true, output)
            self._find_cell_tasks()
            self.middle_tabs.setCurrentWidget(self.cell_tasks)

    @while_shown
    def _find_cell_tasks(self) -> None:
        if self._cell is None:
            return
        work = partial(_cell_tasks, self.session.scene, *self._cell, self.session.blind)
        job = self._jobs.start("Finding the tasks of a cell", work, quiet=True)
        self._finding.follow(job, self.cell_tasks.show_tasks)

    # Decisions

    def on_decided(self, decision: Decision, contents: Contents) -> None:
        """Show a decision that was stored; after undo, select its task."""
        self.remaining.recount()
        if self.session.shown:
            decided, _ = _settled(contents.review, self.session.scene.question.id)
            self.method_comparison.calibration.set_decided(len(decided))
        item = contents.item_of(decision, "labels")
        if item is not None:
            back = contents.brought_back(decision)
            task = back.task if isinstance(back, (TaskSubject, GoldSubject)) else None
            self.tasks.refresh(item, task)
            target = contents.target(decision)
            if target is not None and isinstance(target.subject, GoldSubject):
                self.navigation.read_again()  # it changes the reference for annotators
        elif decision.annotators or (target := contents.target(decision)) is None or target.annotators:
            self.annotator_detail.refresh()
            self.exclusion_preview.refresh()

    @while_shown
    def _on_exhausted(self) -> None:
        if self.session.scene.fusion is not None:
            in_list = "No other task in this list is undecided."
            left = self.remaining.nothing_left() if self.tasks.walks_disputed else in_list
            self.message.emit(self.core.sample.nothing_left() or left)

    def _to_comment(self) -> CommentSubject:
        task = self.tasks.current
        name = "" if task is None else self.session.scene.labels.tasks[task]
        return CommentSubject(of="labels", name=name)

    def _go_to_sampled(self, sampled: SampledItem, by_hand: bool) -> None:
        self._go_to_task(sampled.item, sampled.name, by_hand)

    def _go_to_task(self, question: int, name: str, by_hand: bool) -> None:
        """Go to a task of any question."""
        if not self.tasks.go_to_task(question, name, by_hand):
            self.navigation.show(question)

    def _go_elsewhere(self, step: int, skipped: bool, _finish: bool) -> bool:
        """Continue with the next question that has undecided tasks; return whether there is one."""
        current = self.session.scene.question.id if self.session.shown else None
        question = next_unit(self.remaining.units(), current, step, skipped=skipped)
        if question is not None:
            self.tasks.enter(question, step, skipped)
            self.navigation.show(question)
        return question is not None

    @while_shown
    def _on_describe(self) -> None:
        scene = self.session.scene
        question, answers = scene.question, answers_of(scene.question.scheme, scene.labels.ordered)
        dialog = AnswersDialog(question.name, answers, self)
        dialog.accepted.connect(partial(self._on_described, question.id, dialog))
        dialog.open()

    def _on_described(self, question: int, dialog: AnswersDialog) -> None:
        work = partial(store_answers, question, dialog.answers)
        self._document.ask("Keeping the answers", work, changes=True)

    # Fusing

    @while_shown
    def _on_digit(self, number: int) -> None:
        """Decide for the class with the digit `number` + 1 in the panel of the task."""
        if self.tasks.current is None:
            self.tasks.go(1)
        elif (index := self.task_panel.class_of(str(number + 1))) is not None:
            self.tasks.decide(index)

    def _on_dynamic_requested(self) -> None:
        self.fuse_panel.algorithm.choose("dynibcc")
        self._offer_to_fuse()

    def _on_part_requested(self) -> None:
        form = self.fuse_panel.assignment
        about = None if form is None else form.settings()
        if form is not None and isinstance(about, QuestionSettings):
            form.set_settings(replace(about, counting="predictive"))
        self._offer_to_fuse()

    def _offer_to_fuse(self) -> None:
        """Show the changed settings in the Fuse panel, and focus its Fuse button."""
        if not self.fuse_panel.isVisible():
            self.toggle_fuse_panel()
        self.fuse_panel.run.setFocus()

    def request_of(self, run: RunEntry) -> RunRequest:
        """Return the request that repeats a run."""
        plan = LabelPlan.from_dict(run.settings)
        return RunRequest(plan.algorithm, plan.settings, assignment=plan.about)

    def make_plan(self, request: RunRequest) -> LabelPlan:
        """Return the plan of a run that was requested in the Fuse panel."""
        if not isinstance(request.assignment, QuestionSettings):
            raise TypeError("labels are fused with the settings of their question")
        return LabelPlan(request.algorithm, request.settings, request.assignment)

    def show_comparison(self, _runs: Sequence[int]) -> None:
        """Show the table of methods."""
        self.left_tabs.setCurrentWidget(self.method_table)


def _settled(review: ReviewState, question: int) -> tuple[Collection[str], Collection[str]]:
    return review.tasks(question).keys(), review.skipped_tasks(question)


def _cell_tasks(
    scene: Scene, annotators: tuple[int, ...], true: int, output: int, blind: bool, watch: Watch
) -> GridView:
    watch(0.0, "finding the tasks of a cell")
    return cell_tasks(scene, annotators, true, output, blind=blind)


def answers_of(scheme: Scheme, ordered: bool) -> Answers:
    """Convert a scheme to the values of the dialog."""
    prior = None if scheme.prior is None else np.array(scheme.prior)
    return Answers(scheme.outputs, scheme.classes, scheme.meaning, prior, ordered)


def store_answers(question: int, answers: Answers, study: Study, watch: Watch) -> None:
    """Store the values of the dialog."""
    watch(0.0, "keeping the answers")
    prior = None if answers.prior is None else tuple(tuple(row) for row in answers.prior.tolist())
    present = study.vote_set(question)
    stored = Scheme(answers.outputs, answers.classes, answers.meaning, prior, present.scheme.ordered)
    if answers.ordered != present.ordered or answers.classes != present.scheme.classes:
        stored = replace(stored, ordered=answers.ordered)
    set_scheme(study, question, stored)
