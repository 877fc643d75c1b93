"""Backends: the same records whichever is used, whatever dies on the way."""

import signal
import subprocess
import sys
import time

import pytest

from children import interruptible
from collegium._util import plugins
from collegium.errors import BackendError, DataError, InputFileError, ModelError
from collegium.lab import monte_carlo
from collegium.lab.backends import Process, Ray, Serial
from collegium.lab.job import Job
from collegium.lab.records import Store
from lab_work import die_always, die_once, fail, mistake, square
from own_parts import write_parts
from serving import serve

JOBS = [Job("digits", 40, r, "B", epochs=2) for r in range(4)]


@pytest.fixture(autouse=True)
def as_important_as_others(monkeypatch):
    """Ray's workers give way to everybody: beside other tests on all cores they would hardly run."""
    monkeypatch.setenv("RAY_worker_niceness", "0")


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.npz")}


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    folder = tmp_path_factory.mktemp("serial")
    assert monte_carlo.train(JOBS, Store(folder), Serial(1)) == 4
    return contents(folder)


def test_nothing_finished_is_done_again(reference, tmp_path):
    store = Store(tmp_path)
    assert monte_carlo.train(JOBS[:2], store, Serial(1)) == 2
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.npz")}
    assert monte_carlo.train(JOBS, store, Serial(1)) == 2
    assert all(path.stat().st_mtime_ns == when for path, when in before.items())
    assert contents(tmp_path) == reference


def test_processes_give_the_same_bytes(reference, tmp_path):
    monte_carlo.train(JOBS, Store(tmp_path), Process(2))
    assert contents(tmp_path) == reference


def test_a_process_that_dies_is_replaced(tmp_path):
    jobs = [(str(tmp_path / "died"), i) for i in range(4)]
    assert dict(Process(2).map(die_once, jobs)) == {job: job[1] * 10 for job in jobs}


def test_processes_that_keep_dying_are_given_up():
    with pytest.raises(BackendError, match="died 3 times"):
        list(Process(1).map(die_always, [1]))


@pytest.mark.parametrize("backend", [Serial(1), Process(1)], ids=repr)
def test_mistakes_come_through(backend):
    with pytest.raises(ModelError, match="job 7 cannot be done"):
        list(backend.map(mistake, [7]))
    assert list(backend.map(square, [3])) == [(3, 9)]
    assert list(backend.map(square, [])) == []


@pytest.fixture(scope="module")
def own_jobs(tmp_path_factory):
    """With data and models that only a file holds; the second half of them wants processes of their own."""
    parts = write_parts(tmp_path_factory.mktemp("parts"))
    names = ("make", "make", "apart", "apart")
    return [Job(f"{parts}/my_data.py:load", 40, r, "", models=f"{parts}/my_models.py:{m}") for r, m in enumerate(names)]


@pytest.fixture(scope="module")
def own_reference(own_jobs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    assert monte_carlo.train(own_jobs, Store(folder), Serial(1)) == 4
    return contents(folder)


@pytest.mark.parametrize(
    "backend", [Serial(2), Process(2), pytest.param(Ray(workers=2), marks=pytest.mark.ray)], ids=repr
)
def test_own_data_and_models_give_the_same_bytes_everywhere(own_jobs, own_reference, tmp_path, monkeypatch, backend):
    if isinstance(backend, Ray):
        pytest.importorskip("ray")
    monkeypatch.chdir(tmp_path)
    monte_carlo.train(own_jobs, Store(tmp_path), backend)
    assert contents(tmp_path) == own_reference


def test_mistakes_of_own_files_come_through(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", sys.path.copy())
    (tmp_path / "mine.py").write_text(
        "class Mistake(Exception): pass\n\ndef make(train=None):\n    raise Mistake('no')\n"
    )
    written = f"{tmp_path}/mine.py:make"
    mistake = plugins.load(f"{tmp_path}/mine.py:Mistake", "")
    with pytest.raises(mistake, match=r"^no$"):
        list(Process(1).map(fail, [written]))
    with pytest.raises(InputFileError, match=r"^mine.py:make failed, line 4: Mistake: no$"):
        monte_carlo.train([Job("digits", 40, 0, "", models=written)], Store(tmp_path), Process(1))


class Never(Serial):
    def map(self, function, jobs):
        pytest.fail("work was begun")


def test_an_own_file_that_is_wrong_is_noticed_before_the_work(own_jobs, tmp_path):
    wrong = Job(own_jobs[0].dataset, 40, 9, "", models=own_jobs[0].models.replace(":make", ":mkae"))
    with pytest.raises(InputFileError, match="has no 'mkae' in it"):
        monte_carlo.train([own_jobs[0], wrong], Store(tmp_path), Never(1))


SCRIPT = """
import os, sys, time
from collegium.lab import monte_carlo
from collegium.lab.backends import Serial
from collegium.lab.job import Job
from collegium.lab.records import Store
folder, most, replace = sys.argv[1], int(sys.argv[2]), os.replace

def waits_before_the_last(*names):
    if sum(name.endswith(".npz") for name in os.listdir(folder)) == most:
        open(folder + "/waits", "w").close()
        time.sleep(1000)
    replace(*names)

os.replace = waits_before_the_last
monte_carlo.train([Job("digits", 40, r, "B", epochs=2) for r in range(4)], Store(folder), Serial(1))
"""


def test_killed_while_a_record_is_written_and_resumed(reference, tmp_path):
    """kill -9 when there is one record, and the next is written and not yet in its place; and again at two."""
    for records in (1, 2):
        with interruptible([sys.executable, "-c", SCRIPT, str(tmp_path), str(records)]) as worker:
            while worker.poll() is None and not (tmp_path / "waits").exists():
                time.sleep(0.01)
            worker.kill()
        assert worker.returncode == -signal.SIGKILL
        assert len(list(tmp_path.glob("*.npz"))) == records
        (tmp_path / "waits").unlink()
    monte_carlo.train(JOBS, Store(tmp_path), Serial(1))
    assert contents(tmp_path) == reference
    assert not list(tmp_path.glob("*.aside"))


ENDLESS = """
from collegium.lab.backends import Process
for _, pid in Process(1).map(eval, ["__import__('os').getpid()", "__import__('time').sleep(1000)"]):
    print(pid, flush=True)
"""


def test_workers_of_a_killed_laboratory_end():
    """They share its output, which ends with the last of them."""
    with interruptible([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE) as laboratory:
        assert int(laboratory.stdout.readline()) != laboratory.pid
        laboratory.kill()
        assert laboratory.communicate(timeout=250)[0] == b""


@pytest.mark.ray
def test_ray_gives_the_same_bytes(reference, tmp_path):
    pytest.importorskip("ray")
    monte_carlo.train(JOBS, Store(tmp_path), Ray(workers=2))
    assert contents(tmp_path) == reference


@pytest.mark.ray
def test_ray_lets_mistakes_through(tmp_path):
    pytest.importorskip("ray")
    with pytest.raises(DataError, match=r"^the layout AB names 2 families, but there are 9 agents$"):
        monte_carlo.train([Job("digits", 40, 0, "AB")], Store(tmp_path), Ray(workers=1))


@pytest.mark.ray
def test_a_node_killed_in_the_middle_loses_nothing(reference, tmp_path):
    """A local cluster of two nodes with one core each; the second is killed while jobs run."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        second = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        store = Store(tmp_path)
        made = []

        class Watched(Ray):
            def map(self, function, jobs):
                for pair in super().map(function, jobs):
                    made.append(pair[0])
                    if len(made) == 1:
                        cluster.remove_node(second, allow_graceful=False)
                    yield pair

        monte_carlo.train(JOBS, store, Watched(address=cluster.address))
    finally:
        cluster.shutdown()
    assert len(made) == 4
    assert contents(tmp_path) == reference


@pytest.mark.ray
def test_another_cluster_on_this_machine_is_joined_only_if_named(monkeypatch):
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    def cores(_):
        import ray

        return ray.cluster_resources()["CPU"]

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        assert list(Ray(workers=2).map(cores, [0])) == [(0, 2)]
        assert list(Ray(cluster.address).map(cores, [0])) == [(0, 1)]
        monkeypatch.setenv("RAY_ADDRESS", cluster.address)
        assert list(Ray(workers=2).map(cores, [0])) == [(0, 1)]
    finally:
        cluster.shutdown()


@pytest.mark.ray
@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.0.0.1:1 ", "[::1]:1", "a..b:80", "127.0.0.1:99999"])
def test_no_cluster_no_traceback(address):
    pytest.importorskip("ray")
    with pytest.raises(BackendError, match="cannot reach the Ray cluster at"):
        list(Ray(address).map(square, [1]))


@pytest.mark.ray
def test_the_port_of_somebody_else_is_noticed(monkeypatch):
    """Ray itself would try for minutes."""
    pytest.importorskip("ray")
    with serve(b"") as site:
        monkeypatch.setenv("RAY_ADDRESS", site.url.removeprefix("http://").partition("/")[0])
        with pytest.raises(BackendError, match="is not the port of a Ray cluster"):
            list(Ray().map(square, [1]))
