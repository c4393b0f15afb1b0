"""One fusion at a time: which of its results and messages arrive."""

import threading

import pytest

from raterscope.app.document import Document
from raterscope.app.jobs import Jobs
from raterscope.app.outcome import Inputs, one_by_one
from raterscope.app.study import Study
from raterscope.app.workspaces.runs import Fusing, FusionWork
from tests.app.driving import LONG


@pytest.fixture
def fusing(qtbot, tmp_path):
    """Return what fuses in an open study, and the jobs."""
    jobs = Jobs()
    document = Document(jobs, jobs)
    Study.create(tmp_path / "s.rscope").close()
    with qtbot.waitSignal(document.replaced, timeout=LONG):
        document.open(tmp_path / "s.rscope")
    yield Fusing(document, jobs, jobs), jobs
    jobs.close()
    document.close()
    jobs.deleteLater()


def work(kept, fuse) -> FusionWork:
    def gather(items, study, watch):
        return Inputs({"one": items[0]}, {"one": items[0]})

    def keep(answer, study, watch):
        kept.append(answer.outcomes["one"].fusion)
        return 7

    def fuse_all(inputs, watch):
        return one_by_one(inputs, None, fuse, watch)

    return FusionWork("clicks", gather, fuse_all, keep)


def endless(started):
    def fuse(inputs, plan, watch):
        started.set()
        while True:
            watch(0.5, "fusing")

    return fuse


def test_a_replaced_fusion_is_not_reported_as_cancelled(fusing, qtbot):
    fusing, jobs = fusing
    messages, kept, started = [], [], threading.Event()
    fusing.message.connect(messages.append)
    fusing.start(work(kept, endless(started)), [1])
    qtbot.waitUntil(started.is_set, timeout=LONG)
    with qtbot.waitSignal(fusing.stored, timeout=LONG):
        fusing.start(work(kept, lambda inputs, plan, watch: inputs), [2])
    qtbot.waitUntil(lambda: not jobs.busy, timeout=LONG)
    assert kept == [2]
    assert messages == []


def test_a_fusion_that_is_cancelled_leaves_the_study_as_it_was(fusing, qtbot):
    fusing, jobs = fusing
    messages, kept, started = [], [], threading.Event()
    fusing.message.connect(messages.append)
    fusing.start(work(kept, endless(started)), [1])
    qtbot.waitUntil(started.is_set, timeout=LONG)
    fusing.cancel()
    qtbot.waitUntil(lambda: not jobs.busy, timeout=LONG)
    assert kept == []
    assert messages == ["The fusion was cancelled. The study is unchanged."]
