"""The speed of a Python function on each processor: one pinned process for each, all at the same time."""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import update_wrapper
from typing import Any

from . import _native
from ._arguments import whole

Points = list[tuple[float, float, float | None, int, tuple[float, float] | None]]


class Measured:
    """A function whose speed can be measured. It is called as before; `measure()` returns its `Models`."""

    __wrapped__: Callable[..., Any]

    def __init__(
        self,
        function: Callable[..., Any],
        sizes: Iterable[int],
        processors: Mapping[str, Iterable[int]] | None,
        prepare: Callable[[int], Any] | None,
        tolerance: float,
        seconds: float,
        repetitions: int,
        unit: str,
    ) -> None:
        update_wrapper(self, function)
        self.sizes = sorted({whole("sizes", size) for size in sizes})
        if not self.sizes or self.sizes[0] == 0:
            raise ValueError("sizes: there are none, or one is 0 (pass sizes such as [1000, 10000])")
        if not (tolerance >= 0 and seconds > 0 and repetitions >= 1):
            raise ValueError(
                "tolerance, seconds and repetitions: one is out of range (pass positive numbers)"
            )
        self.processors, self.prepare, self.unit = processors, prepare, unit
        self.tolerance, self.seconds, self.repetitions = tolerance, seconds, whole("repetitions", repetitions)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.__wrapped__(*arguments, **named)

    def __reduce__(self) -> tuple[Any, ...]:
        # Processes find the function by its name, which now is this object's.
        return _found, (self.__wrapped__.__module__, self.__wrapped__.__qualname__)

    def measure(self, processors: Mapping[str, Iterable[int]] | None = None) -> _native.Models:
        """Measure all sizes on all processors: their names with the numbers of their cores."""
        chosen = processors or self.processors or dict(_native.processors())
        cores = {
            str(name): sorted({whole("processors", core) for core in own}) for name, own in chosen.items()
        }
        self._check(cores)
        with _started(self, list(cores.values())) as team:
            points: list[Points] = [[] for _ in cores]
            for size in self.sizes:
                for rank, times in enumerate(_times(team, list(cores), size)):
                    mean, ci, band = _native._summarise(times)
                    points[rank].append((float(size), mean, ci if len(times) > 1 else None, len(times), band))
        name = f"{self.__wrapped__.__module__}.{self.__wrapped__.__qualname__}"
        return _native.Models._measured(name, self.unit, list(zip(cores, points)))

    def _check(self, cores: Mapping[str, Sequence[int]]) -> None:
        """Refuse what processes could not find or run on."""
        function = self.__wrapped__
        module = sys.modules.get(function.__module__)
        alone = function.__module__ == "__main__" and not getattr(module, "__file__", None)
        if alone or "<locals>" in function.__qualname__:
            raise ValueError(
                f"{function.__qualname__}: another process cannot import it "
                "(define it at the top level of a file)"
            )
        allowed = os.sched_getaffinity(0)
        for name, own in cores.items():
            missing = sorted(set(own) - allowed)
            if missing or not own:
                what = f"has no core {missing[0]} to run on" if missing else "has no cores"
                raise ValueError(f"processors: {name} {what} (use some of {sorted(allowed)})")
        if not cores:
            raise ValueError("processors: there are none (pass {'p0': [0]}, or leave it out)")


def _found(module: str, name: str) -> Any:
    """The object of a dotted name in a module."""
    found: Any = sys.modules.get(module) or importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


@contextmanager
def _started(measured: Measured, cores: Sequence[Sequence[int]]) -> Iterator[list[Any]]:
    """A process for each processor, each with the pipe that leads to it."""
    from multiprocessing import get_context

    context = get_context("spawn")
    team: list[Any] = []
    before = os.sched_getaffinity(0)
    try:
        for own in cores:
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(there, measured), daemon=True)
            # A new process inherits the cores of this thread: packages that it imports see only these.
            os.sched_setaffinity(0, own)
            try:
                process.start()
            finally:
                os.sched_setaffinity(0, before)
            there.close()
            team.append((process, here))
        yield team
    finally:
        for process, here in team:
            here.close()
            process.terminate()
        for process, _ in team:
            process.join()


def _times(team: Sequence[Any], names: Sequence[str], size: int) -> list[list[float]]:
    """The times of one size on all processors. All of them work until the last one has enough."""
    for word in (("prepare", size), ("run", size), ("stop", size)):
        for _, here in team:
            _tell(here, word)
        answers = [_answer(pipe, name, size) for (_, pipe), name in zip(team, names)]
    return answers


def _tell(here: Any, word: tuple[str, int]) -> None:
    try:
        here.send(word)
    except OSError:
        pass  # The answer says that the process is gone.


def _answer(here: Any, name: str, size: int) -> list[float]:
    try:
        told, value = here.recv()
    except (EOFError, OSError):
        raise RuntimeError(f"processor {name} was lost at size {size}: its process ended") from None
    if told == "failed":
        raise RuntimeError(f"processor {name} failed at size {size}: {value}")
    return list(value)


def _serve(pipe: Any, measured: Measured) -> None:
    """The life of a process: prepare, run until told to stop, tell the times."""
    import signal

    # Ctrl-C reaches all processes of a terminal; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    function, prepare = measured.__wrapped__, measured.prepare
    argument: Any = None
    try:
        while True:
            word, size = pipe.recv()
            try:
                if word == "prepare":
                    argument = size if prepare is None else prepare(size)
                    function(argument)  # The first call imports, compiles and touches memory.
                    pipe.send(("ready", []))
                elif word == "run":
                    times = _repeated(pipe, measured, function, argument)
                elif word == "stop":
                    pipe.send(("times", times))
            except (EOFError, OSError):
                raise
            except Exception as error:
                line = " ".join(f"{type(error).__name__}: {error}".split())
                pipe.send(("failed", line[:300]))
    except (EOFError, OSError):
        pass  # Nobody listens any more.


def _repeated(pipe: Any, measured: Measured, function: Callable[[Any], Any], argument: Any) -> list[float]:
    """Times of calls until the mean is known well enough; then calls that keep the core busy."""
    times: list[float] = []
    begin = time.perf_counter()
    while True:
        before = time.perf_counter()
        function(argument)
        times.append(time.perf_counter() - before)
        if len(times) >= measured.repetitions or before - begin > measured.seconds:
            break
        if len(times) >= 5:
            mean, ci, _ = _native._summarise(times)
            if ci <= measured.tolerance * mean:
                break
    pipe.send(("enough", []))
    while not pipe.poll(0):
        function(argument)
    return times
