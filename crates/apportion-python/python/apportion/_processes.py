"""Processes on chosen cores, each with the pipe that leads to it, and what can be sent to them.

Those of `map` stay for its next call, unless a new process would be another: by its cores, or by what it inherits
and reads.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ._arguments import shown, whole

UNGUARDED = 86
"""Exit status of a process that would start others while it imports the script that started it."""

GUARD = 'put the script\'s own actions, but not its functions, under `if __name__ == "__main__":`'

LAST_SECONDS = 5.0
"""How long a process that has nothing left to do may take to end by itself."""

IDLE_SECONDS = 60.0
"""How long a process stays without work. It is not used any more after half of that, so that it cannot end then."""


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
    team: list[Any] = []
    try:
        _start(team, serve, arguments, cores)
        yield team
    except BaseException:
        _end(team, 0.0)
        raise
    _end(team, LAST_SECONDS)


def _start(
    team: list[Any], serve: Callable[..., None], arguments: Sequence[Any], cores: Iterable[Sequence[int] | None]
) -> None:
    """Add processes to a team."""
    import signal
    from multiprocessing import get_context, resource_tracker

    check_starting()
    # It is started with the first process otherwise, and would take back the mask below.
    resource_tracker.ensure_running()
    context = get_context("spawn")
    before = os.sched_getaffinity(0)
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


class Pool:
    """Processes that stay between calls. Each waits for a message that ends a call with an empty one."""

    def __init__(self, key: Any) -> None:
        self.key = key
        self.cores: list[Sequence[int] | None] = []
        self.team: list[Any] = []
        self.owed: list[int] = []
        """How often each has been given a function and has not answered that it found it."""
        self.used = time.monotonic()
        self._files: dict[str, float | None] = {}
        self.files_changed()

    def fits(self, key: Any, cores: Sequence[Sequence[int] | None]) -> bool:
        """Whether new processes would be the same."""
        common = min(len(cores), len(self.cores))
        return (
            self.key == key
            and self.cores[:common] == list(cores[:common])
            and time.monotonic() - self.used < IDLE_SECONDS / 2
            and not self.files_changed()
            and all(process.is_alive() for process, _ in self.team)
        )

    def files_changed(self) -> bool:
        """Whether a file of a module has changed since a call began that saw it. Installed packages do not change."""
        files = {getattr(module, "__dict__", {}).get("__file__") for module in list(sys.modules.values())}
        for path in files:
            if isinstance(path, str) and path not in self._files and not _is_installed(path):
                self._files[path] = _changed_at(path)
        return any(_changed_at(path) != then for path, then in self._files.items())


def _is_installed(path: str) -> bool:
    return "-packages/" in path or path.startswith(os.path.dirname(os.__file__))


def _changed_at(path: str) -> float | None:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None


_waiting: list[Pool] = []
"""Pools that no call uses: one, or as many as threads have called at the same time."""


@contextmanager
def kept(
    serve: Callable[..., None], arguments: tuple[Any, ...], cores: Sequence[Sequence[int] | None]
) -> Iterator[Pool]:
    """A pool whose first processes are those that `started` would give; an error ends them."""
    key = serve, arguments, _inherited()
    pool = None
    while found := _take():
        if pool is None and found.fits(key, cores):
            pool = found
        else:
            _end(found.team, LAST_SECONDS)
    pool = pool or Pool(key)
    try:
        more = cores[len(pool.cores) :]
        if more:
            _end_at_exit()
            _start(pool.team, serve, arguments, more)
            pool.cores += more
            pool.owed += [0] * len(more)
        yield pool
        try:
            for _, here in pool.team[: len(cores)]:
                here.send_bytes(b"")
        except OSError:
            # A process is lost that was not needed.
            _end(pool.team, 0.0)
            return
    except BaseException:
        _end(pool.team, 0.0)
        raise
    pool.used = time.monotonic()
    _waiting.append(pool)


def _take() -> Pool | None:
    try:
        return _waiting.pop()
    except IndexError:
        return None


def _inherited() -> Any:
    """What a process inherits from this one when it starts."""
    try:
        directory = os.getcwd()
    except OSError:
        directory = None
    streams = []
    for number in range(3):
        try:
            stream = os.fstat(number)
            streams.append((stream.st_dev, stream.st_ino))
        except OSError:
            streams.append((0, 0))
    return dict(os.environ), directory, list(sys.path), list(sys.argv), os.sched_getaffinity(0), streams


def _end_at_exit() -> None:
    """End pools when the program ends, before `multiprocessing` waits for their processes."""
    global _ends_at_exit
    if _ends_at_exit:
        return
    import atexit
    import multiprocessing.util  # Its own action at exit comes after those that are registered later.

    _ends_at_exit = True
    atexit.register(end_waiting)
    os.register_at_fork(after_in_child=_forget)


_ends_at_exit = False


def end_waiting() -> None:
    """End the processes that wait for a call."""
    while pool := _take():
        _end(pool.team, LAST_SECONDS)


def _forget() -> None:
    """Leave the processes to the program that this one was forked from."""
    from multiprocessing import process

    for pool in _waiting:
        getattr(process, "_children", set()).difference_update(one for one, _ in pool.team)
    _waiting.clear()


def ignore_interrupts() -> None:
    """Leave Ctrl-C to the process that started this one."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _end(team: Sequence[Any], seconds: float) -> None:
    """End all processes: by themselves, as their pipes are closed, or by force after some seconds."""
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
    if why := receive_answer(process, here, processor, name):
        raise RuntimeError(
            f"{name}: the process of {processor} did not find it: {why} (define it at the top level of a module or "
            'script, not under `if __name__ == "__main__":`)'
        )


def receive_answer(process: Any, here: Any, processor: str, name: str) -> str:
    """Wait until a process has looked for a function: why it did not find it, or nothing."""
    try:
        _, why = here.recv()
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
    return str(why)
