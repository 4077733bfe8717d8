from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import (
    Any,
    Literal,
    ParamSpec,
    Protocol,
    SupportsFloat,
    SupportsIndex,
    TypeVar,
    overload,
    type_check_only,
)

from typing_extensions import Buffer

from ._map import Results as Results
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
    GraphParts as GraphParts,
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

@type_check_only
class _Tensor(Protocol):
    def __dlpack__(self, *arguments: Any, **options: Any) -> Any: ...

@type_check_only
class _Frame(Protocol):
    def __array__(self, *arguments: Any, **options: Any) -> Any: ...

@type_check_only
class _Executor(Protocol):
    def submit(self, *arguments: Any, **options: Any) -> Any: ...

_Matrix = TypeVar("_Matrix", bound=Buffer | _Tensor)
_Rows = Sequence[Sequence[float]] | _Frame
_P = ParamSpec("_P")
_R = TypeVar("_R")
_T = TypeVar("_T")
_File = str | PathLike[str] | Mapping[str, Any]
_Models = _File | Models
_Amount = SupportsFloat | str
_Speeds = Iterable[_Amount] | Mapping[Any, _Amount]
_Limit = SupportsIndex | Sequence[SupportsIndex | None] | Mapping[str, SupportsIndex | None] | None
_Times = SupportsFloat | Mapping[float, float] | Iterable[tuple[float, float]]
_Seconds = Iterable[_Times] | Mapping[str, _Times]
_Algorithm = Literal["auto", "squaring", "elimination"]
_Semiring = Literal["plus-times", "max-plus", "min-plus", "or-and"]
_Objective = Literal["makespan", "latency", "time"]
_Method = Literal["auto", "even", "proportional", "largest-remainder", "fpm", "exact", "robust"]
_LayoutMethod = Literal[
    "auto",
    "columns",
    "square-corner",
    "recursive",
    "straight-line",
    "square-rectangle",
    "block-rectangle",
    "grid",
    "nagamochi-abe",
    "cartesian",
    "rows",
    "hybrid",
    "column-groups",
    "square-edge",
    "square-middle",
]
# A list of rectangles cannot say these.
_ProductMethod = _LayoutMethod | Literal["inner", "boxes"]
_Flow = Literal["one-to-all", "ring", "bulk", "broadcast"]
_Factors = Literal["cholesky", "lu", "ldlt"]
_Boundary = Literal["periodic", "zero", "extrapolated"]
_FactorMethod = Literal["auto", "greedy", "grid", "ratio", "cyclic", "alone"]
_GraphMethod = Literal[
    "auto", "metis", "metis-recursive", "metis-kway", "scotch", "coordinates", "contiguous"
]
_PartsMethod = Literal["auto", "metis", "metis-recursive", "metis-kway", "scotch", "contiguous"]
_SpmvMethod = Literal["product", "jacobi", "cg"]
_Block = tuple[slice, slice, Any]

__all__ = [
    "Array",
    "Balancer",
    "Decision",
    "Forecast",
    "GraphParts",
    "Layout",
    "Models",
    "OwnerTable",
    "Report",
    "Results",
    "Shares",
    "Sweep",
    "__version__",
    "advect",
    "cholesky",
    "closure",
    "graph",
    "layout",
    "lu",
    "matmul",
    "measured",
    "power",
    "processors",
    "shares",
    "simulate",
    "solve",
    "spmv",
    "sweep",
    "syrk",
]

def shares(
    units: SupportsIndex | None = None,
    *,
    speeds: _Speeds | None = None,
    seconds: _Seconds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    processors: Iterable[str] | None = None,
    method: _Method = "auto",
    min: _Limit = None,
    max: _Limit = None,
    multiple_of: _Limit = None,
    least: _Limit = None,
    most: _Limit = None,
    costs: Iterable[SupportsFloat] | None = None,
    memory: Iterable[SupportsFloat] | None = None,
    any_order: bool = False,
    objective: _Objective | None = None,
) -> Shares: ...
def layout(
    shape: Iterable[SupportsIndex],
    speeds: _Speeds | None = None,
    method: _LayoutMethod = "auto",
    *,
    models: _Models | None = None,
    platform: _File | None = None,
    processors: Iterable[str] | None = None,
    latency: _Amount | None = None,
    bandwidth: _Amount | None = None,
    flow: _Flow | None = None,
    block: SupportsIndex | None = None,
    overlap: bool = False,
    look_ahead: SupportsIndex = 1,
    element: SupportsIndex = 8,
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
    method: _ProductMethod = "auto",
    flow: _Flow | None = None,
    block: SupportsIndex | None = None,
    overlap: bool = False,
    look_ahead: SupportsIndex = 1,
    adaptive: bool = False,
    segments: SupportsIndex = 64,
    remeasure: bool = False,
    seed: SupportsIndex = 1,
    report: Literal[False] = False,
    comm: None = None,
    gather: bool = True,
    measure: bool | None = None,
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
    method: _ProductMethod = "auto",
    flow: _Flow | None = None,
    block: SupportsIndex | None = None,
    overlap: bool = False,
    look_ahead: SupportsIndex = 1,
    adaptive: bool = False,
    segments: SupportsIndex = 64,
    remeasure: bool = False,
    seed: SupportsIndex = 1,
    report: Literal[True],
    comm: None = None,
    gather: bool = True,
    measure: bool | None = None,
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
    method: _ProductMethod = "auto",
    flow: _Flow | None = None,
    block: SupportsIndex | None = None,
    overlap: bool = False,
    look_ahead: SupportsIndex = 1,
    adaptive: bool = False,
    segments: SupportsIndex = 64,
    remeasure: bool = False,
    seed: SupportsIndex = 1,
    report: bool = False,
    comm: Any,
    gather: bool = True,
    measure: bool | None = None,
) -> Any: ...
@overload
def matmul(
    A: _Rows,
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
    method: _ProductMethod = "auto",
    flow: _Flow | None = None,
    block: SupportsIndex | None = None,
    overlap: bool = False,
    look_ahead: SupportsIndex = 1,
    adaptive: bool = False,
    segments: SupportsIndex = 64,
    remeasure: bool = False,
    seed: SupportsIndex = 1,
    report: bool = False,
    comm: Any = None,
    gather: bool = True,
    measure: bool | None = None,
) -> Any: ...
@overload
def syrk(
    A: _Matrix,
    *,
    semiring: _Semiring = "plus-times",
    C: Any | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    layout: Layout | None = None,
    flow: _Flow | None = None,
    block: SupportsIndex | None = None,
    overlap: bool = False,
    look_ahead: SupportsIndex = 1,
    remeasure: bool = False,
    seed: SupportsIndex = 1,
    report: Literal[False] = False,
    comm: None = None,
    gather: bool = True,
) -> _Matrix: ...
@overload
def syrk(
    A: _Matrix,
    *,
    semiring: _Semiring = "plus-times",
    C: Any | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    layout: Layout | None = None,
    flow: _Flow | None = None,
    block: SupportsIndex | None = None,
    overlap: bool = False,
    look_ahead: SupportsIndex = 1,
    remeasure: bool = False,
    seed: SupportsIndex = 1,
    report: Literal[True],
    comm: None = None,
    gather: bool = True,
) -> tuple[_Matrix, Report]: ...
@overload
def syrk(
    A: _Matrix,
    *,
    semiring: _Semiring = "plus-times",
    C: Any | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    layout: Layout | None = None,
    flow: _Flow | None = None,
    block: SupportsIndex | None = None,
    overlap: bool = False,
    look_ahead: SupportsIndex = 1,
    remeasure: bool = False,
    seed: SupportsIndex = 1,
    report: bool = False,
    comm: Any,
    gather: bool = True,
) -> Any: ...
@overload
def syrk(
    A: _Rows,
    *,
    semiring: _Semiring = "plus-times",
    C: Any | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    layout: Layout | None = None,
    flow: _Flow | None = None,
    block: SupportsIndex | None = None,
    overlap: bool = False,
    look_ahead: SupportsIndex = 1,
    remeasure: bool = False,
    seed: SupportsIndex = 1,
    report: bool = False,
    comm: Any = None,
    gather: bool = True,
) -> Any: ...
@overload
def power(
    A: _Matrix,
    exponent: SupportsIndex,
    *,
    semiring: _Semiring = "plus-times",
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    layout: Layout | None = None,
    method: _ProductMethod = "auto",
    block: SupportsIndex | None = None,
    remeasure: bool = False,
    seed: SupportsIndex = 1,
    report: Literal[False] = False,
    measure: bool | None = None,
) -> _Matrix: ...
@overload
def power(
    A: _Matrix,
    exponent: SupportsIndex,
    *,
    semiring: _Semiring = "plus-times",
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    layout: Layout | None = None,
    method: _ProductMethod = "auto",
    block: SupportsIndex | None = None,
    remeasure: bool = False,
    seed: SupportsIndex = 1,
    report: Literal[True],
    measure: bool | None = None,
) -> tuple[_Matrix, Report]: ...
@overload
def power(
    A: _Rows,
    exponent: SupportsIndex,
    *,
    semiring: _Semiring = "plus-times",
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    layout: Layout | None = None,
    method: _ProductMethod = "auto",
    block: SupportsIndex | None = None,
    remeasure: bool = False,
    seed: SupportsIndex = 1,
    report: bool = False,
    measure: bool | None = None,
) -> Any: ...
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
    method: _ProductMethod = "auto",
    block: SupportsIndex | None = None,
    algorithm: _Algorithm = "auto",
    remeasure: bool = False,
    seed: SupportsIndex = 1,
    report: Literal[False] = False,
    measure: bool | None = None,
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
    method: _ProductMethod = "auto",
    block: SupportsIndex | None = None,
    algorithm: _Algorithm = "auto",
    remeasure: bool = False,
    seed: SupportsIndex = 1,
    report: Literal[True],
    measure: bool | None = None,
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
    method: _ProductMethod = "auto",
    block: SupportsIndex | None = None,
    algorithm: _Algorithm = "auto",
    remeasure: bool = False,
    seed: SupportsIndex = 1,
    report: Literal[False] = False,
    measure: bool | None = None,
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
    method: _ProductMethod = "auto",
    block: SupportsIndex | None = None,
    algorithm: _Algorithm = "auto",
    remeasure: bool = False,
    seed: SupportsIndex = 1,
    report: Literal[True],
    measure: bool | None = None,
) -> tuple[_Matrix, _Matrix, Report]: ...
@overload
def closure(
    A: _Rows,
    *,
    semiring: _Semiring = "min-plus",
    predecessors: bool = False,
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    layout: Layout | None = None,
    method: _ProductMethod = "auto",
    block: SupportsIndex | None = None,
    algorithm: _Algorithm = "auto",
    remeasure: bool = False,
    seed: SupportsIndex = 1,
    report: bool = False,
    measure: bool | None = None,
) -> Any: ...
@overload
def cholesky(
    A: _Matrix,
    *,
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    method: _FactorMethod = "auto",
    block: SupportsIndex | None = None,
    remeasure: bool = False,
    seed: SupportsIndex = 1,
    report: Literal[False] = False,
) -> _Matrix: ...
@overload
def cholesky(
    A: _Matrix,
    *,
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    method: _FactorMethod = "auto",
    block: SupportsIndex | None = None,
    remeasure: bool = False,
    seed: SupportsIndex = 1,
    report: Literal[True],
) -> tuple[_Matrix, Report]: ...
@overload
def cholesky(
    A: _Rows,
    *,
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    method: _FactorMethod = "auto",
    block: SupportsIndex | None = None,
    remeasure: bool = False,
    seed: SupportsIndex = 1,
    report: bool = False,
) -> Any: ...
@overload
def lu(
    A: _Matrix,
    *,
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    method: _FactorMethod = "auto",
    block: SupportsIndex | None = None,
    remeasure: bool = False,
    seed: SupportsIndex = 1,
    report: Literal[False] = False,
) -> tuple[_Matrix, Any]: ...
@overload
def lu(
    A: _Matrix,
    *,
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    method: _FactorMethod = "auto",
    block: SupportsIndex | None = None,
    remeasure: bool = False,
    seed: SupportsIndex = 1,
    report: Literal[True],
) -> tuple[_Matrix, Any, Report]: ...
@overload
def lu(
    A: _Rows,
    *,
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    method: _FactorMethod = "auto",
    block: SupportsIndex | None = None,
    remeasure: bool = False,
    seed: SupportsIndex = 1,
    report: bool = False,
) -> Any: ...
@overload
def solve(
    A: _Matrix,
    B: Any,
    *,
    kind: _Factors = "lu",
    mixed: bool = False,
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    method: _FactorMethod = "auto",
    block: SupportsIndex | None = None,
    remeasure: bool = False,
    seed: SupportsIndex = 1,
    report: Literal[False] = False,
) -> _Matrix: ...
@overload
def solve(
    A: _Matrix,
    B: Any,
    *,
    kind: _Factors = "lu",
    mixed: bool = False,
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    method: _FactorMethod = "auto",
    block: SupportsIndex | None = None,
    remeasure: bool = False,
    seed: SupportsIndex = 1,
    report: Literal[True],
) -> tuple[_Matrix, Report]: ...
@overload
def solve(
    A: _Rows,
    B: Any,
    *,
    kind: _Factors = "lu",
    mixed: bool = False,
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    method: _FactorMethod = "auto",
    block: SupportsIndex | None = None,
    remeasure: bool = False,
    seed: SupportsIndex = 1,
    report: bool = False,
) -> Any: ...
@overload
def advect(
    psi: _Matrix,
    courant: Any,
    steps: SupportsIndex,
    *,
    iterations: SupportsIndex = 2,
    nonoscillatory: bool = False,
    infinite_gauge: bool = False,
    third_order: bool = False,
    boundary: _Boundary | Sequence[_Boundary] = "periodic",
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    method: _LayoutMethod = "auto",
    remeasure: bool = False,
    report: Literal[False] = False,
) -> _Matrix: ...
@overload
def advect(
    psi: _Matrix,
    courant: Any,
    steps: SupportsIndex,
    *,
    iterations: SupportsIndex = 2,
    nonoscillatory: bool = False,
    infinite_gauge: bool = False,
    third_order: bool = False,
    boundary: _Boundary | Sequence[_Boundary] = "periodic",
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    method: _LayoutMethod = "auto",
    remeasure: bool = False,
    report: Literal[True],
) -> tuple[_Matrix, Report]: ...
@overload
def advect(
    psi: Sequence[Any],
    courant: Any,
    steps: SupportsIndex,
    *,
    iterations: SupportsIndex = 2,
    nonoscillatory: bool = False,
    infinite_gauge: bool = False,
    third_order: bool = False,
    boundary: _Boundary | Sequence[_Boundary] = "periodic",
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    method: _LayoutMethod = "auto",
    remeasure: bool = False,
    report: bool = False,
) -> Any: ...
def graph(
    graph: Any,
    speeds: _Speeds | None = None,
    *,
    models: _Models | None = None,
    platform: _File | None = None,
    method: _GraphMethod | None = None,
    coordinates: Any = None,
    weights: Any = None,
    values: bool = False,
) -> GraphParts: ...
@overload
def spmv(
    matrix: Any,
    x: _Matrix,
    steps: SupportsIndex = 1,
    *,
    method: _SpmvMethod = "product",
    tolerance: float = 1e-8,
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    parts_method: _PartsMethod | None = None,
    remeasure: bool = False,
    report: Literal[False] = False,
) -> _Matrix: ...
@overload
def spmv(
    matrix: Any,
    x: _Matrix,
    steps: SupportsIndex = 1,
    *,
    method: _SpmvMethod = "product",
    tolerance: float = 1e-8,
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    parts_method: _PartsMethod | None = None,
    remeasure: bool = False,
    report: Literal[True],
) -> tuple[_Matrix, Report]: ...
@overload
def spmv(
    matrix: Any,
    x: Sequence[float],
    steps: SupportsIndex = 1,
    *,
    method: _SpmvMethod = "product",
    tolerance: float = 1e-8,
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    parts_method: _PartsMethod | None = None,
    remeasure: bool = False,
    report: bool = False,
) -> Any: ...
def simulate(
    layout: Layout,
    *,
    speeds: _Speeds | None = None,
    models: _Models | None = None,
    platform: _File | None = None,
    processors: Iterable[str] | None = None,
    latency: _Amount | None = None,
    bandwidth: _Amount | None = None,
    flow: _Flow | None = None,
    block: SupportsIndex | None = None,
    overlap: bool = False,
    look_ahead: SupportsIndex = 1,
    element: SupportsIndex = 8,
) -> Forecast: ...
def sweep(
    shape: Iterable[SupportsIndex],
    along: str,
    speeds: _Speeds | None = None,
    methods: Iterable[_ProductMethod] | None = None,
    *,
    models: _Models | None = None,
    platform: _File | None = None,
    processors: Iterable[str] | None = None,
    latency: _Amount | None = None,
    bandwidth: _Amount | None = None,
    flow: _Flow | None = None,
    block: SupportsIndex | None = None,
    overlap: bool = False,
    look_ahead: SupportsIndex = 1,
    points: SupportsIndex | None = None,
    margin: float = 0.0,
    element: SupportsIndex = 8,
) -> Sweep: ...
def processors() -> dict[str, list[int]]: ...
def map(
    f: Callable[[_T], _R],
    data: Iterable[_T],
    workers: SupportsIndex | Mapping[str, Iterable[SupportsIndex]] | _Executor | None = None,
    *,
    costs: Iterable[SupportsFloat] | None = None,
    verbose: bool = False,
) -> Results[_R]: ...
def measured(
    sizes: Iterable[SupportsIndex],
    *,
    processors: Mapping[str, Iterable[SupportsIndex]] | None = None,
    prepare: Callable[[int], Any] | None = None,
    tolerance: float = 0.025,
    seconds: float = 2.0,
    repetitions: int = 200,
    unit: str = "unit of work",
) -> Callable[[Callable[_P, _R]], Measured[_P, _R]]: ...
