from collections.abc import Callable, Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeAlias, TypeVar, overload

import numpy as np
from jax._src.basearray import Array as Array
from jax._src.basearray import ArrayLike, DTypeLike
from jaxlib._jax import Device as Device

from sdy.type_helpers import Function

from . import debug as debug
from . import distributed as distributed
from . import dtypes as dtypes
from . import errors as errors
from . import export as export
from . import ffi as ffi
from . import lax as lax
from . import nn as nn
from . import numpy as numpy
from . import ops as ops
from . import random as random
from . import scipy as scipy
from . import sharding as sharding
from . import stages as stages
from . import tree as tree
from . import tree_util as tree_util

__version__: str
__version_info__: tuple[int, int, int]

class ShapeDtypeStruct:
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    sharding: Any
    weak_type: bool
    def __init__(
        self, shape: Sequence[int], dtype: DTypeLike, *, sharding: Any = ..., weak_type: bool = ...
    ) -> None: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...

# Transformations.

_Argnums: TypeAlias = int | Sequence[int]
_R = TypeVar("_R")

class custom_vjp(Generic[_R]):
    def __init__(self, fun: Callable[..., _R], nondiff_argnums: Sequence[int] = ...) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> _R: ...
    def defvjp(self, fwd: Function[tuple[_R, Any]], bwd: Function[tuple[Any, ...]]) -> None: ...

memory: Any

checkpoint_policies: Any

def checkpoint(fun: Function[Any], *, policy: Callable[..., bool] | None = ...) -> Callable[..., Any]: ...
def eval_shape(fun: Function[Any], *args: Any, **kwargs: Any) -> Any: ...
def grad(fun: Function[Any], argnums: _Argnums = ..., has_aux: bool = ...) -> Callable[..., Any]: ...
def jacfwd(fun: Function[Any], argnums: _Argnums = ...) -> Callable[..., Any]: ...
def jacrev(fun: Function[Any], argnums: _Argnums = ...) -> Callable[..., Any]: ...
@overload
def jit(
    fun: Function[Any],
    /,
    *,
    in_shardings: Any = ...,
    out_shardings: Any = ...,
    static_argnums: _Argnums | None = ...,
    static_argnames: str | Iterable[str] | None = ...,
    donate_argnums: _Argnums | None = ...,
    donate_argnames: str | Iterable[str] | None = ...,
    keep_unused: bool = ...,
    inline: bool = ...,
    compiler_options: dict[str, Any] | None = ...,
) -> stages.Wrapped: ...
@overload
def jit(
    *,
    in_shardings: Any = ...,
    out_shardings: Any = ...,
    static_argnums: _Argnums | None = ...,
    static_argnames: str | Iterable[str] | None = ...,
    donate_argnums: _Argnums | None = ...,
    donate_argnames: str | Iterable[str] | None = ...,
    keep_unused: bool = ...,
    inline: bool = ...,
    compiler_options: dict[str, Any] | None = ...,
) -> Callable[[Callable[..., Any]], stages.Wrapped]: ...
def linearize(fun: Function[Any], *primals: Any) -> tuple[Any, Callable[..., Any]]: ...
def make_jaxpr(
    fun: Function[Any], static_argnums: _Argnums = ..., *, return_shape: bool = ...
) -> Callable[..., Any]: ...
def pure_callback(
    callback: Function[Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: sharding.Sharding | None = ...,
    vmap_method: str | None = ...,
    **kwargs: Any,
) -> Any: ...
def shard_map(
    f: Function[Any],
    /,
    *,
    out_specs: Any,
    in_specs: Any = ...,
    mesh: sharding.Mesh | sharding.AbstractMesh | None = ...,
    axis_names: AbstractSet[Hashable] = ...,
    check_vma: bool = ...,
) -> Callable[..., Any]: ...
def typeof(x: Any) -> Any: ...
def value_and_grad(
    fun: Function[Any], argnums: _Argnums = ..., has_aux: bool = ..., *, allow_int: bool = ...
) -> Callable[..., tuple[Any, Any]]: ...
def jvp(fun: Function[Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]: ...
def linear_transpose(fun: Function[Any], *primals: Any) -> Callable[..., tuple[Any, ...]]: ...
def vjp(fun: Function[Any], *primals: Any) -> tuple[Any, Callable[..., Any]]: ...
def vmap(
    fun: Function[Any], in_axes: int | Sequence[Any] | None = ..., out_axes: Any = ..., axis_name: Hashable = ...
) -> Callable[..., Any]: ...

# Arrays and devices.

def block_until_ready(x: _R) -> _R: ...
def default_backend() -> str: ...
def device_count(backend: str | None = ...) -> int: ...
def device_get(x: Any) -> Any: ...
def device_put(x: Any, device: Any = ..., *, donate: bool = ..., may_alias: bool | None = ...) -> Any: ...
def devices(backend: str | None = ...) -> list[Device]: ...
def live_arrays(platform: str | None = ...) -> list[Array]: ...
def effects_barrier() -> None: ...
def process_count(backend: str | None = ...) -> int: ...
def process_index(backend: str | None = ...) -> int: ...
def local_devices(process_index: int | None = ..., backend: str | None = ...) -> list[Device]: ...
def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Any, arrays: Sequence[Array], *, dtype: Any = ...
) -> Array: ...
def make_array_from_callback(
    shape: Sequence[int],
    sharding: sharding.Sharding,
    data_callback: Callable[[Any], ArrayLike],
    dtype: Any = ...,
) -> Array: ...
def make_mesh(
    axis_shapes: Sequence[int],
    /,
    axis_names: Sequence[str],
    axis_types: tuple[sharding.AxisType, ...] | None = ...,
    *,
    devices: Sequence[Device] | None = ...,
) -> sharding.Mesh: ...

# Settings.

class _Config:
    values: dict[str, Any]
    jax_enable_x64: bool
    jax_log_compiles: bool
    def update(self, name: str, val: Any) -> None: ...

class _UserContext:
    value: Any
    def __call__(self, value: Any) -> AbstractContextManager[None]: ...

config: _Config

def clear_caches() -> None: ...
def default_device(new_val: Device | None) -> AbstractContextManager[None]: ...
def default_matmul_precision(new_val: str | None) -> AbstractContextManager[None]: ...
def threefry_partitionable(new_val: bool) -> AbstractContextManager[None]: ...
def disable_jit(disable: bool = ...) -> AbstractContextManager[None]: ...
def enable_x64(new_val: bool = ...) -> AbstractContextManager[None]: ...
def log_compiles(new_val: bool = ...) -> AbstractContextManager[None]: ...
def make_user_context(default_value: Any = ...) -> _UserContext: ...
def named_scope(name: str) -> AbstractContextManager[None]: ...
def set_mesh(mesh: sharding.Mesh) -> AbstractContextManager[None]: ...
