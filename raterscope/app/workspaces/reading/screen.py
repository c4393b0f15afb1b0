"""Screen of the reading mode: begin or continue a session, read its cases, measure times, finish."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QApplication, QStackedWidget, QWidget

from raterscope.app.jobs import Jobs
from raterscope.app.reader_studies.reading_file import SessionState, counted_days, when
from raterscope.app.workspaces.reading.reader import Pixels, Reader
from raterscope.app.workspaces.reading.surfaces import Surface, make_surface
from raterscope.text import counted
from raterscope.widgets.hints import EmptyState, KeyHelp
from raterscope.widgets.layouts import horizontal, vertical
from raterscope.widgets.panels.reading_panels import ReadingHeader, ReadingKey, ReadingPanel
from raterscope.widgets.parts import plain_label

FOOT = (
    ReadingKey("undo", "Z", "undo", "Take back the last mark on this case"),
    ReadingKey("redo", "Y", "redo", "Repeat the mark that was taken back"),
    ReadingKey("previous", "P", "previous case"),
    ReadingKey("next", "N", "done, next case", "Mark this case as read and go to the next"),
    ReadingKey("finish", "F", "finish session…", "See what is missing, then lock the session"),
)
_NAMED = 6


class ReadingScreen(QWidget):
    """The reading mode on one reading file."""

    close_requested = Signal()
    refused = Signal(str)  # why something could not be done

    KEY_HELP = KeyHelp(
        "While reading",
        (
            ("N", "case is done, next case"),
            ("P", "previous case"),
            ("U", "next case that is not read"),
            ("Z", "undo"),
            ("Y", "redo"),
            ("1 to 9", "structure or answer"),
            ("F", "finish the session"),
        ),
    )

    def __init__(self, path: Path, jobs: Jobs) -> None:
        super().__init__()
        self.setAccessibleName("Reading mode")
        self.reader = Reader(path, jobs, self)
        self.header = ReadingHeader()
        self.header.close_button.clicked.connect(self.close_requested)
        self.header.strip.chosen.connect(self._on_strip)
        self._pages = QStackedWidget()
        self._message: EmptyState | None = None
        self._case_page = QWidget()
        self.surface = Surface()
        self.panel = ReadingPanel("", ())
        self.problem = plain_label("", "error", wrap=True)
        self.problem.setContentsMargins(16, 6, 16, 6)
        self.problem.hide()
        vertical(self.header, self.problem, (self._pages, 1), inside=self)
        self._has_pixels = False
        self._leaves = False
        self._show_message("Opening…", "", ())
        self.clock = CaseClock(self.is_read, self)
        self.clock.elapsed.connect(self.reader.add_time)
        self.reader.opened.connect(self._on_opened)
        self.reader.refused.connect(self._on_refused)
        self.reader.case_shown.connect(self._on_case)
        self.reader.pixels_ready.connect(self._on_pixels)
        self.reader.pixels_refused.connect(self._on_refused)
        self.reader.loading.connect(self._on_loading)
        self.reader.marks_changed.connect(self._on_marks)
        self.reader.session_finished.connect(self._on_finished)

    def close_file(self) -> None:
        """Write everything and close the file."""
        self.clock.stop()
        self.reader.close()

    def is_read(self) -> bool:
        """Return whether the reader sees the case now: its pixels are loaded, and the window is active."""
        on_screen = self._pages.currentWidget() is self._case_page and self._has_pixels and self.isVisible()
        return on_screen and self.isActiveWindow() and QApplication.activeModalWidget() is None

    # Pages

    def _show_message(
        self, title: str, sentence: str, actions: tuple[tuple[str, Callable[[], object]], ...]
    ) -> None:
        page = EmptyState(title, sentence, actions)
        self._pages.addWidget(page)
        self._pages.setCurrentWidget(page)
        if self._message is not None:
            self._pages.removeWidget(self._message)
            self._message.deleteLater()
        self._message = page
        if page.buttons:
            page.buttons[0].setFocus()

    def _on_opened(self) -> None:
        assignment = self.reader.assignment
        assert assignment is not None
        self.header.set_study(f"{assignment.name}   {assignment.reader}")
        self.surface = make_surface(assignment)
        self.surface.marked.connect(self._on_marked)
        self.panel = ReadingPanel(assignment.instruction, self.surface.groups())
        footer = (
            FOOT
            if not self.surface.COMPLETES
            else tuple(key._replace(word="next case", tip="") if key.name == "next" else key for key in FOOT)
        )
        self.panel.add_to_footer(footer)
        self.panel.pressed.connect(self.press)
        horizontal((self.surface, 1), self.panel, inside=self._case_page)
        self._case_page.setFocusProxy(self.surface)
        self._pages.addWidget(self._case_page)
        self._bind_keys()
        self._welcome()

    def _welcome(self) -> None:
        """Show the reader's progress, with the next step."""
        assignment, session = self.reader.assignment, self.reader.session
        assert assignment is not None
        self.header.set_progress("", "")
        if session is None:
            self._show_message(
                "All sessions are finished",
                f"Thank you. Send {self.reader.path.name} back to the coordinator. Its marks are locked.",
                (("Close", self.close_requested.emit),),
            )
            return
        count, done = len(session.places), len(session.done)
        if not self.reader.is_open() and session.opens is not None:
            self._show_message(
                f"Session {session.session} opens on {when(session.opens)}",
                f"It begins {counted_days(assignment.washout_days)} after session {session.session - 1} was "
                f"finished, so that you do not remember the {counted(count, 'case')}. Until then, send "
                f"{self.reader.path.name} to the coordinator if you are asked for it.",
                (("Close", self.close_requested.emit),),
            )
            return
        sessions = f"Session {session.session} of {assignment.sessions}: " if assignment.sessions > 1 else ""
        text = f"{sessions}{counted(count, 'case')}" + (f", {done:,} read" if done else "")
        lead = f"{assignment.instruction} " if assignment.instruction else ""
        self._show_message(
            assignment.name,
            f"{lead}{text}. Your marks are saved as you make them; you see no other reader's marks and no "
            "results. Time counts only while this window is active.",
            (("Continue reading" if done or session.begun else "Start reading", self._start),),
        )

    def _start(self) -> None:
        session = self.reader.session
        if session is not None:
            first = self.reader.first_unread()
            if first is None:
                self.show_end()
            else:
                self.reader.go_to(first)

    # The case on screen

    def _on_case(self) -> None:
        case = self.reader.case
        assert case is not None
        assert self.reader.position is not None
        self._has_pixels = False
        self._leaves = False
        self.problem.hide()
        self.surface.begin(case, self.reader.swapped)
        self._pages.setCurrentWidget(self._case_page)
        self.surface.setFocus()
        self.clock.start(self.reader.position)
        self._on_marks()

    def _on_pixels(self, pixels: list[Pixels]) -> None:
        self.surface.show_pixels(pixels)
        self._has_pixels = True
        self.clock.tick()

    def _on_loading(self, text: str) -> None:
        if not self._has_pixels:
            self.surface.show_waiting(text)

    def _on_marks(self) -> None:
        session, position = self.reader.session, self.reader.position
        if session is None or position is None:
            return
        marks = self.reader.marks
        number = position - session.places[0]
        self.header.set_progress(f"Case {number + 1} of {len(session.places)}", _session_text(session, self))
        done = {each - session.places[0] for each in session.done}
        self.header.strip.set_cases(len(session.places), done, number)
        self.surface.show_marks(marks)
        self.panel.set_current_group(self.surface.current_group())
        self.panel.note.setText(self.surface.note(marks))
        self.panel.set_checked(self.surface.checked())
        self.panel.set_enabled("undo", marks.undoable is not None)
        self.panel.set_enabled("redo", marks.redoable is not None)
        self.panel.set_enabled("previous", number > 0)
        if self._leaves and position in session.done:
            self._go_on()

    def _on_marked(self, verb: str, detail: dict[str, object]) -> None:
        if not self._has_pixels:
            return
        self._leaves = self.surface.COMPLETES
        self.clock.tick()
        self.clock.report()
        self.reader.record(verb, detail)

    def _on_refused(self, sentence: str) -> None:
        self.problem.setText(sentence)
        self.problem.show()
        self.refused.emit(sentence)

    # Keys

    def _bind_keys(self) -> None:
        bindings: dict[str, str] = {
            "N": "next", "P": "previous", "U": "unread", "Z": "undo", "Ctrl+Z": "undo", "Y": "redo",
            "Ctrl+Y": "redo", "Ctrl+Shift+Z": "redo", "F": "finish",
        }  # fmt: skip
        assert self.reader.assignment is not None
        if not any(any(case.all_texts) for case in self.reader.assignment.cases):  # texts scroll
            bindings |= {"PgDown": "next", "PgUp": "previous"}
        for number in range(1, 10):
            bindings[str(number)] = f"digit {number}"
        if self.reader.assignment.kind == "masks":
            bindings |= {"B": "brush", "C": "contour", "E": "eraser", "V": "look"}
        elif self.reader.assignment.kind == "pairs":
            bindings |= {"Left": "side left", "Right": "side right", "Down": "side tie"}
        for keys, name in bindings.items():
            shortcut = QShortcut(QKeySequence(keys), self._case_page)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(partial(self.press, name))

    def press(self, name: str) -> None:
        """Handle a key of the screen."""
        position, session = self.reader.position, self.reader.session
        if position is None or session is None:
            return
        if name.startswith("digit ") and not self.surface.COMPLETES:
            structures = [key for key in self.panel.buttons if key.startswith("structure ")]
            number = int(name.removeprefix("digit "))
            name = structures[number - 1] if number <= len(structures) else ""
        if name in ("undo", "redo"):
            self._leaves = False
            getattr(self.reader, name)()
        elif name == "previous":
            self.reader.go_to(position - 1)
        elif name == "next":
            self._next()
        elif name == "unread":
            others = [each for each in session.places if each not in session.done and each != position]
            after = [each for each in others if each > position]
            if others:
                self.reader.go_to((after or others)[0])
        elif name == "finish":
            self.show_end()
        elif name:
            self.surface.press(name)
        self.panel.set_checked(self.surface.checked())

    def _next(self) -> None:
        """Mark the case as read, unless an answer does so, and go to the next."""
        session, position = self.reader.session, self.reader.position
        assert session is not None
        if not self._has_pixels or self.surface.COMPLETES or position in session.done:
            self._go_on()
            return
        self._leaves = True
        self.reader.record("done", {})

    def _go_on(self) -> None:
        self._leaves = False
        session, position = self.reader.session, self.reader.position
        if session is None or position is None:
            return
        if position + 1 in session.places:
            self.reader.go_to(position + 1)
        else:
            self.show_end()

    def _on_strip(self, index: int) -> None:
        session = self.reader.session
        if session is not None:
            self.reader.go_to(session.places[index])

    # The end

    def show_end(self) -> None:
        """Show what is missing, and ask to finish the session."""
        session = self.reader.session
        if session is None:
            return
        self.clock.stop()
        self.reader.leave_case()
        first = session.places[0]
        missing = [position - first + 1 for position in session.places if position not in session.done]
        self.header.set_progress(
            f"{len(session.done)} of {len(session.places)} read", _session_text(session, self)
        )
        self.header.strip.set_cases(len(session.places), {each - first for each in session.done}, -1)
        back = partial(self.reader.go_to, first + missing[0] - 1 if missing else session.places[-1])
        if missing:
            few = ", ".join(map(str, missing[:_NAMED])) + (" and more" if len(missing) > _NAMED else "")
            noun = "Case" if len(missing) == 1 else "Cases"
            verb = "is" if len(missing) == 1 else "are"
            self._show_message(
                f"{counted(len(missing), 'case')} {verb} not read",
                f"{noun} {few} {verb} not complete. A finished session cannot be changed.",
                (
                    ("Go to the first of them", back),
                    (f"Finish without {'it' if len(missing) == 1 else 'them'}", self.reader.finish),
                ),
            )
        else:
            self._show_message(
                f"Finish session {session.session}?",
                f"All {len(session.places)} cases are read. A finished session cannot be changed.",
                (("Finish session", self.reader.finish), ("Back to the cases", back)),
            )

    def _on_finished(self, _session: int) -> None:
        self.clock.stop()
        self._welcome()


def _session_text(session: SessionState, screen: ReadingScreen) -> str:
    assignment = screen.reader.assignment
    total = assignment.sessions if assignment is not None else 1
    return f"session {session.session} of {total}" if total > 1 else ""


TICK_MS = 250
SAVED_EVERY = 2.0
"""Seconds between two writes of the time."""


class CaseClock(QObject):
    """Clock that measures how long the case is on screen.

    `active`: returns whether the reader sees the case now. `clock`: returns seconds.
    """

    elapsed = Signal(int, float)  # a position and seconds to add to its time

    def __init__(
        self, active: Callable[[], bool], parent: QObject, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(parent)
        self._active, self.clock = active, clock
        self._position: int | None = None
        self._since: float | None = None
        self._seconds = 0.0
        self._timer = QTimer(self, interval=TICK_MS)
        self._timer.timeout.connect(self.tick)

    def start(self, position: int) -> None:
        """Start to measure another case."""
        self.stop()
        self._position = position
        self._timer.start()
        self.tick()

    def stop(self) -> None:
        """Report the time measured, and stop measuring."""
        self.tick()
        self.report()
        self._timer.stop()
        self._position = self._since = None

    def tick(self) -> None:
        """Count the time since the last tick if the case was on screen at both."""
        if self._position is None:
            return
        now = self.clock()
        if self._since is not None:
            self._seconds += now - self._since
        self._since = now if self._active() else None
        if self._seconds >= SAVED_EVERY:
            self.report()

    def report(self) -> None:
        """Report the time measured so far."""
        if self._position is not None and self._seconds > 0:
            self.elapsed.emit(self._position, self._seconds)
        self._seconds = 0.0
