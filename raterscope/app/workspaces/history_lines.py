"""Lines of the history, of the job list and of the run list, the same in every workspace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter

from raterscope.app.contents import Contents
from raterscope.app.errors import counted
from raterscope.app.jobs import Job
from raterscope.app.kinds.registry import KINDS
from raterscope.app.review import Decision, is_measure
from raterscope.app.study import RunEntry
from raterscope.widgets.panels.fuse_panel import RunLine
from raterscope.widgets.panels.history_panel import HistoryEntry
from raterscope.widgets.panels.jobs_panel import JobLine

__all__ = ["history", "job_line", "run_lines", "run_title", "stale_words"]

HISTORY = 1000
TONES = {
    "accept": "accepted",
    "add": "accepted",
    "move": "accepted",
    "label": "accepted",
    "take": "accepted",
    "paint": "accepted",
    "clear": "accepted",
    "flag": "rejected",
    "reject": "rejected",
    "exclude": "rejected",
}


def history(contents: Contents, said: dict[int, HistoryEntry] | None = None) -> tuple[HistoryEntry, ...]:
    """List the last decisions and the runs by time, the latest first.

    Parameters
    ----------
    contents : Contents
    said : dict, optional
        The lines of decisions as they were found before: filled and used again.
    """
    said = {} if said is None else said
    decisions = [one for one in contents.decisions[-HISTORY:] if one.at is not None]
    names: dict[tuple[str, int], str] = {}
    if any(one.id not in said for one in decisions):
        names = {(kind, one.id): one.name for kind, items in contents.items.items() for one in items}
    entries = []
    for one in decisions:
        standing = contents.review.standing(one.id)
        if one.id not in said and one.at is not None:
            tone = "plain" if is_measure(one) else TONES.get(one.verb, "plain")
            said[one.id] = HistoryEntry(one.at, _words(contents, one, names), tone)
        if said[one.id].standing != standing:
            said[one.id] = replace(said[one.id], standing=standing)
        entries.append(said[one.id])
    for run in contents.runs:
        entries.append(HistoryEntry(run.started, f"fuse {run_title(run)}, {_count(run)}"))
    return tuple(sorted(entries, key=attrgetter("time"), reverse=True))


def _words(contents: Contents, decision: Decision, names: Mapping[tuple[str, int], str]) -> str:
    kind = decision.subject.kind if decision.subject is not None else ""
    where = names.get((kind, decision.items[0]), "") if len(decision.items) == 1 else ""
    because = "" if decision.annotators else decision.reason  # of annotators the words have it
    what = contents.words(decision) + (f", {where}" if where else "")
    return f"{what}: {because}" if because else what


def job_line(job: Job) -> JobLine:
    """Say how a job stands; of an iteration, the value that rises too."""
    rising = f", objective {job.objective:,.1f}" if job.objective is not None else ""
    return JobLine(
        key=job.key, title=job.title, words=job.words + rising, fraction=job.fraction,
        seconds_left=job.seconds_left, state=job.state, error=job.error, details=job.details,
    )  # fmt: skip


def run_lines(contents: Contents, kind: str, shown: int | None) -> tuple[RunLine, ...]:
    """List the runs of a kind, the latest first."""
    last = next((one.id for one in reversed(contents.decisions) if _holds(contents, one, kind)), 0)
    lines = []
    for run in reversed(contents.runs_of(kind)):
        started = run.started.astimezone().strftime("%d %b %H:%M")
        lines.append(
            RunLine(
                key=run.id,
                title=run_title(run),
                words=f"run {run.id}, {started}, {_count(run)}, {run.seconds:.1f} s",
                shown=run.id == shown,
                stale=last > run.known,
            )
        )
    return tuple(lines)


def _holds(contents: Contents, decision: Decision, kind: str) -> bool:
    """Whether a decision, or what it takes back, may be one that fusions of a kind are held to."""
    target = contents.target(decision)
    if target is None or target.annotators:
        return True
    about = "" if target.subject is None else target.subject.kind
    # Whom the expert flags or clears counts in the ranking at once: no fusion of pairs rests on that.
    return about == kind and KINDS[kind].holds_decisions and target.verb != "skip" and not is_measure(target)


def stale_words(contents: Contents, kind: str) -> str:
    """Say why it is time to fuse again; empty where it is not."""
    if kind not in contents.stale:
        return ""
    if not KINDS[kind].holds_decisions:
        return "Different annotators are excluded than in the last run. Fuse again (F5) to apply this."
    return "You decided things since the run shown; fusing again holds them fixed and sharpens the rest."


def run_title(run: RunEntry) -> str:
    """Give what a run is called."""
    return KINDS[run.kind].load_catalogues().title(run.algorithm)


def _count(run: RunEntry) -> str:
    return counted(len(run.items), KINDS[run.kind].item)
