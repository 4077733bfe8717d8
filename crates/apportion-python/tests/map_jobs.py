"""Functions for the tests of `map`: processes import them by name."""

import os
import time
from pathlib import Path

LOG = "APPORTION_TEST_LOG"


def square(x):
    return x * x


def logged(x):
    """Notes each call in a file."""
    with open(os.environ[LOG], "a", encoding="utf-8") as file:
        file.write(f"{x}\n")
    return x


def unequal(_):
    """The first process that gets here is four times as slow, and waits for the second."""
    first, second = Path(os.environ[LOG] + "-first"), Path(os.environ[LOG] + "-second")
    if _pace[0] is None:
        try:
            first.touch(exist_ok=False)
            _pace[0] = 4e-3
        except FileExistsError:
            second.touch()
            _pace[0] = 1e-3
        while not second.exists():
            time.sleep(1e-3)
    time.sleep(_pace[0])
    return os.getpid(), _pace[0]


_pace = [None]


def affinity(_):
    return sorted(os.sched_getaffinity(0))


def cores_at_import(_):
    return AT_IMPORT, tuple(sorted(os.sched_getaffinity(0)))


AT_IMPORT = tuple(sorted(os.sched_getaffinity(0)))


def calls(_):
    """How often this process has called this."""
    _calls[0] += 1
    return _calls[0], os.getpid()


_calls = [0]


def surroundings(name):
    return os.environ.get(name), os.getcwd()


class Peculiar(Exception):
    """It pickles, and cannot be read again."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def failing(x):
    if x == 17:
        raise KeyError("seventeen")
    return x


def peculiar(x):
    raise Peculiar(x, "is odd")


def unsendable(x):
    return (lambda: x) if x == 3 else x


def dying(x):
    if x == 5:
        os._exit(3)
    return x


def leaving(_):
    raise SystemExit("enough")
