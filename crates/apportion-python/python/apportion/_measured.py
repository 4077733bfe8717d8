"""The speed of a Python function on each processor: one pinned process for each, all at the same time."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

from . import _native
from ._arguments import whole
from ._processes import (
    check_importing,
    cloudpickled,
    cores_by_name,
    ignore_interrupts,
    line,
    receive_begin,
    started,
)

Points = list[tuple[float, float, float | None, int, tuple[float, float] | None]]


P = ParamSpec("P")
R = TypeVar("R")


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
        check_importing()
        cores = cores_by_name("processors", processors or self.processors or dict(_native.processors()))
        sent = self._sent()
        with started(_serve, sent, cores.values()) as team:
            for (process, here), processor in zip(team, cores):
                receive_begin(process, here, processor, sent[1])
            points: list[Points] = [[] for _ in cores]
            for size in self.sizes:
                for rank, times in enumerate(_times(team, list(cores), size)):
                    mean, ci, band = _native._summarise(times)
                    points[rank].append((float(size), mean, ci if len(times) > 1 else None, len(times), band))
        name = f"{self.__wrapped__.__module__}.{self.__wrapped__.__qualname__}"
        return _native.Models._measured(name, self.unit, list(zip(cores, points)))

    def _sent(self) -> tuple[str, str, bytes | None]:
        """Where processes find this object: its module and name there, or all of it in bytes."""
        function = self.__wrapped__
        name = function.__qualname__
        module = sys.modules.get(function.__module__)
        alone = function.__module__ == "__main__" and not getattr(module, "__file__", None)
        if not alone and "<locals>" not in name:
            return function.__module__, name, None
        settings = (self.tolerance, self.seconds, self.repetitions, self.unit)
        whole_object = (function, list(self.sizes), self.processors, self.prepare, *settings)
        return function.__module__, name, cloudpickled(whole_object, name)


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
    ignore_interrupts()
    try:
        measured = _received(module, name, content)
        pipe.send(("begun", ""))
    except Exception as error:
        pipe.send(("missing", line(error)))
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
                pipe.send(("failed", line(error)))
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
