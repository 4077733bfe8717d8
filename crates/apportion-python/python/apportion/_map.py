"""A function of each item of some data, in processes that take as many items as they are fast."""

from __future__ import annotations

import math
import operator
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from . import _native
from ._arguments import shown
from ._processes import (
    IDLE_SECONDS,
    Pool,
    check_importing,
    cloudpickled,
    cores_by_name,
    ignore_interrupts,
    kept,
    line,
    receive_answer,
    receive_begin,
)

T = TypeVar("T")
R = TypeVar("R")


class Results(list[R]):
    """The results of `map` in the order of the data: a list that knows how the work was divided.

    `seconds` is the time of the whole call. By worker: `processors` are the names, `counts` the items and
    `compute` the seconds within the function. `even_seconds` and `alone_seconds` are forecasts from the
    speeds of this call: of an even split among the same workers, and of a plain loop on the fastest of them.
    """

    seconds: float = 0.0
    processors: list[str]
    counts: list[int]
    compute: list[float]
    even_seconds: float = 0.0
    alone_seconds: float = 0.0

    @property
    def gain(self) -> float:
        """How many times as fast the call was as the better of an even split and a loop on one worker."""
        return min(self.even_seconds, self.alone_seconds) / self.seconds if self.seconds > 0 else 1.0

    def summary(self) -> str:
        """The division and its gain in words."""
        if not self.counts:
            return "no items"
        head = f"{len(self)} items on {len(self.counts)} workers: {_seconds(self.seconds)}\n"
        names = max(6, *(len(name) for name in self.processors))
        counts = max(5, len(str(max(self.counts))))
        table = [f"{'worker':<{names}}  {'items':>{counts}}  {'busy':>8}\n"]
        for name, count, busy in zip(self.processors, self.counts, self.compute):
            table.append(f"{name:<{names}}  {count:>{counts}}  {_seconds(busy):>8}\n")
        rivals = (
            f"by forecast, an even split takes {_seconds(self.even_seconds)}, and a loop on the fastest worker "
            f"{_seconds(self.alone_seconds)}\n"
        )
        if self.gain >= 1.05:
            verdict = f"{self.gain:.2f} times as fast as the better of them"
        elif self.gain >= 0.95:
            verdict = "as fast as the better of them"
        elif self.alone_seconds <= self.even_seconds:
            verdict = "the division does not pay: a loop is faster"
        else:
            verdict = "unequal shares do not pay: an even split is faster"
        return head + "".join(table) + rivals + verdict


def _seconds(seconds: float) -> str:
    """A time for a reader."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


@dataclass
class Answer:
    """What a worker returns for a chunk: results and times, or the error of an item of it."""

    thread: str
    """Host and number of the thread that computed it."""
    results: list[Any]
    seconds: float = 0.0
    delay: float = 0.0
    """Seconds of these in which the thread waited for a core, because others used it."""
    failed: tuple[int, BaseException | None, str, str] | None = None
    """The item, its error, the same as a line, and where it happened."""


def _answer(function: Callable[[Any], Any], chunk: bytes, packer: str) -> bytes:
    """Apply the function to the items of a chunk, in a worker."""
    import socket
    import threading

    found = Answer(f"{socket.gethostname()}:{threading.get_native_id()}", [])
    dumps = _dumps(packer)
    try:
        first, items = pickle.loads(chunk)
    except Exception as error:
        what = f"a worker cannot read the data: {line(error, 200)} (define its classes at the top level of a file)"
        found.failed = (-1, RuntimeError(what), what, "")
        return pickle.dumps(found)
    results = found.results
    begin, delay = time.perf_counter(), _delay()
    try:
        for item in items:
            results.append(function(item))
    except BaseException as error:
        found.failed = _failure(first + len(results), error, dumps)
        found.results = []
    found.seconds = time.perf_counter() - begin
    found.delay = min(max(_delay() - delay, 0.0), found.seconds)
    try:
        return dumps(found)
    except Exception:
        place, why = _unsendable(results, dumps)
        what = (
            f"item {first + place}: its result cannot be sent from another process: {why} (return numbers, texts, "
            "arrays or other values that pickle)"
        )
        found.results, found.failed = [], (-1, TypeError(what), what, "")
        return dumps(found)


def _failure(
    place: int, error: BaseException, dumps: Callable[[Any], bytes]
) -> tuple[int, BaseException | None, str, str]:
    """An error as it can be sent: itself only if it pickles both ways."""
    import traceback

    frames = error.__traceback__.tb_next if error.__traceback__ else None
    where = "".join(traceback.format_tb(frames)).rstrip()
    try:
        pickle.loads(dumps(error))
    except Exception:
        return place, None, line(error), where
    return place, error, line(error), where


def _unsendable(values: Iterable[Any], dumps: Callable[[Any], bytes]) -> tuple[int, str]:
    """The first of some values that does not pickle, and why."""
    for place, value in enumerate(values):
        try:
            dumps(value)
        except Exception as error:
            return place, line(error, 200)
    return 0, "the values pickle one by one only"


def _delay() -> float:
    """Seconds that this thread has waited for a core so far; 0 where Linux does not say it."""
    try:
        with open("/proc/thread-self/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1]) * 1e-9
    except (OSError, ValueError, IndexError):
        return 0.0


def _dumps(packer: str) -> Callable[[Any], bytes]:
    """The function of this module that packs values; `pickle.loads` reads both."""
    import importlib

    return importlib.import_module(packer).dumps  # type: ignore[no-any-return]


def _pack(function: Callable[[Any], Any], elsewhere: bool) -> tuple[bytes, str]:
    """The function in bytes, and the module that packs items and results as well.

    Processes of this program import its script. Workers `elsewhere` do not, and nothing can import what is defined
    in a notebook or at a prompt, also if that follows a script: cloudpickle sends it.
    """
    prompted = sys.flags.interactive or hasattr(sys, "ps1")
    script = None if prompted else getattr(sys.modules.get("__main__"), "__file__", None)
    name = _name(function)
    try:
        content = pickle.dumps(function)
    except Exception:
        return cloudpickled(function, name), "cloudpickle"
    if script and not elsewhere:
        return content, "pickle"
    try:
        return cloudpickled(function, name), "cloudpickle"
    except ValueError:
        # Processes that are forked, or that import the script, find what it defines.
        if script or b"__main__" not in content:
            return content, "pickle"
        raise


class Workers(Protocol):
    """Workers, each with at most one chunk at a time."""

    names: list[str | None]
    """Their names; none where a chunk cannot be addressed to one of them, and whoever is free takes it."""
    crowded: bool
    """They are more than the cores that they have: one of them alone would be faster."""

    def send(self, place: int, chunk: bytes) -> None: ...

    def receive(self, seconds: float) -> tuple[int, bytes | None] | None:
        """The next place that answers, with nothing if it has only become ready to begin; none in time is none."""


class Processes:
    """Processes of this program, on cores of their own or anywhere."""

    def __init__(self, names: list[str], pool: Pool, function: tuple[str, bytes, str], crowded: bool) -> None:
        self.names: list[str | None] = [*names]
        self.crowded = crowded
        self._team, self._owed = pool.team[: len(names)], pool.owed
        self._function, *sent = function
        self._answered: list[int] = []
        for place, (_, here) in enumerate(self._team):
            self._owed[place] += 1
            self._send(here.send, sent)

    def _send(self, send: Callable[[Any], None], value: Any) -> None:
        try:
            send(value)
        except OSError:
            pass  # The answer says that the process is gone.

    def send(self, place: int, chunk: bytes) -> None:
        self._send(self._team[place][1].send_bytes, chunk)

    def receive(self, seconds: float) -> tuple[int, bytes | None] | None:
        from multiprocessing.connection import wait

        if not self._answered:
            pipes = [here for _, here in self._team]
            self._answered = [
                pipes.index(pipe) for pipe in wait(pipes, None if seconds == math.inf else seconds)
            ]
        if not self._answered:
            return None
        place = self._answered.pop(0)
        process, here = self._team[place]
        name = str(self.names[place])
        if self._owed[place]:
            # A process that started late still answers calls that ended without it.
            ask = receive_begin if self._owed[place] == 1 else receive_answer
            ask(process, here, name, self._function)
            self._owed[place] -= 1
            return None if self._owed[place] else (place, None)
        try:
            return place, here.recv_bytes()
        except (EOFError, OSError):
            process.join()
            raise RuntimeError(
                f"worker {name} was lost: its process ended with status {process.exitcode}"
            ) from None


def serve(pipe: Any, anywhere: Sequence[int] | None) -> None:
    """The life of a process: the calls that it takes part in, until there is none for long."""
    ignore_interrupts()
    own = os.sched_getaffinity(0)
    try:
        while pipe.poll(IDLE_SECONDS):
            if message := pipe.recv_bytes():
                _serve_call(pipe, message, own, anywhere or own)
    except (EOFError, OSError):
        pass  # Nobody listens any more.


def _serve_call(pipe: Any, message: bytes, own: Iterable[int], anywhere: Iterable[int]) -> None:
    """Find the function of a call, and answer chunks until there is an empty one.

    What the function imports sees the cores that the process has started on; then it may move.
    """
    os.sched_setaffinity(0, own)
    content, packer = pickle.loads(message)
    try:
        function = pickle.loads(content)
    except Exception as error:
        pipe.send(("missing", line(error)))
        return
    os.sched_setaffinity(0, anywhere)
    pipe.send(("begun", ""))
    while chunk := pipe.recv_bytes():
        pipe.send_bytes(_answer(function, chunk, packer))


class Executor:
    """An executor of `concurrent.futures` or of another package, or a client of Dask."""

    def __init__(self, executor: Any, most: int, content: bytes, packer: str) -> None:
        import queue

        self.packer = packer
        self._call = (content, packer)
        self._executor = executor
        self._answers: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self._futures: dict[int, Any] = {}
        self._addresses: list[str] = []
        client: Any = executor if hasattr(executor, "scheduler_info") else getattr(executor, "_client", None)
        if hasattr(client, "scheduler_info"):
            self._executor = client
            for address, count in sorted(client.nthreads().items()):
                self._addresses += [address] * count
            self.names: list[str | None] = [
                f"{name}/{self._addresses[:place].count(name)}" for place, name in enumerate(self._addresses)
            ]
        else:
            count = getattr(executor, "_max_workers", None) or getattr(executor, "num_workers", None)
            self.names = [None] * (count if isinstance(count, int) else 0)
        if not self.names:
            raise TypeError(
                f"workers: {shown(executor)} has no workers, or does not say how many (pass an executor of "
                "concurrent.futures, joblib or Dask)"
            )
        del self.names[most:]
        self.crowded = not self._addresses and len(self.names) > len(os.sched_getaffinity(0))
        self._ready = list(range(len(self.names)))

    def send(self, place: int, chunk: bytes) -> None:
        where: dict[str, Any] = {}
        if self._addresses:
            where = {"workers": [self._addresses[place]], "pure": False}
        future = self._executor.submit(work, *self._call, chunk, **where)
        self._futures[place] = future
        future.add_done_callback(lambda done: self._answers.put((place, done)))

    def receive(self, seconds: float) -> tuple[int, bytes | None] | None:
        import queue

        if self._ready:
            return self._ready.pop(0), None
        try:
            place, future = self._answers.get(timeout=None if seconds == math.inf else seconds)
        except queue.Empty:
            return None
        del self._futures[place]
        return place, future.result()

    def cancel(self) -> None:
        """Cancel the chunks that have not begun; others end as they would."""
        for future in self._futures.values():
            future.cancel()


def work(content: bytes, packer: str, chunk: bytes) -> bytes:
    """Answer a chunk in a worker of an executor."""
    global _function
    if _function is None or _function[0] != content:
        _function = content, pickle.loads(content)
    return _answer(_function[1], chunk, packer)


_function: tuple[bytes, Any] | None = None
"""The latest function that this process, a worker of an executor, has had, with its bytes."""


@dataclass
class Chunk:
    """Items that a worker has computed."""

    count: int
    seconds: float
    """Within the function."""
    delay: float
    round_trip: float
    """From sending the items until the results are there."""


@dataclass
class Worker:
    """What is known of a worker."""

    name: str
    chunks: list[Chunk] = field(default_factory=list)
    first_end: float = 0.0
    """When its first chunk had ended, in seconds of the call."""

    @property
    def done(self) -> int:
        """Number of items that it has computed."""
        return sum(chunk.count for chunk in self.chunks)

    def measured(self) -> tuple[int, float]:
        """Items and their seconds, without the first chunk, which imports and compiles and is a trial."""
        later = self.chunks[1:]
        return sum(chunk.count for chunk in later), sum(chunk.round_trip for chunk in later)

    def even_seconds(self, count: int) -> float:
        """The end of a call in which it has `count` items, whatever the others do."""
        items, seconds = self.measured()
        per_item = seconds / items if items else self.chunks[0].seconds / self.chunks[0].count
        return self.first_end + max(count - self.chunks[0].count, 0) * per_item

    def alone_seconds(self, count: int, crowded: bool) -> float:
        """The time of a plain loop over `count` items here; in a crowd, it need not wait for the others."""
        first, later = self.chunks[0], self.chunks[1:] or self.chunks
        own = [chunk.seconds - (chunk.delay if crowded else 0.0) for chunk in [first, *later]]
        return own[0] + max(count - first.count, 0) * sum(own[1:]) / sum(chunk.count for chunk in later)


def run(
    function: Callable[[T], R], data: Iterable[T], workers: Any, costs: Any, verbose: bool
) -> Results[R]:
    """What `apportion.map` does."""
    check_importing()
    if not callable(function):
        raise TypeError(f"f: {shown(function)} is no function (pass one that takes an item)")
    start = time.perf_counter()
    items = _items(data)
    costs = _costs(costs, len(items))
    results: Results[R] = Results()
    done: list[Worker] = []
    if len(items):
        with _workers(function, workers, len(items)) as (team, packer):
            crowded = team.crowded
            values, done = _compute(items, costs, team, packer, start)
            computed = time.perf_counter() - start
        results.seconds = time.perf_counter() - start
        results.extend(values)
        share, rest = divmod(len(items), len(done))
        even = max(worker.even_seconds(share + (rank < rest)) for rank, worker in enumerate(done))
        # The processes of an even split end as these do.
        results.even_seconds = even + results.seconds - computed
        measured = [worker for worker in done if len(worker.chunks) > 1] or done
        results.alone_seconds = min(worker.alone_seconds(len(items), crowded) for worker in measured)
    results.processors = [worker.name for worker in done]
    results.counts = [worker.done for worker in done]
    results.compute = [sum(chunk.seconds for chunk in worker.chunks) for worker in done]
    if verbose:
        print(f"apportion.map: {results.summary()}", file=sys.stderr)
    return results


def _items(data: Any) -> Any:
    """The data as something that has a length and slices."""
    if isinstance(data, (list, tuple, range)):
        return data
    if hasattr(data, "__array_interface__") and getattr(data, "ndim", 0) >= 1:
        return data
    try:
        iterator = iter(data)
    except TypeError:
        raise TypeError(f"data: {shown(data)} has no items (pass a list, an array or an iterator)") from None
    return list(iterator)


def _costs(given: Any, count: int) -> list[float] | None:
    """One cost for each item."""
    if given is None:
        return None
    try:
        costs = [float(cost) for cost in given]
    except (TypeError, ValueError):
        raise TypeError(f"costs: {shown(given)} is no list of numbers (pass one for each item)") from None
    if len(costs) != count:
        raise ValueError(f"costs: {len(costs)} for {count} items (pass one for each item)")
    return costs


@contextmanager
def _workers(function: Any, given: Any, most: int) -> Iterator[tuple[Workers, str]]:
    """The workers of a call, at most as many as there are items, and the module that packs values."""
    if hasattr(given, "submit"):
        executor = Executor(given, most, *_pack(function, elsewhere=True))
        try:
            yield executor, executor.packer
        finally:
            executor.cancel()
        return
    cores: dict[str, list[int] | None]
    anywhere = None
    if given is None:
        cores = {**cores_by_name("workers", dict(_native.processors()))}
        # Cores that are alike need no process each: the system knows which of them are free.
        anywhere = tuple(sorted(os.sched_getaffinity(0))) if _native._cores_are_alike() else None
    elif hasattr(given, "items"):
        cores = {**cores_by_name("workers", given)}
    elif hasattr(given, "__index__"):
        count = operator.index(given)
        if count < 1:
            raise ValueError(
                f"workers: {count} is no number of workers (pass one from 1 on, or leave it out for one a core)"
            )
        cores = {f"p{rank}": None for rank in range(min(count, most))}
    else:
        raise TypeError(
            f"workers: {shown(given)} is no number of processes (pass 4, {{'p0': [0]}}, or an executor)"
        )
    names = list(cores)[:most]
    places = [cores[name] for name in names]
    content, packer = _pack(function, elsewhere=False)
    with kept(serve, (anywhere,), places) as pool:
        yield Processes(names, pool, (_name(function), content, packer), _crowded(places)), packer


def _crowded(cores: Sequence[Sequence[int] | None]) -> bool:
    """Whether processes on these cores, or anywhere, are more than their cores."""
    pinned = [core for own in cores for core in own or []]
    anywhere = sum(own is None for own in cores)
    return len(set(pinned)) < len(pinned) or anywhere > len(os.sched_getaffinity(0))


def _name(function: Any) -> str:
    return getattr(function, "__qualname__", None) or shown(function)


def _compute(
    items: Any, costs: list[float] | None, team: Workers, packer: str, start: float
) -> tuple[list[Any], list[Worker]]:
    """Send chunks until all are answered: the results in order, and the workers that had some."""
    dumps = _dumps(packer)
    pieces = _native._Pieces(len(items), len(team.names), costs)
    workers = {name: Worker(name) for name in team.names if name}
    idle: set[int] = set()
    sent: dict[int, tuple[int, int, float]] = {}
    parts: dict[int, list[Any]] = {}
    left = len(items)
    while left:
        until = math.inf
        for place in sorted(idle):
            now = time.perf_counter()
            order = pieces.next(place, now)
            if isinstance(order, tuple):
                begin, end = order
                team.send(place, _packed(items[begin:end], begin, dumps))
                sent[place] = begin, end, now
                idle.remove(place)
            elif order is not None:
                until = min(until, order)
        answer = team.receive(max(until - time.perf_counter(), 1e-3))
        if not answer:
            continue
        place, content = answer
        idle.add(place)
        if content is None:
            continue
        begin, end, then = sent.pop(place)
        reply = _read(content, begin, end)
        now = time.perf_counter()
        pieces.ended(place, now)
        name = team.names[place] or reply.thread
        if reply.failed:
            raise _error(reply.failed, name)
        parts[begin] = reply.results
        left -= end - begin
        worker = workers.setdefault(name, Worker(name))
        worker.first_end = worker.first_end or now - start
        worker.chunks.append(Chunk(end - begin, reply.seconds, reply.delay, now - then))
    return [result for begin in sorted(parts) for result in parts[begin]], [
        worker for worker in workers.values() if worker.chunks
    ]


def _packed(items: Any, first: int, dumps: Callable[[Any], bytes]) -> bytes:
    """A chunk in bytes."""
    try:
        return dumps((first, items))
    except Exception:
        place, why = _unsendable(items, dumps)
        raise TypeError(
            f"data: item {first + place} cannot be sent to another process: {why} (pass numbers, texts, arrays or "
            "other values that pickle)"
        ) from None


def _read(content: bytes, begin: int, end: int) -> Answer:
    """An answer from its bytes."""
    try:
        found: Answer = pickle.loads(content)
    except Exception as error:
        raise RuntimeError(
            f"the results of items {begin} to {end - 1} cannot be read: "
            f"{line(error, 200)} (define their classes at the top level of a file)"
        ) from None
    return found


def _error(failed: tuple[int, BaseException | None, str, str], worker: str) -> BaseException:
    """The error of an item, with notes of where it happened."""
    item, error, text, where = failed
    if error is None:
        error = RuntimeError(f"item {item}: {text}")
    if item >= 0:
        error.add_note(f"item {item} of the data, on worker {worker}" + (f":\n{where}" if where else ""))
    return error
