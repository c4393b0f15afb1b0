"""A workspace shows data of the open study, not of the previous one."""

import threading

import numpy as np

from raterscope.app.document import Document
from raterscope.app.formats.volumes import find_volumes, load_volume
from raterscope.app.importing import read_files, store
from raterscope.app.study import Study
from raterscope.app.workspaces.masks.scene import load_pixels
from raterscope.app.workspaces.navigation import PixelLoader
from tests.app.driving import LONG
from tests.app.kinds.masks.made import a_volume


def studies(folder):
    created = []
    for number in (1, 2):
        path = folder / str(number)
        path.mkdir()
        created.append(path / "study.rscope")
        with Study.create(created[-1]) as study:
            store(read_files([a_volume(path / "chest.nii.gz", seed=number)]), study)
    return created


def opened(document, path, qtbot):
    with qtbot.waitSignal(document.replaced, timeout=LONG):
        document.open(path)
    return document.contents.images[0]


def test_pixels_of_the_study_before_do_not_come_late(jobs, qtbot, tmp_path):
    first, second = studies(tmp_path)
    release = {path.parent: threading.Event() for path in (first, second)}
    started = []

    def slowly(entry, path, watch):
        started.append(path.parent)
        release[path.parent].wait(300)
        return load_pixels(entry, path, watch)

    document = Document(jobs, jobs)
    loader = PixelLoader(document, jobs, slowly, jobs)
    arrived = []
    loader.pixels.connect(lambda _image, loaded: arrived.append(loaded.volume.values))
    before = opened(document, first, qtbot)
    loader.load(before, first.parent / "chest.nii.gz")
    qtbot.waitUntil(lambda: started == [first.parent], timeout=LONG)
    loader.forget()
    after = opened(document, second, qtbot)
    assert after.id == before.id
    loader.load(after, second.parent / "chest.nii.gz")
    qtbot.waitUntil(lambda: started == [first.parent, second.parent], timeout=LONG)
    release[first.parent].set()
    qtbot.wait(100)
    release[second.parent].set()
    qtbot.waitUntil(lambda: bool(arrived) and not jobs.busy, timeout=LONG)
    (volume,) = find_volumes(second.parent / "chest.nii.gz")
    for values in arrived:
        np.testing.assert_array_equal(values, load_volume(volume).values)
    document.close()
    qtbot.waitUntil(lambda: not jobs.busy, timeout=LONG)


def test_an_import_that_ends_after_the_study_was_closed_reads_nothing_again(jobs, qtbot, tmp_path):
    (first, _second) = studies(tmp_path)
    document = Document(jobs, jobs)
    opened(document, first, qtbot)
    done = []
    job = document.ask("Importing", lambda _study, _watch: 1, changes=True)
    job.finished.connect(done.append)
    document.close()
    qtbot.waitUntil(lambda: not jobs.busy, timeout=LONG)
    assert done == [1]
    assert document.contents is None
