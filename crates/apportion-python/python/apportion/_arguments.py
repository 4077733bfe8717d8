"""Arguments in the forms that the native half takes."""

from __future__ import annotations

import operator
import os
from _collections_abc import Mapping

# `typing` takes longer to import than all of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def shown(value: Any) -> str:
    """A value in an error: its text if that is short, otherwise what it is."""
    kind = type(value).__name__
    kind = f"an {kind}" if kind[0] in "aeiouAEIOU" else f"a {kind}"
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"{kind} of {' x '.join(map(str, shape))}"
    if isinstance(value, (str, bytes)) and len(value) > 60:
        return repr(value[:50]) + "…"
    if isinstance(value, (list, tuple, dict, set, frozenset)) and len(value) > 8:
        return f"{kind} with {len(value)} entries"
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else kind


def renamed(name: str, given: Any, old: str, deprecated: Any, level: int = 3) -> Any:
    """An argument by its name, or by the name that it had before, with a warning."""
    if deprecated is None:
        return given
    if given is not None:
        raise TypeError(f"{old}: is the old name of {name} (leave it out)")
    import warnings

    warnings.warn(f"{old} is now called {name}", DeprecationWarning, stacklevel=level)
    return deprecated


def whole(name: str, number: Any) -> int:
    """A whole number that is not negative."""
    try:
        found = operator.index(number)
    except TypeError:
        raise TypeError(f"{name}: {shown(number)} is no whole number (pass an int)") from None
    if not 0 <= found < 1 << 64:
        raise ValueError(f"{name}: {shown(found)} is out of range (pass a whole number from 0 on)")
    return found


def word(name: str, given: Any) -> str | None:
    """The name of a choice; None leaves it open."""
    if given is not None and not isinstance(given, str):
        raise TypeError(f"{name}: {shown(given)} is no name (pass a str)")
    return given


def limit(name: str, given: Any) -> Any:
    """One limit for all processors, one for each, or one for each of some names; None is no limit."""

    def one(number: Any) -> int | None:
        return None if number is None else whole(name, number)

    if given is None or not hasattr(given, "__iter__"):
        return one(given)
    names, numbers = _entries(name, given)
    if names is None:
        return [one(number) for number in numbers]
    return {key: one(number) for key, number in zip(names, numbers)}


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
    names = None
    if processors is not None:
        keys, entries = _entries("processors", processors)
        names = [str(name) for name in keys or entries]
    if speeds is not None:
        names, speeds = _named("speeds", speeds, names)
        speeds = [_amount("speeds", speed) for speed in speeds]
    if seconds is not None:
        names, seconds = _named("seconds", seconds, names)
        seconds = [_points(times) for times in seconds]
    return {
        "speeds": speeds,
        "seconds": seconds,
        "models": document("models", models),
        "platform": document("platform", platform),
        "processors": names,
        "latency": None if latency is None else _amount("latency", latency),
        "bandwidth": None if bandwidth is None else _amount("bandwidth", bandwidth),
    }


def row(costs: Any, memory: Any, any_order: bool, objective: Any) -> dict[str, Any]:
    """Units whose costs, memory or places count."""

    def numbers(name: str, given: Any) -> list[float] | None:
        if given is None:
            return None
        if isinstance(given, (str, bytes)) or not hasattr(given, "__iter__"):
            raise TypeError(f"{name}: {shown(given)} is no list (pass a number for each unit)")
        try:
            found = [float(number) for number in given]
        except (TypeError, ValueError):
            raise TypeError(f"{name}: {shown(given)} is no list of numbers (pass one for each unit)") from None
        if not found:
            raise ValueError(f"{name}: there are none (pass a number for each unit)")
        return found

    return {
        "costs": numbers("costs", costs),
        "memory": numbers("memory", memory),
        "any_order": bool(any_order),
        "objective": word("objective", objective),
    }


def order(method: str | None, flow: str | None, block: Any, overlap: bool, look_ahead: int) -> dict[str, Any]:
    """How operands travel."""
    block, look_ahead = None if block is None else whole("block", block), whole("look_ahead", look_ahead)
    overlap = bool(overlap) or look_ahead > 1
    return {
        "method": word("method", method),
        "flow": word("flow", flow),
        "block": block,
        "overlap": overlap,
        "look_ahead": look_ahead,
    }


def task(what: str, semiring: str, **options: Any) -> dict[str, Any]:
    """What to compute."""
    given: dict[str, Any] = {"exponent": 0, "alpha": None, "beta": None, "adaptive": False, "segments": 64}
    given |= {"remeasure": False, "algorithm": "auto"}
    given |= {"what": what, "semiring": word("semiring", semiring), **options}
    for name in ("exponent", "segments", "seed"):
        given[name] = whole(name, given[name])
    for name in ("adaptive", "remeasure"):
        given[name] = bool(given[name])
    return given


def elimination(kind: str, method: str, block: Any, remeasure: bool, seed: Any) -> dict[str, Any]:
    """What to factor a matrix into, and how."""
    return {
        "kind": kind,
        "method": word("method", method) or "auto",
        "block": None if block is None else whole("block", block),
        "remeasure": bool(remeasure),
        "seed": whole("seed", seed),
    }


def document(name: str, given: Any) -> dict[str, Any] | None:
    """A file of the library's formats: a path, a text of several lines, a dictionary, or `Models`."""
    if given is None:
        return None
    if hasattr(given, "to_json") and hasattr(given, "kernel"):
        return {"path": None, "text": given.to_json()}
    if isinstance(given, Mapping):
        import json

        text = "\n".join(_toml(name, given)) if name == "platform" else json.dumps(dict(given))
        return {"path": None, "text": text}
    if isinstance(given, str) and "\n" in given:
        return {"path": None, "text": given}
    try:
        return {"path": os.fspath(given), "text": None}
    except TypeError:
        raise TypeError(f"{name}: {shown(given)} is no file (pass a path or its content)") from None


def _toml(place: str, table: Any) -> list[str]:
    """The entries of a dictionary as those of a TOML file, with tables within written inline."""
    return [
        f"{_toml_value(place, str(key))} = {_toml_value(f'{place}: {key}', value)}"
        for key, value in table.items()
        if value is not None
    ]


def _toml_value(place: str, value: Any) -> str:
    """A value of a TOML file in one line."""
    import json

    if isinstance(value, str):
        # JSON's escapes are TOML's, but for a character that JSON leaves as it is.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (bool, int, float)):
        return repr(value).lower()
    if isinstance(value, Mapping):
        return "{" + ", ".join(_toml(place, value)) + "}"
    if hasattr(value, "__iter__"):
        return "[" + ", ".join(_toml_value(place, one) for one in value) + "]"
    raise TypeError(
        f"{place}: {shown(value)} cannot be in a platform file (pass a number, a text, a list or a dict)"
    )


def _entries(name: str, given: Any) -> tuple[list[str] | None, list[Any]]:
    """The entries of a list, or those of a dictionary or a pandas Series with the names of its keys.

    Keys that count from 0, such as those of a Series without an index, are no names.
    """
    if isinstance(given, (str, bytes)):
        raise TypeError(f"{name}: {shown(given)} is one text (pass a list with one entry for each processor)")
    try:
        if getattr(given, "ndim", 1) != 1:
            raise TypeError
        if not (hasattr(given, "keys") and hasattr(given, "items")):
            return None, list(given)
        keys, values = map(list, zip(*given.items())) if len(given) else ([], [])
    except TypeError:
        raise TypeError(f"{name}: {shown(given)} is no list (pass one entry for each processor)") from None
    return (None if keys == list(range(len(keys))) else [str(key) for key in keys]), values


def _named(name: str, given: Any, names: list[str] | None) -> tuple[list[str] | None, list[Any]]:
    """The names of the processors, and one entry for each in their order."""
    own, entries = _entries(name, given)
    if own is None:
        return names, entries
    if names is None:
        return own, entries
    if other := sorted(set(own) ^ set(names)):
        raise ValueError(f'{name}: "{other[0]}" is not in both, {name} and processors (use the same names)')
    by_name = dict(zip(own, entries))
    return names, [by_name[one] for one in names]


def _amount(name: str, given: Any) -> float | str:
    """A number, or a text with a unit."""
    if isinstance(given, str):
        return given
    try:
        if getattr(given, "ndim", 0) != 0:
            raise TypeError
        return float(given)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name}: {shown(given)} is no number (pass a number, or a text with a unit)"
        ) from None
    except OverflowError:
        raise ValueError(f"{name}: {shown(given)} is too large (pass a smaller number)") from None


def _points(times: Any) -> list[tuple[float, float]]:
    """A processor's times: the seconds of one unit, {size: seconds}, or pairs of both."""
    if isinstance(times, str) or not (hasattr(times, "items") or hasattr(times, "__iter__")):
        return [(1.0, _number(times))]
    pairs = list(times.items() if hasattr(times, "items") and hasattr(times, "keys") else times)
    if any(not hasattr(pair, "__len__") or len(pair) != 2 for pair in pairs):
        raise TypeError(f"seconds: {shown(times)} is no list of sizes and seconds (pass {{size: seconds}})")
    return [(_number(size), _number(seconds)) for size, seconds in pairs]


def _number(given: Any) -> float:
    number = _amount("seconds", given)
    if isinstance(number, str):
        raise TypeError(f"seconds: {shown(number)} is no number (pass a float)")
    return number
