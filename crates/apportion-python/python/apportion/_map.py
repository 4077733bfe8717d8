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
from ._arguments import shown, sources
from ._processes import (
    check_importing,
    cloudpickled,
    cores_by_name,
    ignore_interrupts,
    line,
    receive_begin,
    started,
)

T = TypeVar("T")
R = TypeVar("R")

GROWTH = 8
"""A worker takes at most this many times the items that it has done: the first chunks measure it."""

PART = 4
"""A chunk is this part of a worker's share of what is left."""

LEAST_SECONDS = 0.01
"""A chunk lasts at least this long, if items are left, so that messages cost little."""

LATENCIES = 10
"""A chunk lasts at least this many times the time that its messages take."""


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

    Processes of this program import its script. Workers `elsewhere` do not, and nothing can import what a
    notebook defines: cloudpickle sends that.
    """
    script = getattr(sys.modules.get("__main__"), "__file__", None)
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

    def receive(self) -> tuple[int, bytes | None]:
        """The next place that answers; nothing if it has only become ready to begin."""


class Processes:
    """Processes of this program, on cores of their own or anywhere."""

    def __init__(self, names: list[str], team: Sequence[Any], function: str, crowded: bool) -> None:
        self.names: list[str | None] = [*names]
        self.crowded = crowded
        self._team, self._function = team, function
        self._ready = [False] * len(team)
        self._answered: list[int] = []

    def send(self, place: int, chunk: bytes) -> None:
        try:
            self._team[place][1].send_bytes(chunk)
        except OSError:
            pass  # The answer says that the process is gone.

    def receive(self) -> tuple[int, bytes | None]:
        from multiprocessing.connection import wait

        pipes = [here for _, here in self._team]
        if not self._answered:
            self._answered = [pipes.index(pipe) for pipe in wait(pipes)]
        place = self._answered.pop(0)
        process, here = self._team[place]
        name = str(self.names[place])
        if not self._ready[place]:
            receive_begin(process, here, name, self._function)
            self._ready[place] = True
            return place, None
        try:
            return place, here.recv_bytes()
        except (EOFError, OSError):
            process.join()
            raise RuntimeError(
                f"worker {name} was lost: its process ended with status {process.exitcode}"
            ) from None

    def kill_late(self) -> None:
        """End those that have not begun, whose work others have done meanwhile."""
        for ready, (process, _) in zip(self._ready, self._team):
            if not ready:
                process.kill()


def serve(pipe: Any, content: bytes, packer: str) -> None:
    """The life of a process: find the function, answer chunks until the pipe is closed."""
    ignore_interrupts()
    try:
        function = pickle.loads(content)
        told = "begun", ""
    except Exception as error:
        told = "missing", line(error)
    try:
        pipe.send(told)
        while told[0] == "begun":
            pipe.send_bytes(_answer(function, pipe.recv_bytes(), packer))
    except (EOFError, OSError):
        pass  # Nobody listens any more.


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

    def receive(self) -> tuple[int, bytes | None]:
        if self._ready:
            return self._ready.pop(0), None
        place, future = self._answers.get()
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

    def trial_seconds(self) -> float:
        """Seconds of an item of the first chunk; 0 before it."""
        return max(self.chunks[0].seconds / self.chunks[0].count, 1e-9) if self.chunks else 0.0

    def even_seconds(self, count: int) -> float:
        """The end of a call in which it has `count` items, whatever the others do."""
        items, seconds = self.measured()
        per_item = seconds / items if items else self.trial_seconds()
        return self.first_end + max(count - self.chunks[0].count, 0) * per_item

    def alone_seconds(self, count: int, crowded: bool) -> float:
        """The time of a plain loop over `count` items here; in a crowd, it need not wait for the others."""
        first, later = self.chunks[0], self.chunks[1:] or self.chunks
        own = [chunk.seconds - (chunk.delay if crowded else 0.0) for chunk in [first, *later]]
        return own[0] + max(count - first.count, 0) * sum(own[1:]) / sum(chunk.count for chunk in later)


@dataclass
class Place:
    """Where one chunk at a time is computed: by a worker that is known, or by whoever is free."""

    worker: Worker | None = None
    ready: bool = False
    begin: int = 0
    """The first item of the chunk that is there."""
    count: int = 0
    """Its number of items; 0 if there is none."""
    sent: float = 0.0

    def measured(self) -> tuple[int, float]:
        """Items and seconds of its worker, as far as they are known."""
        return self.worker.measured() if self.worker else (0, 0.0)

    def most_speed(self, now: float) -> float:
        """The items per second if its present chunk ended now."""
        items, seconds = self.measured()
        return (items + self.count) / max(seconds + now - self.sent, 1e-9) if self.count else math.inf


def speeds_now(places: Sequence[Place], now: float) -> list[float]:
    """The items per second of each place, or ratios as long as nothing is known.

    Workers that have had their first chunk only are compared by this chunk with those that are measured. One
    without is assumed to be as fast as the fastest. None is faster than its present chunk shows.
    """
    measured = [items / max(seconds, 1e-9) for items, seconds in (place.measured() for place in places)]
    trials = [place.worker.trial_seconds() if place.worker else 0.0 for place in places]
    factor = max((speed * trial for speed, trial in zip(measured, trials)), default=0.0) or 1.0
    known = [speed or (factor / trial if trial else 0.0) for speed, trial in zip(measured, trials)]
    fastest = max(known)
    if not fastest:
        return [1.0] * len(places)
    return [
        max(min(speed or fastest, place.most_speed(now)), 1e-9 * fastest)
        for speed, place in zip(known, places)
    ]


def take(left: int, places: Sequence[Place], latency: float, now: float) -> list[int]:
    """The number of items that each idle place takes now, of those that are left.

    The planner divides what is left and what is still being computed among all, by the speeds so far. Part of
    a share is taken, so that the chunks become shorter toward the end and errors of the speeds cost little
    (weighted factoring: Hummel, Schmidt, Uma, Wein, SPAA 1996, with halves). A share of none means that the
    others finish earlier without it.
    """
    speeds = speeds_now(places, now)
    held = [
        max(1, math.ceil(place.count - (now - place.sent) * speed)) if place.count else 0
        for place, speed in zip(places, speeds)
    ]
    counts = _native.shares(left + sum(held), sources(speeds), None, held, None, None).counts
    least = max(LEAST_SECONDS, LATENCIES * latency)
    taken = []
    for place, own, speed in zip(places, counts, speeds):
        if place.count or not place.ready:
            taken.append(0)
            continue
        done = place.worker.done if place.worker else 0
        wanted = max(math.ceil(own / PART), math.ceil(min(least * speed, own)))
        taken.append(min(own, wanted, GROWTH * done or 1))
    return taken


def run(function: Callable[[T], R], data: Iterable[T], workers: Any, verbose: bool) -> Results[R]:
    """What `apportion.map` does."""
    check_importing()
    if not callable(function):
        raise TypeError(f"f: {shown(function)} is no function (pass one that takes an item)")
    start = time.perf_counter()
    items = _items(data)
    results: Results[R] = Results()
    done: list[Worker] = []
    if len(items):
        with _workers(function, workers, len(items)) as (team, packer):
            crowded = team.crowded
            values, done = _compute(items, team, packer, start)
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
    if given is None:
        cores = {**cores_by_name("workers", dict(_native.processors()))}
    elif hasattr(given, "items"):
        cores = {**cores_by_name("workers", given)}
    elif hasattr(given, "__index__"):
        count = operator.index(given)
        if count < 1:
            raise ValueError(f"workers: {count} is no number of workers (pass one from 1 on, or leave it out)")
        cores = {f"p{rank}": None for rank in range(min(count, most))}
    else:
        raise TypeError(
            f"workers: {shown(given)} is no number of processes (pass 4, {{'p0': [0]}}, or an executor)"
        )
    names = list(cores)[:most]
    content, packer = _pack(function, elsewhere=False)
    with started(serve, (content, packer), [cores[name] for name in names]) as team:
        processes = Processes(names, team, _name(function), _crowded([cores[name] for name in names]))
        yield processes, packer
        processes.kill_late()


def _crowded(cores: Sequence[Sequence[int] | None]) -> bool:
    """Whether processes on these cores, or anywhere, are more than their cores."""
    pinned = [core for own in cores for core in own or []]
    anywhere = sum(own is None for own in cores)
    return len(set(pinned)) < len(pinned) or anywhere > len(os.sched_getaffinity(0))


def _name(function: Any) -> str:
    return getattr(function, "__qualname__", None) or shown(function)


def _compute(items: Any, team: Workers, packer: str, start: float) -> tuple[list[Any], list[Worker]]:
    """Send chunks until all are answered: the results in order, and the workers that had some."""
    dumps = _dumps(packer)
    places = [Place(Worker(name)) if name else Place() for name in team.names]
    threads: dict[str, Worker] = {}
    parts: dict[int, list[Any]] = {}
    sent, answered, latency = 0, 0, math.inf
    while answered < len(items):
        rank, content = team.receive()
        now = time.perf_counter()
        place = places[rank]
        place.ready = True
        if content is not None:
            reply = _read(content, place)
            if not team.names[rank]:
                _move(places, rank, threads.setdefault(reply.thread, Worker(reply.thread)))
            assert place.worker
            if reply.failed:
                raise _error(reply.failed, place.worker.name)
            parts[place.begin] = reply.results
            answered += place.count
            round_trip = now - place.sent
            latency = min(latency, max(round_trip - reply.seconds, 0.0))
            place.worker.first_end = place.worker.first_end or now - start
            place.worker.chunks.append(Chunk(place.count, reply.seconds, reply.delay, round_trip))
            place.count = 0
        if sent == len(items):
            continue
        for rank, count in enumerate(take(len(items) - sent, places, min(latency, 1.0), now)):
            if not count:
                continue
            chunk = _packed(items[sent : sent + count], sent, dumps)
            places[rank].begin, places[rank].count = sent, count
            places[rank].sent = time.perf_counter()
            team.send(rank, chunk)
            sent += count
    workers = list(threads.values()) or [place.worker for place in places if place.worker]
    return [result for begin in sorted(parts) for result in parts[begin]], [w for w in workers if w.chunks]


def _move(places: Sequence[Place], rank: int, worker: Worker) -> None:
    """Note that a worker has been in a place, and so is in no other."""
    for place in places:
        if place.worker is worker:
            place.worker = None
    places[rank].worker = worker


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


def _read(content: bytes, place: Place) -> Answer:
    """An answer from its bytes."""
    try:
        found: Answer = pickle.loads(content)
    except Exception as error:
        raise RuntimeError(
            f"the results of items {place.begin} to {place.begin + place.count - 1} cannot be read: "
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
