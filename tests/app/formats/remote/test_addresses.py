"""Files at addresses, served by a local web server and by a file system in memory."""

import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from raterscope.app.cli import main
from raterscope.app.errors import InputError
from raterscope.app.formats import remote


def test_without_the_library_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(InputError, match=r"pip install raterscope\[remote\]"):
        remote.fetch("memory://a.csv", tmp_path)


@pytest.fixture
def memory():
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()


class Handler(SimpleHTTPRequestHandler):
    asked: ClassVar = []

    def do_GET(self):
        self.asked.append(self.path)
        super().do_GET()

    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path):
    pytest.importorskip("fsspec")
    pytest.importorskip("aiohttp")
    served = tmp_path / "served"
    served.mkdir()
    Handler.asked = []
    http = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(tmp_path)))
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield served, f"http://127.0.0.1:{http.server_port}"
    http.shutdown()
    thread.join()
    http.server_close()


def test_a_file_is_downloaded_once_and_again_if_it_changes(memory, tmp_path):
    memory.pipe("/case/r1.csv", b"first")
    (path,) = remote.fetch("memory://case/r1.csv", tmp_path)
    assert (path.name, path.read_bytes()) == ("r1.csv", b"first")
    memory.open = None  # is not asked for content
    assert remote.fetch("memory://case/r1.csv", tmp_path) == [path]
    del memory.open
    memory.pipe("/case/r1.csv", b"second")
    assert remote.fetch("memory://case/r1.csv", tmp_path) == [path]
    assert path.read_bytes() == b"second"


def test_a_pattern_names_several_files(memory, tmp_path):
    for name in ("b", "a", "c"):
        memory.pipe(f"/case/{name}.nii.gz", name.encode())
    paths = remote.fetch("memory://case/*.nii.gz", tmp_path)
    assert [path.read_text() for path in paths] == ["a", "b", "c"]
    with pytest.raises(InputError, match="no file matches"):
        remote.fetch("memory://case/*.mha", tmp_path)


def test_a_file_that_is_too_large_is_not_read(memory, tmp_path, monkeypatch):
    monkeypatch.setattr(remote, "LARGEST", 10)
    memory.pipe("/large.csv", b"x" * 11)
    with pytest.raises(InputError, match="is larger than"):
        remote.fetch("memory://large.csv", tmp_path)
    assert not list(tmp_path.rglob("*.csv"))


def test_what_is_wrong_with_an_address_is_named(memory, server, tmp_path):
    _, address = server
    with pytest.raises(InputError, match="there is no such file"):
        remote.fetch(f"{address}/missing.csv", tmp_path)
    with pytest.raises(InputError, match="nothing"):
        remote.fetch("nothing://host/a.csv", tmp_path)
    with pytest.raises(InputError, match="chained"):
        remote.fetch("simplecache::memory://a.csv", tmp_path)
    with pytest.raises(OSError, match=r"http://127\.0\.0\.1:1/a\.csv") as caught:
        remote.fetch("http://name:secret@127.0.0.1:1/a.csv?signature=1", tmp_path)
    assert not isinstance(caught.value, InputError)


@pytest.mark.usefixtures("cases_in_threads")
def test_a_cohort_from_a_web_server_equals_that_of_local_files(server, tmp_path):
    served, address = server
    files = [served / "first.csv", served / "second.csv"]
    for annotators, file in zip(("ab", "cd"), files, strict=True):
        rows = [f"{name},t{task},{'xy'[task % 2]}\n" for name in annotators for task in range(9)]
        file.write_text("annotator,task,label\n" + "".join(rows))
    words = ";".join(f"{address}/served/{file.name}" for file in files)
    for name, cells in (("near", ";".join(map(str, files))), ("far", words)):
        manifest = tmp_path / f"{name}.csv"
        manifest.write_text(f"case,kind,files,algorithm\ncrowd,labels,{cells},majority\n")
        assert main(["batch", str(manifest), "-o", str(tmp_path / name), "--jobs", "1"]) == 0
    tables = ["annotators.csv", "confusion.csv", "labels.csv"]
    results = [tmp_path / name / "cases" / "crowd" / "results" for name in ("near", "far")]
    assert [(results[0] / table).read_bytes() for table in tables] == [
        (results[1] / table).read_bytes() for table in tables
    ]
    asked = len(Handler.asked)
    assert main(["batch", str(manifest), "-o", str(tmp_path / "far"), "--jobs", "1"]) == 0
    assert len(Handler.asked) == asked


def test_import_keeps_remote_files_beside_the_study(server, tmp_path):
    served, address = server
    (served / "votes.csv").write_text("task,annotator,label\nt1,a,x\nt1,b,x\nt2,a,y\nt2,b,x\n")
    study = tmp_path / "s.rscope"
    assert main(["import", str(study), f"{address}/served/votes.csv"]) == 0
    assert [path.name for path in (tmp_path / "s-files").rglob("*.csv")] == ["votes.csv"]
