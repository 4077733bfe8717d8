"""Functions measured in pinned processes, all at the same time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import apportion
import measured_jobs
import pytest

CORES = sorted(os.sched_getaffinity(0))


def test_times_of_a_function_on_each_processor() -> None:
    team = {"first": CORES[:1], "second": CORES[-1:]}
    models = measured_jobs.ticks.measure(team)
    assert models.processors == ["first", "second"] and models.kernel == "measured_jobs.ticks"
    for name in team:
        sizes = [size for size, _ in models.points(name)]
        assert sizes == [100, 200]
        # A sleep never ends early.
        assert models.seconds(name, 100) >= 100 * 2e-5 and models.seconds(name, 200) >= 200 * 2e-5
    assert sum(apportion.shares(1000, models=models).counts) == 1000
    assert os.sched_getaffinity(0) == set(CORES)


def test_a_measured_function_is_still_a_function() -> None:
    assert measured_jobs.ticks(3) == 3 and measured_jobs.ticks.__name__ == "ticks"


def test_arguments_are_prepared_outside_of_the_time() -> None:
    models = measured_jobs.prepared.measure({"one": CORES[:1]})
    assert models.seconds("one", 3) >= 1e-3


def test_each_process_runs_on_its_own_cores_only() -> None:
    assert measured_jobs.pinned.measure({"first": CORES[:1], "last": CORES[-1:]}).seconds("first", 1) > 0
    if len(CORES) > 1:
        with pytest.raises(RuntimeError, match="runs on cores"):
            measured_jobs.pinned.measure({"both": CORES[:2]})


def test_a_function_that_fails_ends_all_with_one_line() -> None:
    with pytest.raises(RuntimeError, match="processor a failed at size 2: ArithmeticError: two is too much"):
        measured_jobs.failing.measure({"a": CORES[:1], "b": CORES[:1]})
    with pytest.raises(RuntimeError, match="processor a was lost at size 1: its process ended"):
        measured_jobs.dying.measure({"a": CORES[:1]})


def test_what_no_process_could_run_is_refused() -> None:
    with pytest.raises(ValueError, match="has no core 99999 to run on"):
        measured_jobs.ticks.measure({"a": [99999]})
    with pytest.raises(ValueError, match="1.* is listed twice"):
        measured_jobs.ticks.measure({1: CORES[:1], "1": CORES[:1]})


def test_functions_of_notebooks_are_sent_by_cloudpickle(monkeypatch) -> None:
    factor = 1e-4

    def wait(size: int) -> None:
        time.sleep(size * factor)

    local = apportion.measured([10], seconds=0.05)(wait)
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "cloudpickle", None)
        with pytest.raises(ValueError, match="another process cannot import it .*install cloudpickle"):
            local.measure({"one": CORES[:1]})
    pytest.importorskip("cloudpickle")
    assert local.measure({"one": CORES[:1]}).seconds("one", 10) >= 1e-3
    lock = threading.Lock()
    with pytest.raises(ValueError, match="cannot be sent to another process: TypeError.*lock"):
        apportion.measured([1])(lambda size: lock).measure({"one": CORES[:1]})


SCRIPTS = {
    "each process imports the script and would begin again": (
        "@apportion.measured([1], seconds=0.05)\ndef work(size):\n    pass\nwork.measure()\n"
    ),
    "work: the process of core.* did not find it.*define it at the top level": (
        "if __name__ == '__main__':\n    @apportion.measured([1], seconds=0.05)\n    def work(size):\n"
        "        pass\n    work.measure()\n"
    ),
    "its process ended with status 3 while it imported the script": (
        "@apportion.measured([1], seconds=0.05)\ndef work(size):\n    pass\n"
        "if __name__ == '__mp_main__':\n    import os\n    os._exit(3)\n"
        "if __name__ == '__main__':\n    work.measure()\n"
    ),
}


@pytest.mark.parametrize("words", SCRIPTS)
def test_what_a_script_did_wrong_is_said_with_the_remedy(words: str, tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text("import apportion\n" + SCRIPTS[words])
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    *_, last = done.stderr.splitlines()
    assert done.returncode == 1 and re.search(words, last) and "__main__" in last, done.stderr
    # The traceback is the caller's only.
    assert done.stderr.count("Traceback") == 1, done.stderr


def test_a_script_measures_its_own_function(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(
        "import time, apportion\n"
        "@apportion.measured([10, 20], seconds=0.05)\n"
        "def work(size):\n"
        "    time.sleep(size * 1e-4)\n"
        "if __name__ == '__main__':\n"
        "    print(len(work.measure()))\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and int(done.stdout) == len(apportion.processors()), done.stderr
