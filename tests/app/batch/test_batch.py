"""Cohorts: manifests, resuming, failures, and workers that die."""

import csv
import multiprocessing
import os
import signal
import subprocess
from concurrent.futures import Future

import numpy as np
import pytest

from raterscope.algorithms.progress import silent
from raterscope.app.batch.cohort import run_cases, shard
from raterscope.app.batch.executors import (
    LocalExecutor,
    LostError,
    WorkerDiedError,
    slurm_script,
    snakemake_script,
)
from raterscope.app.batch.manifest import Case, read_manifest
from raterscope.app.batch.task import DRAFTS, claim, folder_of, read_record
from raterscope.app.cli import main
from raterscope.app.errors import TableProblems
from tests.app.batch.threads import Threads
from tests.app.kinds.masks.made import four_raters
from tests.app.tables import rows_of


def a_crowd(path, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, 30)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["task", "annotator", "label"])
        for annotator in range(5):
            for task, answer in enumerate(truth):
                label = answer if rng.random() < 0.8 else rng.integers(3)
                writer.writerow([f"t{task}", f"a{annotator}", "xyz"[label]])
    return path


def a_manifest(folder, *rows, header="case,kind,files,algorithm,settings"):
    path = folder / "cases.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


@pytest.fixture
def cohort(tmp_path):
    """Three crowds, of which the last cannot be read."""
    for seed, name in enumerate(("one", "two")):
        a_crowd(tmp_path / f"{name}.csv", seed)
    (tmp_path / "three.csv").write_text("task,annotator,label\nt1,,x\n")
    rows = [f"{name},labels,{name}.csv,majority," for name in ("one", "two", "three")]
    return read_manifest(a_manifest(tmp_path, *rows))


def in_threads(cases, output, executor=Threads, **options):
    return run_cases(cases, output, executor, silent, **options)


def statuses(output):
    with (output / "status.csv").open(newline="") as file:
        return {row["case"]: row["status"] for row in csv.DictReader(file)}


def test_every_problem_of_a_manifest_is_listed(tmp_path):
    a_crowd(tmp_path / "votes.csv")
    rows = (
        "a,labels,votes.csv,majority,",
        "A,labels,votes.csv,majority,",
        "b,labels,missing.csv,,",
        "c,sounds,votes.csv,,",
        "d,labels,votes.csv,laplace,",
        "e,labels,votes.csv,pooled,oops",
        ",labels,votes.csv,,",
    )
    with pytest.raises(TableProblems) as caught:
        read_manifest(a_manifest(tmp_path, *rows))
    lines = [problem.split(":")[0] for problem in caught.value.problems]
    assert lines == [f"line {number}" for number in range(3, 9)]
    with pytest.raises(TableProblems, match="unknown column colour"):
        read_manifest(a_manifest(tmp_path, "a,labels,votes.csv,red", header="case,kind,files,colour"))


def test_the_results_equal_those_of_the_other_commands(cases_in_threads, tmp_path, capsys):
    (tmp_path / "masks").mkdir()
    four_raters(tmp_path / "masks")
    a_crowd(tmp_path / "votes.csv")
    manifest = a_manifest(tmp_path, "votes,labels,votes.csv,ibcc,", "ball,masks,masks/*.nii.gz,staple,")
    assert main(["batch", str(manifest), "-o", str(tmp_path / "out"), "--jobs", "1"]) == 0
    assert statuses(tmp_path / "out") == {"votes": "done", "ball": "done"}
    study = tmp_path / "s.rscope"
    assert main(["import", str(study), str(tmp_path / "votes.csv")]) == 0
    assert main(["run", str(study), "ibcc"]) == 0
    assert main(["export", str(study), "--what", "probability", "-o", str(tmp_path / "p.csv")]) == 0
    results = folder_of(tmp_path / "out", "votes") / "results"
    assert (results / "probability.csv").read_bytes() == (tmp_path / "p.csv").read_bytes()
    assert (folder_of(tmp_path / "out", "ball") / "results" / "consensus.nii.gz").exists()
    assert "2 done" in capsys.readouterr().out


def test_a_failed_case_stops_no_other_and_only_changed_cases_are_done_again(cohort, tmp_path):
    output = tmp_path / "out"
    records = in_threads(cohort, output)
    assert statuses(output) == {"one": "done", "two": "done", "three": "bad input"}
    assert "three.csv, line 2" in records["three"].reason
    a_crowd(tmp_path / "two.csv", seed=5)
    again = in_threads(cohort, output)
    assert again["one"] == records["one"]
    assert again["two"].digest != records["two"].digest
    a_crowd(tmp_path / "three.csv", seed=6)
    in_threads(cohort, output)
    assert set(statuses(output).values()) == {"done"}


def test_what_a_killed_worker_left_is_removed(cohort, tmp_path):
    left = tmp_path / "out" / DRAFTS / "one.host.1234"
    left.mkdir(parents=True)
    in_threads(cohort[:1], tmp_path / "out")
    assert not left.exists()


def test_results_that_a_killed_worker_moved_away_are_put_back(cohort, tmp_path):
    record = in_threads(cohort[:1], tmp_path / "out")["one"]
    folder = folder_of(tmp_path / "out", "one")
    folder.rename(tmp_path / "out" / DRAFTS / "one.host.1234.1.earlier")
    (tmp_path / "one.csv").write_text("task,annotator,label\nt1,,x\n")
    assert in_threads(cohort[:1], tmp_path / "out")["one"].status == "bad input"
    a_crowd(tmp_path / "one.csv")
    again = in_threads(cohort[:1], tmp_path / "out")["one"]
    assert (again.status, again.digest) == ("done", record.digest)


def test_files_out_of_reach_do_not_cost_results(cohort, tmp_path):
    output = tmp_path / "out"
    records = in_threads(cohort[:1], output)
    (tmp_path / "one.csv").rename(tmp_path / "away.csv")
    assert in_threads(cohort[:1], output, retries=0)["one"].status == "temporary fault"
    assert statuses(output) == {"one": "temporary fault"}
    (tmp_path / "away.csv").rename(tmp_path / "one.csv")
    assert in_threads(cohort[:1], output) == records


def test_a_case_that_another_worker_is_at_is_not_done_twice(cohort, tmp_path):
    output = tmp_path / "out"
    with Threads(2) as threads, claim(output, "one"):
        futures = [threads.submit(in_threads, cohort[:1], output) for _ in range(2)]
        assert not folder_of(output, "one").exists()
    first, second = (future.result()["one"] for future in futures)
    assert first == second


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_is_killed_takes_no_other_with_it():
    before = set(multiprocessing.active_children())  # decoders of other tests
    executor = LocalExecutor(2)
    futures = [executor.submit(os.path.basename, f"a/{number}") for number in range(4)]
    victim = executor.submit(die)
    futures += [executor.submit(os.path.basename, f"a/{number}") for number in range(4, 8)]
    assert [future.result() for future in futures] == [str(number) for number in range(8)]
    with pytest.raises(WorkerDiedError):
        victim.result()
    executor.shutdown()
    assert set(multiprocessing.active_children()) <= before


class Deadly(Threads):
    """An executor whose worker dies of a certain case."""

    def submit(self, function, cases, *arguments):
        if any(case.name == "one" for case, _ in cases):
            future = Future()
            future.set_exception(WorkerDiedError())
            return future
        return super().submit(function, cases, *arguments)


class DeadlyInGroups(Deadly):
    """An executor that takes many cases at once, and whose worker dies of a certain case."""

    slots = 1
    task_seconds = 1e9


@pytest.mark.parametrize("executor", [Deadly, DeadlyInGroups])
def test_the_case_that_kills_its_worker_is_found_and_the_others_are_done(tmp_path, executor):
    names = ["zero", *(f"crowd{number}" for number in range(5)), "one"]
    rows = [f"{name},labels,{a_crowd(tmp_path / f'{name}.csv').name},majority," for name in names]
    output = tmp_path / "out"
    records = in_threads(read_manifest(a_manifest(tmp_path, *rows)), output, executor, retries=1)
    assert statuses(output) == {name: "temporary fault" if name == "one" else "done" for name in names}
    assert "killed" in records["one"].reason
    assert read_record(output, "one") == records["one"]
    assert {name: record.attempts for name, record in records.items()} == {
        name: 2 if name == "one" else 1 for name in names
    }


class Forgetful(Threads):
    """An executor that loses its connection while the tasks go on."""

    made = 0

    def __init__(self):
        super().__init__(2)
        type(self).made += 1
        self.nth = self.made

    def submit(self, function, *arguments):
        future = super().submit(function, *arguments)
        if self.nth == 1:
            lost = Future()
            lost.set_exception(LostError())
            return lost
        return future


def test_a_lost_connection_costs_neither_a_case_nor_an_attempt(cohort, tmp_path):
    output = tmp_path / "out"
    records = in_threads(cohort[:2], output, Forgetful)
    assert statuses(output) == {"one": "done", "two": "done"}
    assert {record.attempts for record in records.values()} == {1}
    assert Forgetful.made == 2


@pytest.mark.parametrize("count", [1, 3, 7])
def test_shards_cover_every_case_once(count):
    cases = [Case(str(number), "labels", (), "majority") for number in range(10)]
    shards = [shard(cases, index, count) for index in range(1, count + 1)]
    assert sorted((case for some in shards for case in some), key=lambda case: int(case.name)) == cases


def test_scripts_name_every_shard_in_folders_of_any_name(tmp_path):
    name, text = slurm_script(tmp_path / "a b.csv", tmp_path / "out %a", 3)
    (tmp_path / name).write_text(text)
    assert "--array=1-3" in text
    assert f'--output="{tmp_path}/out %%a/slurm-%a.log"' in text
    subprocess.run(["bash", "-n", str(tmp_path / name)], check=True)
    _, snakefile = snakemake_script(tmp_path / "a b.csv", tmp_path / "{k}", 3)
    assert "{wildcards.shard}/3" in snakefile
    assert f"workdir: '{tmp_path}/{{k}}'" in snakefile
    assert f"-o '{tmp_path}/{{{{k}}}}'" in snakefile


@pytest.mark.usefixtures("cases_in_threads")
@pytest.mark.parametrize("table", [False, True])
def test_a_case_names_its_programs(tmp_path, capsys, table):
    masks = four_raters(tmp_path / "case")
    out = str(tmp_path / "out")
    if table:
        row = f"case,masks,{';'.join(map(str, masks))},dora"
        manifest = a_manifest(tmp_path, row, header="case,kind,files,programs")
        assert main(["batch", str(manifest), "-o", out]) == 0
        assert main(["batch", str(manifest), "--program", "dora", "-o", out]) == 1
        assert "a table has columns" in capsys.readouterr().err
    else:
        assert main(["batch", str(tmp_path / "case"), "--program", "dora", "-o", out]) == 0
    rows = rows_of(folder_of(tmp_path / "out", "case") / "results" / "annotators.csv")
    assert {row["annotator"] for row in rows if row["program"] == "1"} == {"dora"}


@pytest.mark.usefixtures("cases_in_threads")
def test_a_program_that_a_case_does_not_have_is_named(tmp_path, capsys):
    four_raters(tmp_path / "case")
    assert main(["batch", str(tmp_path / "case"), "--program", "unet", "-o", str(tmp_path / "out")]) == 65
    assert "there is no annotator unet; expected one of anna, ben" in capsys.readouterr().err
