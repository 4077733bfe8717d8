"""Arguments in the forms that the native half takes."""

from __future__ import annotations

import operator
import os

# `typing` takes longer to import than all of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def whole(name: str, number: Any) -> int:
    """A whole number that is not negative."""
    try:
        found = operator.index(number)
    except TypeError:
        raise TypeError(f"{name}: {number!r} is no whole number (pass an int)") from None
    if not 0 <= found < 1 << 64:
        raise ValueError(f"{name}: {found} is out of range (pass a whole number from 0 on)")
    return found


def limit(name: str, given: Any) -> Any:
    """One limit for all processors, or one for each, where None is no limit."""
    if given is None or not hasattr(given, "__iter__"):
        return given if given is None else whole(name, given)
    return [None if number is None else whole(name, number) for number in _listed(name, given)]


def sources(
    speeds: Any = None,
    seconds: Any = None,
    models: Any = None,
    platform: Any = None,
    processors: Any = None,
    latency: Any = None,
    bandwidth: Any = None,
) -> dict[str, Any]:
    """The processors, their speeds and their network."""
    return {
        "speeds": None if speeds is None else _listed("speeds", speeds),
        "seconds": None if seconds is None else [_points(times) for times in _listed("seconds", seconds)],
        "models": document(models),
        "platform": document(platform),
        "processors": None
        if processors is None
        else [str(name) for name in _listed("processors", processors)],
        "latency": latency,
        "bandwidth": bandwidth,
    }


def order(method: str | None, flow: str | None, block: int, overlap: bool, look_ahead: int) -> dict[str, Any]:
    """How operands travel."""
    block, look_ahead = whole("block", block), whole("look_ahead", look_ahead)
    overlap = bool(overlap) or look_ahead > 1
    return {"method": method, "flow": flow, "block": block, "overlap": overlap, "look_ahead": look_ahead}


def task(what: str, semiring: str, **options: Any) -> dict[str, Any]:
    """What to compute."""
    given: dict[str, Any] = {"exponent": 0, "alpha": None, "beta": None, "adaptive": False, "segments": 16}
    given |= {"what": what, "semiring": semiring, **options}
    for name in ("exponent", "segments", "seed"):
        given[name] = whole(name, given[name])
    return given


def document(given: Any) -> dict[str, Any] | None:
    """A file of the library's formats: a path, a text of several lines, a dictionary, or `Models`."""
    if given is None:
        return None
    if hasattr(given, "to_json"):
        return {"path": None, "text": given.to_json()}
    if isinstance(given, dict):
        import json

        return {"path": None, "text": json.dumps(given)}
    if isinstance(given, str) and "\n" in given:
        return {"path": None, "text": given}
    return {"path": os.fspath(given), "text": None}


def _listed(name: str, given: Any) -> list[Any]:
    if isinstance(given, (str, bytes)):
        raise TypeError(f"{name}: {given!r} is one text (pass a list with one entry for each processor)")
    try:
        return list(given)
    except TypeError:
        raise TypeError(f"{name}: {given!r} is no list (pass one entry for each processor)") from None


def _points(times: Any) -> list[tuple[float, float]]:
    """A processor's times: the seconds of one unit, {size: seconds}, or pairs of both."""
    if hasattr(times, "items"):
        return [(float(size), float(seconds)) for size, seconds in times.items()]
    try:
        pairs = list(times)
    except TypeError:
        return [(1.0, float(times))]
    return [(float(size), float(seconds)) for size, seconds in pairs]
