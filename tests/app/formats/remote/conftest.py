"""A real archive, started by the test."""

import contextlib
import json
import random
import shutil
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

PLUGIN = Path("/usr/share/orthanc/plugins/libOrthancDicomWeb.so")


def free_port():
    """Choose a port that no connection of another test takes before the archive does."""
    ports = list(range(20_000, 32_000))  # below those that systems give to connections
    random.shuffle(ports)
    for port in ports:
        with socket.socket() as free, contextlib.suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


@contextlib.contextmanager
def orthanc(folder, **settings):
    """Run an empty archive; its port of HTTP."""
    port = free_port()
    folder.mkdir()
    settings = {
        "HttpPort": port, "DicomServerEnabled": False, "StorageDirectory": str(folder),
        "IndexDirectory": str(folder), **settings,
    }  # fmt: skip
    (folder / "orthanc.json").write_text(json.dumps(settings))
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(["Orthanc", str(folder / "orthanc.json")], stdout=log, stderr=log)
    try:
        while process.poll() is None:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/system", timeout=5)
                break
            except urllib.error.HTTPError:
                break  # it asks for the password
            except OSError:
                time.sleep(0.05)
        assert process.poll() is None, (folder / "log").read_text()
        yield port
    finally:
        process.kill()  # it takes seconds to end by itself
        process.wait(30)


@pytest.fixture
def archive(tmp_path):
    """The address of an empty archive on this computer, which asks for a password."""
    if not (shutil.which("Orthanc") and PLUGIN.exists()):
        pytest.skip("the archive Orthanc is not installed")
    users = {"AuthenticationEnabled": True, "RegisteredUsers": {"anna": "secret"}}
    web = {"Plugins": [str(PLUGIN)], "DicomWeb": {"Enable": True, "Root": "/dicom-web/"}}
    with orthanc(tmp_path / "archive", **users, **web) as port:
        yield f"http://127.0.0.1:{port}/dicom-web"


@pytest.fixture(scope="module")
def running_node(tmp_path_factory):
    """The ports of HTTP and DIMSE of an archive on this computer, which knows RATERSCOPE only."""
    if not shutil.which("Orthanc"):
        pytest.skip("the archive Orthanc is not installed")
    port = free_port()
    settings = {
        "DicomServerEnabled": True, "DicomPort": port, "DicomAet": "ARCHIVE", "DicomCheckCalledAet": True,
        "DicomAlwaysAllowGet": False, "DicomAlwaysAllowFind": False,
        "DicomModalities": {
            "raterscope": {
                "AET": "RATERSCOPE", "Host": "127.0.0.1", "Port": 104, "AllowGet": True, "AllowFind": True,
            }
        },
    }  # fmt: skip
    with orthanc(tmp_path_factory.mktemp("archive") / "node", **settings) as web:
        yield web, port


@pytest.fixture
def node(running_node):
    """The address of the archive with DIMSE, which is empty at first."""
    web, port = running_node
    patients = f"http://127.0.0.1:{web}/patients"
    for patient in json.load(urllib.request.urlopen(patients, timeout=30)):
        urllib.request.urlopen(urllib.request.Request(f"{patients}/{patient}", method="DELETE"), timeout=30)
    return f"dicom://ARCHIVE@127.0.0.1:{port}"
