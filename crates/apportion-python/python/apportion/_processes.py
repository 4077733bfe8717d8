"""Processes on chosen cores, each with the pipe that leads to it, and what can be sent to them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ._arguments import shown, whole

UNGUARDED = 86
"""Exit status of a process that would start others while it imports the script that started it."""

GUARD = 'put the script\'s own actions, but not its functions, under `if __name__ == "__main__":`'

LAST_SECONDS = 5.0
"""How long a process that has nothing left to do may take to end by itself."""


def line(error: BaseException, most: int = 300) -> str:
    """An error as one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:most]


def check_importing() -> None:
    """End a process that imports the script that started it and would now start processes itself."""
    from multiprocessing import process

    if getattr(process.current_process(), "_inheriting", False):
        os._exit(UNGUARDED)


def check_starting() -> None:
    """Refuse to start processes in one whose processes would fail."""
    import multiprocessing

    # Processes that a worker of joblib starts do not know the way in which joblib starts its own.
    method = multiprocessing.get_start_method(allow_none=True)
    foreign = method is not None and method not in multiprocessing.get_all_start_methods()
    if multiprocessing.current_process().daemon or foreign:
        raise RuntimeError(
            "apportion: this process is a worker of another pool, which cannot start processes (call it in the main "
            "process, or use a loop here)"
        )
    if getattr(sys.modules.get("__main__"), "__file__", None) == "<stdin>":
        raise RuntimeError(
            "apportion: the program is read from standard input, where other processes cannot import it (save it in a "
            "file)"
        )


def cores_by_name(place: str, given: Mapping[str, Iterable[int]]) -> dict[str, list[int]]:
    """The cores of each processor, all of which this process may use."""
    if not hasattr(given, "items"):
        raise TypeError(f"{place}: {shown(given)} is no dictionary (pass {{'p0': [0]}})")
    cores: dict[str, list[int]] = {}
    for name, own in given.items():
        if str(name) in cores:
            raise ValueError(f'{place}: "{name}" is listed twice (give every processor a name of its own)')
        cores[str(name)] = sorted({whole(place, core) for core in own})
    allowed = os.sched_getaffinity(0)
    for name, own in cores.items():
        missing = sorted(set(own) - allowed)
        if missing or not own:
            what = f"has no core {missing[0]} to run on" if missing else "has no cores"
            raise ValueError(f"{place}: {name} {what} (use some of {sorted(allowed)})")
    if not cores:
        raise ValueError(f"{place}: there are none (pass {{'p0': [0]}}, or leave it out)")
    return cores


def cloudpickled(value: Any, name: str) -> bytes:
    """A function that other processes cannot import, in bytes."""
    try:
        import cloudpickle  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise ValueError(
            f"{name}: another process cannot import it (define it at the top level of a file, or `pip install "
            "cloudpickle`, which sends functions of notebooks)"
        ) from None
    try:
        return bytes(cloudpickle.dumps(value))
    except Exception as error:
        raise ValueError(
            f"{name}: cannot be sent to another process: {line(error, 200)} (define it at the top level of a file)"
        ) from None


@contextmanager
def started(
    serve: Callable[..., None], arguments: Sequence[Any], cores: Iterable[Sequence[int] | None]
) -> Iterator[list[Any]]:
    """A process for each entry of `cores`, on these or anywhere, with its pipe: `serve(pipe, *arguments)`."""
    import signal
    from multiprocessing import get_context, resource_tracker

    check_starting()
    # It is started with the first process otherwise, and would take back the mask below.
    resource_tracker.ensure_running()
    context = get_context("spawn")
    team: list[Any] = []
    before = os.sched_getaffinity(0)
    try:
        for own in cores:
            here, there = context.Pipe()
            process = context.Process(target=serve, args=(there, *arguments))
            team.append((process, here))
            # A new process inherits the cores of this thread: packages that it imports see only these.
            os.sched_setaffinity(0, own or before)
            # Ctrl-C reaches all processes of a terminal; this one ends the others, even those that just start.
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                process.start()
            finally:
                os.sched_setaffinity(0, before)
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            there.close()
        yield team
    except BaseException:
        _end(team, 0.0)
        raise
    _end(team, LAST_SECONDS)


def ignore_interrupts() -> None:
    """Leave Ctrl-C to the process that started this one."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _end(team: Sequence[Any], seconds: float) -> None:
    """End all processes: by themselves, as their pipes are closed, or by force after some seconds."""
    import time

    deadline = time.monotonic() + seconds
    running = [process for process, _ in team if process.pid is not None]
    for _, here in team:
        here.close()
    for process in running:
        process.join(max(0.0, deadline - time.monotonic()))
    for process in running:
        process.kill()
    for process in running:
        process.join()


def receive_begin(process: Any, here: Any, processor: str, name: str) -> None:
    """Wait until a process has the function of this name."""
    try:
        word, why = here.recv()
    except (EOFError, OSError):
        process.join()
        if process.exitcode == UNGUARDED:
            raise RuntimeError(
                f"{name}: each process imports the script and would begin again ({GUARD})"
            ) from None
        raise RuntimeError(
            f"processor {processor} was lost: its process ended with status {process.exitcode} while it imported "
            f"the script ({GUARD})"
        ) from None
    if word == "missing":
        raise RuntimeError(
            f"{name}: the process of {processor} did not find it: {why} (define it at the top level of a module or "
            'script, not under `if __name__ == "__main__":`)'
        )
