"""A function of each item of data, in processes that take as many items as they are fast."""

from __future__ import annotations

import copy
import importlib
import math
import multiprocessing
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import apportion
import map_jobs
import pytest
from apportion import _native
from apportion._map import Chunk, Worker, _crowded

CORES = sorted(os.sched_getaffinity(0))


def simulate(
    count: int,
    speeds: list[float],
    late: float = 0.0,
    change: float = 1.0,
    trials: list[float] | None = None,
) -> tuple[float, list[int]]:
    """Time and items of a call whose workers have these speeds, the last ready late, the first changing."""
    pieces = _native._Pieces(count, len(speeds), None)
    asks = [0.0] * (len(speeds) - 1) + [late]
    running: set[int] = set()
    now, last, sent, counts = 0.0, 0.0, 0, [0] * len(speeds)
    while min(asks) < math.inf:
        rank = asks.index(min(asks))
        now = asks[rank]
        if rank in running:
            running.remove(rank)
            pieces.ended(rank, now)
            last = now
            asks = [
                ask if other in running or (late > now and other == len(speeds) - 1) else now
                for other, ask in enumerate(asks)
            ]
        order = pieces.next(rank, now)
        if order is None:
            asks[rank] = math.inf
        elif isinstance(order, float):
            asks[rank] = max(order, now + 1e-3)
        else:
            begin, end = order
            assert begin == sent < end <= count
            pace = change if rank == 0 and sent > count // 2 else 1.0
            asks[rank] = now + (end - begin) / (speeds[rank] * pace)
            if trials and not counts[rank]:
                asks[rank] = now + trials[rank]
            running.add(rank)
            sent = end
            counts[rank] += end - begin
    # Nobody works: then nothing may be left.
    assert sent == count and not running
    return last, counts


@pytest.mark.parametrize("seed", range(20))
def test_workers_of_known_speeds_finish_together(seed: int) -> None:
    draw = random.Random(seed)
    speeds = [draw.choice([1, 3, 10, 100]) * draw.uniform(50, 100) for _ in range(draw.randint(1, 6))]
    count = draw.randint(5000, 200_000)
    seconds, counts = simulate(count, speeds, late=draw.choice([0.0, 0.05]))
    assert sum(counts) == count
    # The last chunks, and an item of the slowest, are what is left of imbalance.
    assert seconds <= 1.02 * count / sum(speeds) + 0.06 + 1 / min(speeds)


def test_a_worker_that_becomes_slow_gets_less() -> None:
    seconds, counts = simulate(100_000, [100.0, 100.0], change=0.1)
    assert counts[0] < counts[1] / 1.5
    assert seconds <= 1.3 * (50_000 / 200 + 50_000 / 110)


def test_long_items_are_not_left_to_the_slow() -> None:
    # The fast one does two items while the slow one does its first; nothing is begun that ends after it all.
    seconds, counts = simulate(40, [1.0, 0.05])
    assert counts[1] <= 2 and seconds <= 41


def test_a_worker_whose_first_item_compiles_still_takes_part() -> None:
    # Their first items take 5 s and 9 s, and all others a millisecond. By its first item alone, the second would
    # need longer for another than the first for all that are left.
    seconds, counts = simulate(6000, [1000.0, 1000.0], trials=[5.0, 9.0])
    assert counts[1] > 500 and seconds <= 10.3
    # What is in its first item for long is slow.
    seconds, counts = simulate(2000, [1000.0, 1000.0], trials=[0.001, 9.0])
    assert counts[1] == 1 and seconds == 9.0


def test_forecasts_of_the_rivals() -> None:
    worker = Worker("p0", [Chunk(1, 0.5, 0.0, 1.0), Chunk(10, 2.0, 1.0, 3.0)], first_end=1.5)
    # After the first chunk: 0.3 s an item with messages, 0.2 s without, 0.1 s if nobody took the core.
    assert worker.even_seconds(11) == pytest.approx(1.5 + 10 * 0.3)
    assert worker.alone_seconds(11, crowded=False) == pytest.approx(0.5 + 10 * 0.2)
    assert worker.alone_seconds(11, crowded=True) == pytest.approx(0.5 + 10 * 0.1)
    core = CORES[0]
    assert _crowded([[core], [core]]) and _crowded([None] * (len(CORES) + 1))
    assert not _crowded([[core]]) and not _crowded([None] * len(CORES))
    results = apportion.Results([1, 2])
    results.processors, results.counts, results.compute = ["p0", "p1"], [1, 1], [0.5, 0.25]
    results.seconds, results.even_seconds, results.alone_seconds = 2.0, 3.0, 4.0
    assert results.gain == 1.5
    assert re.search(r"2 items on 2 workers: 2.00 s\n(.*\n)*p0 +1 +500 ms\n", results.summary())
    assert results.summary().endswith("1.50 times as fast as the better of them")
    results.alone_seconds = 0.5
    assert results.gain == 0.25 and results.summary().endswith("does not pay: a loop is faster")
    results.alone_seconds, results.even_seconds = 4.0, 1.0
    assert results.gain == 0.5 and results.summary().endswith("do not pay: an even split is faster")


def test_results_come_in_order_as_a_list() -> None:
    found = apportion.map(map_jobs.square, range(1000), workers=2)
    assert found == [x * x for x in range(1000)] and isinstance(found, list)
    assert sum(found.counts) == 1000 and len(found.processors) == len(found.counts) == len(found.compute)
    assert found.seconds > 0 and found.gain > 0 and found.even_seconds > 0 and found.alone_seconds > 0
    for again in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert again == found and again.counts == found.counts and again.gain == found.gain


def test_every_item_is_computed_once(tmp_path: Path, monkeypatch) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv(map_jobs.LOG, str(log))
    assert apportion.map(map_jobs.logged, range(700), workers=3) == list(range(700))
    assert sorted(map(int, log.read_text().split())) == list(range(700))


def test_a_slow_worker_gets_fewer_items(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv(map_jobs.LOG, str(tmp_path / "slow"))
    found = apportion.map(map_jobs.unequal, range(400), workers=2)
    assert len({process for process, _ in found}) == 2
    slow = sum(pace == 4e-3 for _, pace in found)
    # A fifth of the items, by speed; sleeps that the system makes longer change it.
    assert 20 < slow < 150 and sorted(found.counts) == sorted([slow, 400 - slow])


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_few_items(count: int) -> None:
    found = apportion.map(map_jobs.square, list(range(count)), workers=4)
    assert found == [x * x for x in range(count)] and sum(found.counts) == count
    assert found.summary()


def test_data_of_any_kind(needs) -> None:
    assert apportion.map(map_jobs.square, (x for x in range(5)), workers=2) == [0, 1, 4, 9, 16]
    assert apportion.map(str, {"a": 1, "b": 2}, workers=2) == ["a", "b"]
    numpy = needs("numpy")
    rows = numpy.arange(12.0).reshape(6, 2)
    assert apportion.map(numpy.sum, rows, workers=numpy.int64(2)) == list(rows.sum(axis=1))
    assert apportion.map(map_jobs.square, numpy.float64(3) * numpy.arange(3), workers=2) == [0, 9, 36]

    def broken():
        yield 1
        raise OSError("the file ends")

    with pytest.raises(OSError, match="the file ends"):
        apportion.map(map_jobs.square, broken(), workers=2)


def test_processes_run_on_the_cores_that_they_are_given() -> None:
    found = apportion.map(map_jobs.affinity, range(50), {"first": CORES[:1], "last": CORES[-1:]})
    assert {tuple(cores) for cores in found} <= {(CORES[0],), (CORES[-1],)}
    assert set(found.processors) <= {"first", "last"}
    assert set(apportion.map(map_jobs.square, range(50)).processors) <= set(apportion.processors())
    # Cores that are alike need no process each, but what is imported sees one.
    places = [tuple(cores) for cores in apportion.processors().values()]
    for at_import, now in apportion.map(map_jobs.cores_at_import, range(50)):
        assert at_import in places and now == (tuple(CORES) if _native._cores_are_alike() else at_import)
    assert os.sched_getaffinity(0) == set(CORES)


def children() -> set[int | None]:
    """The processes of this one."""
    return {child.pid for child in multiprocessing.active_children()}


def test_processes_stay_for_the_next_call(monkeypatch) -> None:
    assert apportion.map(abs, range(-2, 2), workers=2) == [2, 1, 0, 1]
    first = children()
    # Those that have not begun yet answer a call that is over.
    assert apportion.map(map_jobs.square, range(3), workers=2) == [0, 1, 4]
    assert apportion.map(str, range(3), workers=1) == ["0", "1", "2"]
    assert children() == first and len(first) >= 2
    assert apportion.map(str, range(5), workers=3) == ["0", "1", "2", "3", "4"]
    assert first < children()
    # What is left in a module stays.
    assert len({number for number, _ in apportion.map(map_jobs.calls, range(20), workers=1)}) == 20
    assert apportion.map(map_jobs.calls, [0], workers=1)[0][0] > 20


def test_processes_are_what_new_ones_would_be(tmp_path: Path, monkeypatch) -> None:
    def changed() -> bool:
        before = children()
        assert apportion.map(map_jobs.surroundings, ["TEST_MAP"], workers=1) == [
            (os.environ.get("TEST_MAP"), os.getcwd())
        ]
        return not before & children()

    changed()
    assert not changed()
    monkeypatch.setenv("TEST_MAP", "set")
    assert changed() and not changed()
    monkeypatch.chdir(tmp_path)
    assert changed() and not changed()
    monkeypatch.syspath_prepend(tmp_path)
    assert changed() and not changed()
    with pytest.raises(KeyError):
        apportion.map(map_jobs.failing, [17], workers=1)
    assert changed() and not changed()


def test_a_module_that_is_edited_is_imported_again(tmp_path: Path, monkeypatch) -> None:
    file = tmp_path / "map_edited.py"
    file.write_text("def f(x):\n    return x\n")
    monkeypatch.syspath_prepend(tmp_path)
    edited = importlib.import_module("map_edited")
    assert apportion.map(edited.f, [3], workers=1) == [3]
    file.write_text("def f(x):\n    return 100 * x\n")
    importlib.invalidate_caches()
    edited = importlib.reload(edited)
    assert apportion.map(edited.f, [3], workers=1) == [300]


def test_a_function_that_is_defined_again_is_the_one_that_runs(tmp_path: Path) -> None:
    pytest.importorskip("cloudpickle")
    script = tmp_path / "job.py"
    script.write_text("import apportion\ndef g(x):\n    return x\ndef f(x):\n    return g(x)\n")
    lines = [
        "print(apportion.map(f, [1, 2], workers=1))",
        "def g(x): return 10 * x",
        "",
        "print(apportion.map(f, [1, 2], workers=1))",
        "f = lambda x: 100 * x",
        "print(apportion.map(f, [1, 2], workers=1))",
    ]
    done = python("-i", str(script), input="\n".join(lines) + "\n")
    assert done.stdout.split("\n")[:3] == ["[1, 2]", "[10, 20]", "[100, 200]"], done.stderr
    notebook = "import apportion\n" + "".join(
        f"exec({code!r})\n" for code in [script.read_text(), *("\n".join(lines).split("\n\n"))]
    )
    done = python("-c", notebook)
    assert done.stdout.split("\n")[:3] == ["[1, 2]", "[10, 20]", "[100, 200]"], done.stderr


FORKED = """
import os, sys, apportion, multiprocessing
if __name__ == "__main__":
    apportion.map(abs, range(10), workers=2)
    child = os.fork()
    assert apportion.map(abs, [-1, -2], workers=2) == [1, 2]
    if not child:
        sys.exit()
    _, status = os.waitpid(child, 0)
    assert apportion.map(abs, [-1, -2], workers=2) == [1, 2]
    print(status, *(child.pid for child in multiprocessing.active_children()))
"""


def test_processes_are_of_one_program_and_end_with_it(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(FORKED)
    done = python(str(script))
    status, *workers = map(int, done.stdout.split())
    assert done.returncode == 0 and status == 0 and workers and done.stderr == "", done
    assert not [worker for worker in workers if Path(f"/proc/{worker}").exists()]


def test_threads_call_at_the_same_time() -> None:
    with ThreadPoolExecutor(3) as threads:
        calls = [threads.submit(apportion.map, map_jobs.square, range(number), 1) for number in (5, 6, 7)]
    assert [call.result() for call in calls] == [[x * x for x in range(number)] for number in (5, 6, 7)]


def test_costs_of_items() -> None:
    costs = [1.0] * 99 + [100.0]
    found = apportion.map(map_jobs.square, range(100), workers=2, costs=iter(costs))
    assert found == [x * x for x in range(100)] and sum(found.counts) == 100
    assert apportion.map(map_jobs.square, [], workers=2, costs=[]) == []
    for wrong, words in [
        ([1.0], "costs: 1 for 2 items"),
        ([1.0, -1.0], "costs: the cost of unit 1 is -1"),
        ([1.0, math.nan], "costs: the cost of unit 1 is NaN"),
    ]:
        with pytest.raises(ValueError, match=words):
            apportion.map(abs, [1, 2], workers=2, costs=wrong)
    for wrong in (5, ["one", "two"]):
        with pytest.raises(TypeError, match="costs: .* is no list of numbers"):
            apportion.map(abs, [1, 2], workers=2, costs=wrong)


def test_an_exception_arrives_with_its_item() -> None:
    with pytest.raises(KeyError, match="seventeen") as caught:
        apportion.map(map_jobs.failing, range(100), workers=2)
    [note] = caught.value.__notes__
    assert re.match(
        r"item 17 of the data, on worker p[01]:\n.*map_jobs.py.*, line \d+, in failing", note, re.S
    )
    with pytest.raises(RuntimeError, match="item 0: Peculiar: is odd") as caught:
        apportion.map(map_jobs.peculiar, [1], workers=1)
    with pytest.raises(SystemExit, match="enough"):
        apportion.map(map_jobs.leaving, [1], workers=1)


def test_what_cannot_be_sent_is_said_with_the_item() -> None:
    with pytest.raises(TypeError, match=r"item 3: its result cannot be sent .*\(return numbers"):
        apportion.map(map_jobs.unsendable, range(10), workers=2)
    with pytest.raises(TypeError, match="data: item 1 cannot be sent .*lock"):
        apportion.map(str, [1, threading.Lock()], workers=1)


def test_a_process_that_is_lost_is_said() -> None:
    with pytest.raises(RuntimeError, match="worker p[01] was lost: its process ended with status 3"):
        apportion.map(map_jobs.dying, range(10), workers=2)


def test_wrong_arguments() -> None:
    for arguments, words in [
        ((5, [1]), "f: 5 is no function"),
        ((abs, 5), "data: 5 has no items"),
        ((abs, [1], "four"), "workers: 'four' is no number of processes"),
        ((abs, [1], object), "workers: .* is no number of processes"),
        ((abs, [1], Executor()), "does not say how many"),
    ]:
        with pytest.raises(TypeError, match=words):
            apportion.map(*arguments)
    for workers, words in [
        (0, r"0 is no number of workers \(pass one from 1 on"),
        (-1, r"-1 is no number of workers \(pass one from 1 on"),
        ({}, "there are none"),
        ({"a": [99999]}, "no core 99999"),
    ]:
        with pytest.raises(ValueError, match=f"workers: .*{words}"):
            apportion.map(abs, [1], workers)


def test_nothing_is_printed_unless_it_is_asked_for(capfd) -> None:
    apportion.map(abs, range(10), workers=2)
    assert capfd.readouterr() == ("", "")
    apportion.map(abs, range(10), workers=2, verbose=True)
    out, err = capfd.readouterr()
    assert out == "" and err.startswith("apportion.map: 10 items on ")


def test_local_functions_need_cloudpickle(monkeypatch) -> None:
    offset = 10
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "cloudpickle", None)
        with pytest.raises(
            ValueError, match="<lambda>: another process cannot import it .*pip install cloudpickle"
        ):
            apportion.map(lambda x: x + offset, range(5), workers=2)
    pytest.importorskip("cloudpickle")
    assert apportion.map(lambda x: x + offset, range(5), workers=2) == [10, 11, 12, 13, 14]
    lock = threading.Lock()
    with pytest.raises(ValueError, match="cannot be sent to another process: TypeError.*lock"):
        apportion.map(lambda x: lock, range(5), workers=2)


def python(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=120, **options
    )


NOTEBOOK = """
import apportion, dataclasses
@dataclasses.dataclass
class Point:
    x: int
scale = 3
def scaled(point):
    return Point(point.x * scale)
found = apportion.map(scaled, [Point(x) for x in range(20)], workers=2)
assert found == [Point(3 * x) for x in range(20)] and type(found[0]) is Point
print(sum(found.counts))
"""


def test_functions_and_classes_of_a_notebook() -> None:
    pytest.importorskip("cloudpickle")
    done = python("-c", NOTEBOOK)
    assert done.returncode == 0 and done.stdout == "20\n", done.stderr
    without = "import sys; sys.modules['cloudpickle'] = None\n"
    done = python("-c", without + NOTEBOOK)
    assert done.returncode == 1 and "pip install cloudpickle" in done.stderr.splitlines()[-1], done.stderr


GUARDED = """
import sys
sys.modules["cloudpickle"] = None
import apportion
def cube(x):
    return x ** 3
if __name__ == "__main__":
    print(apportion.map(cube, range(5), workers=2))
"""


def test_a_script_maps_its_own_function(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(GUARDED)
    done = python(str(script))
    assert done.returncode == 0 and done.stdout == "[0, 1, 8, 27, 64]\n", done.stderr
    script.write_text(GUARDED.replace('if __name__ == "__main__":', "if True:"))
    done = python(str(script))
    *_, last = done.stderr.splitlines()
    assert done.returncode == 1 and "each process imports the script" in last and "__main__" in last, (
        done.stderr
    )
    assert done.stderr.count("Traceback") == 1


def test_a_process_that_cannot_start_others_says_why(tmp_path: Path, needs) -> None:
    needs("joblib")
    done = python("-", input=GUARDED)
    *_, last = done.stderr.splitlines()
    assert done.returncode == 1 and "read from standard input" in last and "save it in a file" in last, (
        done.stderr
    )
    pools = [
        "import multiprocessing\n    with multiprocessing.get_context('spawn').Pool(1) as pool:\n        pool.map(inner, [1])",
        "import joblib\n    joblib.Parallel(2)(joblib.delayed(inner)(i) for i in range(2))",
    ]
    for number, pool in enumerate(pools):
        script = tmp_path / f"pool{number}.py"
        script.write_text(
            "import apportion\ndef inner(x):\n    return sum(apportion.map(abs, range(3), workers=1))\n"
            f"if __name__ == '__main__':\n    {pool}\n"
        )
        done = python(str(script))
        last = done.stderr.splitlines()[-1]
        assert done.returncode == 1 and "a worker of another pool" in last and "__main__" not in last, (
            done.stderr
        )


INTERRUPTED = """
import os, time, apportion
def work(x):
    if x < 2:
        os.write(1, f"{os.getpid()}\\n".encode())
    time.sleep(0 if x < 1 else 60)
if __name__ == "__main__":
    apportion.map(work, range(1000), workers=2)
"""


@pytest.mark.parametrize("whom", ["process", "group"])
def test_an_interrupt_leaves_no_processes(whom: str, tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(INTERRUPTED)
    job = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert job.stdout
    workers = {int(job.stdout.readline()) for _ in range(2)}
    (os.killpg if whom == "group" else os.kill)(job.pid, signal.SIGINT)
    _, err = job.communicate(timeout=30)
    assert job.returncode != 0 and "KeyboardInterrupt" in err and err.count("Traceback") == 1, err
    assert not [worker for worker in workers if Path(f"/proc/{worker}").exists()]


def test_executors_of_the_standard_library() -> None:
    with ThreadPoolExecutor(3) as threads, ProcessPoolExecutor(2) as processes:
        for executor in (threads, processes):
            found = apportion.map(map_jobs.square, range(200), executor)
            assert found == [x * x for x in range(200)] and sum(found.counts) == 200
            with pytest.raises(KeyError) as caught:
                apportion.map(map_jobs.failing, range(100), executor)
            assert caught.value.__notes__[0].startswith("item 17 of the data")
        pytest.importorskip("cloudpickle")
        assert apportion.map(lambda x: x + 1, range(5), processes) == [1, 2, 3, 4, 5]


def test_executor_of_joblib(needs) -> None:
    loky = needs("joblib").externals.loky
    found = apportion.map(lambda x: x + 1, range(100), loky.get_reusable_executor(max_workers=2))
    assert found == list(range(1, 101)) and sum(found.counts) == 100


def test_client_and_executor_of_dask(needs) -> None:
    distributed = needs("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        for workers in (client, client.get_executor()):
            found = apportion.map(lambda x: x + 1, range(100), workers)
            assert found == list(range(1, 101)) and sum(found.counts) == 100
            assert all("://" in name for name in found.processors)
            with pytest.raises(KeyError) as caught:
                apportion.map(map_jobs.failing, range(100), workers)
            assert caught.value.__notes__[0].startswith("item 17 of the data")
