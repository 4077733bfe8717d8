"""The speed of a Python function on each processor: one pinned process for each, all at the same time."""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

from . import _native
from ._arguments import shown, whole

Points = list[tuple[float, float, float | None, int, tuple[float, float] | None]]


P = ParamSpec("P")
R = TypeVar("R")

UNGUARDED = 86
"""Exit status of a process that would start others while it imports the script that started it."""

GUARD = 'put the script\'s own actions, but not its functions, under `if __name__ == "__main__":`'


class Measured(Generic[P, R]):
    """A function whose speed can be measured. It is called as before; `measure()` returns its `Models`."""

    __wrapped__: Callable[P, R]

    def __init__(
        self,
        function: Callable[P, R],
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

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        return self.__wrapped__(*arguments, **named)

    def __reduce__(self) -> tuple[Any, ...]:
        # Processes find the function by its name, which now is this object's.
        return _found, (self.__wrapped__.__module__, self.__wrapped__.__qualname__)

    def measure(self, processors: Mapping[str, Iterable[int]] | None = None) -> _native.Models:
        """Measure all sizes on all processors: their names with the numbers of their cores."""
        _check_importing()
        chosen = processors or self.processors or dict(_native.processors())
        if not hasattr(chosen, "items"):
            raise TypeError(f"processors: {shown(chosen)} is no dictionary (pass {{'p0': [0]}})")
        cores: dict[str, list[int]] = {}
        for name, own in chosen.items():
            if str(name) in cores:
                raise ValueError(
                    f'processors: "{name}" is listed twice (give every processor a name of its own)'
                )
            cores[str(name)] = sorted({whole("processors", core) for core in own})
        self._check(cores)
        with _started(self, cores) as team:
            points: list[Points] = [[] for _ in cores]
            for size in self.sizes:
                for rank, times in enumerate(_times(team, list(cores), size)):
                    mean, ci, band = _native._summarise(times)
                    points[rank].append((float(size), mean, ci if len(times) > 1 else None, len(times), band))
        name = f"{self.__wrapped__.__module__}.{self.__wrapped__.__qualname__}"
        return _native.Models._measured(name, self.unit, list(zip(cores, points)))

    def _check(self, cores: Mapping[str, Sequence[int]]) -> None:
        """Refuse cores on which no process could run."""
        allowed = os.sched_getaffinity(0)
        for name, own in cores.items():
            missing = sorted(set(own) - allowed)
            if missing or not own:
                what = f"has no core {missing[0]} to run on" if missing else "has no cores"
                raise ValueError(f"processors: {name} {what} (use some of {sorted(allowed)})")
        if not cores:
            raise ValueError("processors: there are none (pass {'p0': [0]}, or leave it out)")

    def _sent(self) -> tuple[str, str, bytes | None]:
        """Where processes find this object: its module and name there, or all of it in bytes."""
        function = self.__wrapped__
        name = function.__qualname__
        module = sys.modules.get(function.__module__)
        alone = function.__module__ == "__main__" and not getattr(module, "__file__", None)
        if not alone and "<locals>" not in name:
            return function.__module__, name, None
        try:
            import cloudpickle  # type: ignore[import-not-found, import-untyped, unused-ignore]
        except ImportError:
            raise ValueError(
                f"{name}: another process cannot import it (define it at the top level of a file, or install "
                "cloudpickle, which sends functions of notebooks)"
            ) from None
        settings = (self.tolerance, self.seconds, self.repetitions, self.unit)
        try:
            content = cloudpickle.dumps(
                (function, list(self.sizes), self.processors, self.prepare, *settings)
            )
        except Exception as error:
            why = " ".join(f"{type(error).__name__}: {error}".split())
            raise ValueError(
                f"{name}: cannot be sent to another process: {why[:200]} (define it at the top level of a file)"
            ) from None
        return function.__module__, name, content


def _check_importing() -> None:
    """End a process that imports the script that started it and would now start processes itself."""
    from multiprocessing import process

    if getattr(process.current_process(), "_inheriting", False):
        os._exit(UNGUARDED)


def _received(module: str, name: str, content: bytes | None) -> Measured[Any, Any]:
    """The object that a process was told of."""
    if content is None:
        found = _found(module, name)
    else:
        import pickle

        function, sizes, *options = pickle.loads(content)
        found = Measured(function, sizes, *options)
    if not isinstance(found, Measured):
        raise TypeError(f"{name} is no longer the decorated function")
    return found


def _found(module: str, name: str) -> Any:
    """The object of a dotted name in a module."""
    found: Any = sys.modules.get(module) or importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


@contextmanager
def _started(measured: Measured[Any, Any], cores: Mapping[str, Sequence[int]]) -> Iterator[list[Any]]:
    """A process for each processor, each with the pipe that leads to it, which all have the function."""
    from multiprocessing import get_context

    sent = measured._sent()
    context = get_context("spawn")
    team: list[Any] = []
    before = os.sched_getaffinity(0)
    try:
        for own in cores.values():
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(there, *sent), daemon=True)
            # A new process inherits the cores of this thread: packages that it imports see only these.
            os.sched_setaffinity(0, own)
            try:
                process.start()
            finally:
                os.sched_setaffinity(0, before)
            there.close()
            team.append((process, here))
        for (process, here), processor in zip(team, cores):
            _begun(process, here, processor, sent[1])
        yield team
    finally:
        for process, here in team:
            here.close()
            process.terminate()
        for process, _ in team:
            process.join()


def _begun(process: Any, here: Any, processor: str, name: str) -> None:
    """Wait until a process has the function."""
    try:
        told, why = here.recv()
    except (EOFError, OSError):
        process.join()
        if process.exitcode == UNGUARDED:
            raise RuntimeError(
                f"{name}: each process imports the script and would measure again ({GUARD})"
            ) from None
        raise RuntimeError(
            f"processor {processor} was lost: its process ended with status {process.exitcode} while it imported "
            f"the script ({GUARD})"
        ) from None
    if told == "missing":
        raise RuntimeError(
            f"{name}: the process of {processor} did not find it: {why} (define it at the top level of a module or "
            'script, not under `if __name__ == "__main__":`)'
        )


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


def _serve(pipe: Any, module: str, name: str, content: bytes | None) -> None:
    """The life of a process: find the function, prepare, run until told to stop, tell the times."""
    import signal

    # Ctrl-C reaches all processes of a terminal; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        measured = _received(module, name, content)
        pipe.send(("begun", ""))
    except Exception as error:
        pipe.send(("missing", " ".join(f"{type(error).__name__}: {error}".split())[:300]))
        return
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


def _repeated(
    pipe: Any, measured: Measured[Any, Any], function: Callable[[Any], Any], argument: Any
) -> list[float]:
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
