from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, TypeVar, overload

from ._measured import Measured
from ._native import (
    Array as Array,
)
from ._native import (
    Balancer as Balancer,
)
from ._native import (
    Decision as Decision,
)
from ._native import (
    Forecast as Forecast,
)
from ._native import (
    Layout as Layout,
)
from ._native import (
    Models as Models,
)
from ._native import (
    Report as Report,
)
from ._native import (
    Shares as Shares,
)
from ._native import (
    Sweep as Sweep,
)
from ._native import (
    __version__ as __version__,
)
from ._tables import OwnerTable as OwnerTable

_Matrix = TypeVar("_Matrix")
_File = str | PathLike[str] | Mapping[str, Any]
_Models = _File | Models
_Speeds = Iterable[float | str]
_Limit = int | Sequence[int | None] | None
_Seconds = Iterable[float | Mapping[float, float] | Iterable[tuple[float, float]]]
_Semiring = Literal["plus-times", "max-plus", "min-plus", "or-and"]
_Method = Literal["auto", "even", "proportional", "largest-remainder", "fpm", "exact", "robust"]
_Flow = Literal["one-to-all", "ring", "bulk", "broadcast"]
_Block = tuple[slice, slice, Any]

__all__ = [
    "Array",
    "Balancer",
    "Decision",
    "Forecast",
    "Layout",
    "Models",
    "OwnerTable",
    "Report",
    "Shares",
    "Sweep",
    "__version__",
    "closure",
    "layout",
    "matmul",
    "measured",
    "power",
    "processors",
    "shares",
    "simulate",
    "sweep",
]

def shares(
    units: int,
    *,
    speeds: _Speeds | None = None,
    seconds: _Seconds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    processors: Iterable[str] | None = None,
    method: _Method = "auto",
    least: _Limit = None,
    most: _Limit = None,
    multiple_of: _Limit = None,
) -> Shares: ...
def layout(
    shape: Sequence[int],
    speeds: _Speeds | None = None,
    method: str = "auto",
    *,
    models: _Models | None = None,
    platform: _File | None = None,
    processors: Iterable[str] | None = None,
    latency: float | str | None = None,
    bandwidth: float | str | None = None,
    flow: _Flow | None = None,
    block: int = 256,
    overlap: bool = False,
    look_ahead: int = 1,
    element: int = 8,
) -> Layout: ...
@overload
def matmul(
    A: _Matrix,
    B: Any,
    *,
    semiring: _Semiring = "plus-times",
    C: Any | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    layout: Layout | None = None,
    method: str = "auto",
    flow: _Flow | None = None,
    block: int = 256,
    overlap: bool = False,
    look_ahead: int = 1,
    adaptive: bool = False,
    segments: int = 16,
    measure: bool = False,
    seed: int = 1,
    report: Literal[False] = False,
    comm: None = None,
    gather: bool = True,
) -> _Matrix: ...
@overload
def matmul(
    A: _Matrix,
    B: Any,
    *,
    semiring: _Semiring = "plus-times",
    C: Any | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    layout: Layout | None = None,
    method: str = "auto",
    flow: _Flow | None = None,
    block: int = 256,
    overlap: bool = False,
    look_ahead: int = 1,
    adaptive: bool = False,
    segments: int = 16,
    measure: bool = False,
    seed: int = 1,
    report: Literal[True],
    comm: None = None,
    gather: bool = True,
) -> tuple[_Matrix, Report]: ...
@overload
def matmul(
    A: _Matrix,
    B: Any,
    *,
    semiring: _Semiring = "plus-times",
    C: Any | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    layout: Layout | None = None,
    method: str = "auto",
    flow: _Flow | None = None,
    block: int = 256,
    overlap: bool = False,
    look_ahead: int = 1,
    adaptive: bool = False,
    segments: int = 16,
    measure: bool = False,
    seed: int = 1,
    report: bool = False,
    comm: Any,
    gather: bool = True,
) -> Any: ...
@overload
def power(
    A: _Matrix,
    exponent: int,
    *,
    semiring: _Semiring = "plus-times",
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    layout: Layout | None = None,
    method: str = "auto",
    block: int = 256,
    measure: bool = False,
    seed: int = 1,
    report: Literal[False] = False,
) -> _Matrix: ...
@overload
def power(
    A: _Matrix,
    exponent: int,
    *,
    semiring: _Semiring = "plus-times",
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    layout: Layout | None = None,
    method: str = "auto",
    block: int = 256,
    measure: bool = False,
    seed: int = 1,
    report: Literal[True],
) -> tuple[_Matrix, Report]: ...
@overload
def closure(
    A: _Matrix,
    *,
    semiring: _Semiring = "min-plus",
    predecessors: Literal[False] = False,
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    layout: Layout | None = None,
    method: str = "auto",
    block: int = 256,
    measure: bool = False,
    seed: int = 1,
    report: Literal[False] = False,
) -> _Matrix: ...
@overload
def closure(
    A: _Matrix,
    *,
    semiring: _Semiring = "min-plus",
    predecessors: Literal[False] = False,
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    layout: Layout | None = None,
    method: str = "auto",
    block: int = 256,
    measure: bool = False,
    seed: int = 1,
    report: Literal[True],
) -> tuple[_Matrix, Report]: ...
@overload
def closure(
    A: _Matrix,
    *,
    semiring: _Semiring = "min-plus",
    predecessors: Literal[True],
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    layout: Layout | None = None,
    method: str = "auto",
    block: int = 256,
    measure: bool = False,
    seed: int = 1,
    report: Literal[False] = False,
) -> tuple[_Matrix, _Matrix]: ...
@overload
def closure(
    A: _Matrix,
    *,
    semiring: _Semiring = "min-plus",
    predecessors: Literal[True],
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    layout: Layout | None = None,
    method: str = "auto",
    block: int = 256,
    measure: bool = False,
    seed: int = 1,
    report: Literal[True],
) -> tuple[_Matrix, _Matrix, Report]: ...
def simulate(
    layout: Layout,
    *,
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    processors: Iterable[str] | None = None,
    latency: float | str | None = None,
    bandwidth: float | str | None = None,
    flow: _Flow | None = None,
    block: int = 256,
    overlap: bool = False,
    look_ahead: int = 1,
    element: int = 8,
) -> Forecast: ...
def sweep(
    shape: Sequence[int],
    along: str,
    speeds: _Speeds | None = None,
    methods: Iterable[str] | None = None,
    *,
    models: _Models | None = None,
    platform: _File | None = None,
    processors: Iterable[str] | None = None,
    latency: float | str | None = None,
    bandwidth: float | str | None = None,
    flow: _Flow | None = None,
    block: int = 256,
    overlap: bool = False,
    look_ahead: int = 1,
    points: int | None = None,
    margin: float = 0.0,
    element: int = 8,
) -> Sweep: ...
def processors() -> dict[str, list[int]]: ...
def measured(
    sizes: Iterable[int],
    *,
    processors: Mapping[str, Iterable[int]] | None = None,
    prepare: Callable[[int], Any] | None = None,
    tolerance: float = 0.025,
    seconds: float = 2.0,
    repetitions: int = 200,
    unit: str = "unit of work",
) -> Callable[[Callable[..., Any]], Measured]: ...
