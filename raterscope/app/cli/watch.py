"""`raterscope watch`: follow a growing source of clicks, and report in JSON lines."""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from raterscope.algorithms.progress import Cancelled
from raterscope.app.errors import InputError
from raterscope.app.formats import UnknownColumns
from raterscope.app.kinds.clicks.live_source import LiveSource, WatchRequest
from raterscope.app.kinds.clicks.live_watching import WatchedImage, WatchPlan
from raterscope.app.study import Study, streams

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def watch(options: argparse.Namespace) -> int:
    """Follow a source into a new or existing study until stopped."""
    plan = WatchPlan.make(dict(options.settings))
    extent = tuple(options.extent) if options.extent else None
    request = WatchRequest(options.source, plan, dict(options.mapping), extent)
    try:
        with _made_or_opened(options.study) as study, _stopping() as stop:
            _watch(LiveSource(study, request), study, stop, options)
    except UnknownColumns as error:
        raise InputError(f"{error.what}, by --map column=field", file=error.file) from error
    return 0


@contextmanager
def _made_or_opened(path: Path) -> Iterator[Study]:
    """Open or create the study; a new study is removed if nothing of the source could be read."""
    if os.path.lexists(path):
        with Study.open(path) as study:
            yield study
        return
    with Study.create(path) as study:
        try:
            yield study
        except InputError:
            if not study.images() and not streams.streams(study):
                study.discard()
            raise


def _watch(following: LiveSource, study: Study, stop: threading.Event, options: argparse.Namespace) -> None:
    _print_event("watching", source=str(options.source), study=str(options.study), resumed=following.resumed)
    names = {entry.id: entry.name for entry in study.images()}
    for image, answer in following.watched.items():
        _print_event("image", **_figures(names[image], answer))
    try:
        reason = _follow(following, study, stop, options)
    except InputError as error:
        following.end(study, str(error))
        raise
    following.end(study, f"Stopped: {reason}.")
    _print_event("stopped", why=reason, run=following.keep_run(study))


def _follow(following: LiveSource, study: Study, stop: threading.Event, options: argparse.Namespace) -> str:
    """Poll, store, update and wait in turn; return why it ended."""
    reported: tuple[str, ...] = ()
    tick = _canceller(stop)
    try:
        while True:
            growth = following.look(tick, ended=options.once)
            if growth.notices != reported:  # the same every two seconds would bury the rest
                for words in growth.notices:
                    _print_event("notice", words=words)
                reported = growth.notices
            following.store(study, growth)
            if _take_up(following, study, stop) and options.ask:
                _print_next(following, study, options.ask)
            if not growth.more and following.is_settling_due:
                _settle(following, study, stop)
            watched = following.watched.values()
            if options.until_stop_rule and watched and all(answer.firm for answer in watched):
                return "every image meets the stop rule"
            if not growth.more:
                if options.once:
                    return "no further clicks"
                if stop.wait(options.every):
                    return "interrupted"
    except Cancelled:
        return "interrupted"


def _take_up(following: LiveSource, study: Study, stop: threading.Event) -> bool:
    """Import and report new clicks; return whether there were any."""
    images = following.gather(study)
    names = {entry.id: entry.name for entry in study.images()}
    for image in images:
        lines = [
            _figures(names[number], time) for number, time in following.advance([image], _canceller(stop))
        ]
        following.keep(study, [image])
        for line in lines:
            _print_event("image", **line)
    return bool(images)


def _settle(following: LiveSource, study: Study, stop: threading.Event) -> None:
    """Fuse all images completely, and report those whose figures change."""
    names = {entry.id: entry.name for entry in study.images()}
    figures_before = {image: _figures(names[image], answer) for image, answer in following.watched.items()}
    images = following.settle(_canceller(stop))
    following.keep(study, images)
    for image in images:
        current = _figures(names[image], following.watched[image])
        if current != figures_before[image]:
            _print_event("settled", **current)
    _print_event("settling", words=following.settling_text)


def _print_next(following: LiveSource, study: Study, limit: int) -> None:
    """Report the image with the largest expected gain, and its best annotators."""
    image, gain = following.next_image()
    if image is None:
        return
    ranking = following.rank_for(image)
    annotators = [
        {"annotator": name, "gain": _number(value)}
        for name, value in zip(ranking.annotators[:limit], ranking.gain.tolist(), strict=False)
    ]
    _print_event("next", image=study.image(image).name, gain=_number(gain), annotators=annotators)


def _figures(name: str, watched: WatchedImage) -> dict[str, Any]:
    history = watched.history
    return {
        "image": name,
        "step": len(history),
        "annotators": int(history.annotators[-1]),
        "clicks": int(history.clicks[-1]),
        "detections": int(watched.fusion.detection.detected.sum()),
        "changed": int(history.changed[-1]),
        "expected_changes": _number(watched.outlook.expected),
        "expected_changes_interval": [_number(value) for value in watched.outlook.interval.tolist()],
        "chance_of_change": _number(watched.outlook.any),
        "sensitivity": [_number(value) for value in history.sensitivity[-1].tolist()],
        "precision": [_number(value) for value in history.precision[-1].tolist()],
        "expected_changes_reliable": watched.outlook.reliable,
        "stop_rule_met": watched.firm,
        "firm": watched.firm,  # its former name, which programs may read
    }


def _number(value: float) -> float | None:
    return round(float(value), 6) if math.isfinite(value) else None


def _print_event(event: str, **fields: object) -> None:
    line = {"event": event, "at": datetime.now(UTC).isoformat(timespec="milliseconds"), **fields}
    print(json.dumps(line, allow_nan=False), flush=True)


def _canceller(stop: threading.Event) -> Callable[..., None]:
    def tick(*_: object, **__: object) -> None:
        if stop.is_set():
            raise Cancelled

    return tick


@contextmanager
def _stopping() -> Iterator[threading.Event]:
    """Set an event on interrupt or termination; a second signal ends at once."""
    event = threading.Event()
    handlers: dict[signal.Signals, Any] = {}

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        if event.is_set():
            raise KeyboardInterrupt
        event.set()

    for number in SIGNALS:
        handlers[number] = signal.signal(number, on_signal)
    try:
        yield event
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        sys.stdout.flush()
