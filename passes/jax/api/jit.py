"""`sdy.jit`: `jax.jit` with sdy between jax and XLA.

    @sdy.jit(mesh=mesh, in_shardings=(None, P("data")), donate_argnums=0)
    def step(params, batch): ...

It calls a function of `jax.jit` with sdy as the active compiler, as in `sdy.compiler`: jax traces and lowers it, and
the hook replaces the module that XLA compiles. From the second call on, a call is jax's own dispatch.
"""

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial, update_wrapper, wraps
from types import MethodType
from typing import Any
from weakref import ref

import jax
from jax.core import eval_context
from jax.extend.core import get_opaque_trace_state
from jax.tree_util import tree_leaves

from sdy.mesh import Mesh
from sdy.passes.jax.api.auto_jit import Planned, choice_in
from sdy.passes.jax.api.compiler import install_hook
from sdy.passes.jax.api.given_shardings import GivenShardings, Tree
from sdy.passes.jax.api.marker_primitive import with_marker
from sdy.passes.jax.api.positional_call import static_positions
from sdy.passes.jax.compiler_context import Compiler, active_compilers, known_hardware, memory_limit, use_compilers
from sdy.passes.jax.device_mesh import AnyMesh, refuse_abstract
from sdy.passes.jax.jax_internals import on_devices
from sdy.passes.jax.refused_kernels import explain_refused_kernels
from sdy.passes.jax.stages import Lowerable, Lowered, Traced
from sdy.passes.policy import Policy
from sdy.sharding import TensorSharding
from sdy.type_helpers import Function

with eval_context():
    _NOTHING_TRACED = get_opaque_trace_state()

_NOWHERE = nullcontext()


def jit(
    fun: Function[Any] | None = None,
    /,
    *,
    mesh: AnyMesh | Mesh | None = None,
    in_shardings: Tree = None,
    out_shardings: Tree = None,
    policy: Policy | None = None,
    compare_layouts: bool = True,
    memory: str | float | None = None,
    hardware: str | None = None,
    **options: Any,
) -> Any:
    """Compile `fun` as `jax.jit` does, but propagated and partitioned by sdy.

    Args:
        fun: the function; without it, the result is a decorator.
        mesh: the devices, by default those of the shardings of the arguments. On an abstract mesh, or an `sdy.Mesh`
            with more devices than jax has, the function can be lowered but not run.
        in_shardings: a tree, or a prefix, of `NamedSharding`, `PartitionSpec`, `sdy.Sharding`, `Format`, `sdy.AUTO`, or
            None. None keeps the sharding of the array, or else leaves it to propagation; `sdy.AUTO` chooses the
            sharding with the least predicted step time, see `Planned`.
        out_shardings: the same for the results, without `sdy.AUTO`: beside automatic `in_shardings`, None chooses them.
        policy: called with the program's operations before propagation, as in `sdy.propagate`.
        compare_layouts: propagate both the program as written and its HLO form, and keep the layout that moves fewer
            bytes; otherwise the program as written alone.
        memory: the bytes that a device may use, as a number or a size such as "2G". Values are recomputed instead of
            kept until the compiled program needs at most that; `sdy.MemoryLimitWarning` says if it needs more.
        hardware: a preset or file of the devices, such as "tpu-v5e". Where that is predicted to hide collectives,
            products are computed in parts (`sdy-window-products`), and loops gather what the next iteration needs
            (`sdy-prefetch-in-loops`).
        **options: options of `jax.jit`: static_argnums, static_argnames, donate_argnums, donate_argnames,
            keep_unused, inline, compiler_options.

    Returns:
        A `Jitted` function.

    Raises:
        ValueError: `memory` is not a size.
        DiagnosticError: the hardware is unknown.
    """
    limit, planned_for = memory_limit(memory), known_hardware(hardware)
    if choice_in(in_shardings) is not None:
        compiled = partial(jit, compare_layouts=compare_layouts, memory=memory, hardware=hardware)
        trees = (in_shardings, out_shardings)
        make = partial(
            Planned, mesh=mesh, trees=trees, compiled=compiled, policy=policy, memory=memory, options=options
        )
        return make if fun is None else make(fun)
    trees = (mesh, in_shardings, out_shardings)
    make = partial(
        Jitted,
        trees=trees,
        policy=policy,
        compare_layouts=compare_layouts,
        memory=limit,
        hardware=planned_for,
        options=options,
    )
    return make if fun is None else make(fun)


class Jitted(Lowerable):
    """A function of `sdy.jit`.

    Arguments and results are trees of arrays. It is compiled once for each combination of shapes, element types, weak
    types, tree structures, static arguments and shardings. Inside `jax.jit`, `jax.grad` or `jax.vmap`, it is traced as
    a part of the outer program, which sdy then compiles for this mesh and with this policy.

    Calling it raises the errors of calling `jax.jit(fun)`, and DiagnosticError if the program cannot be partitioned.
    """

    def __init__(
        self,
        fun: Function[Any],
        trees: tuple[Any, Tree, Tree],
        policy: Policy | None,
        compare_layouts: bool,
        memory: str,
        hardware: str,
        options: dict[str, Any],
    ):
        update_wrapper(self, fun, updated=())  # a copied __dict__ would share cached properties
        install_hook()
        self._fun = fun
        self._trees = trees  # the mesh, in_shardings and out_shardings
        self._policy = policy
        self._compare_layouts = compare_layouts
        self._memory = memory
        self._hardware = hardware
        self._options = options
        if any(isinstance(leaf, Mesh | TensorSharding) for leaf in tree_leaves(trees)):
            jax.jit(fun, **options)  # raises for unknown options
        else:
            _ = self._by_jax  # raises for unknown options, without initializing devices
        ref(fun)  # raises TypeError: jaxlib aborts the process if the function has no weak references

    def __repr__(self) -> str:
        return f"<sdy.jit of {self._fun!r}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if get_opaque_trace_state() != _NOTHING_TRACED:
            return (self._by_jax if self._compiler in active_compilers() else self._nested)(*args, **kwargs)
        refuse_abstract(self._name, self._given.mesh)
        try:
            with use_compilers((*active_compilers(), self._compiler)), self._devices():
                return self._by_jax(*args, **kwargs)
        except ValueError:
            self._check_sizes(args)
            raise
        except NotImplementedError:
            with explain_refused_kernels(lambda: self.trace(*args, **kwargs).jaxpr):
                raise

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Return the results' tree of `jax.ShapeDtypeStruct`s for arguments of these types, without compiling."""
        return self.trace(*args, **kwargs).out_info

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Trace the function for arguments of these types, arrays or `jax.ShapeDtypeStruct`s."""
        compilers = (*active_compilers(), self._compiler)
        with use_compilers(compilers), self._devices():
            traced = self._by_jax.trace(*args, **kwargs)
        return Traced(traced, compilers)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Lower the function for arguments of these types, arrays or `jax.ShapeDtypeStruct`s."""
        return self.trace(*args, **kwargs).lower()

    def clear_cache(self) -> None:
        """Clear the cache of traced and compiled programs."""
        self._by_jax.clear_cache()

    @cached_property
    def _name(self) -> str:
        return getattr(self._fun, "__name__", repr(self._fun))

    @cached_property
    def _given(self) -> GivenShardings:
        return GivenShardings.of(*self._trees)

    @cached_property
    def _compiler(self) -> Compiler:
        return Compiler(self._given.mesh, self._policy, self._compare_layouts, self._memory, self._hardware)

    @cached_property
    def _by_jax(self) -> Any:
        """The function under `jax.jit`, for calls with sdy as the active compiler."""
        fun = self._constrained if self._given.ours else self._fun
        return jax.jit(fun, **self._given.for_jax(), **self._options)

    @cached_property
    def _nested(self) -> Any:
        """The function under `jax.jit` with a marker, for calls inside another traced program."""
        fun = self._constrained if self._given.ours else self._fun
        return jax.jit(with_marker(self._compiler, self._mesh_of_marker, fun), **self._given.for_jax(), **self._options)

    @cached_property
    def _constrained(self) -> Callable[..., Any]:
        """The function with its arguments and results constrained to the shardings that jax does not know."""

        @wraps(self._fun)
        def constrained(*args: Any, **kwargs: Any) -> Any:
            positions, names = self._dynamic(args)
            dynamic = self._given.constrain_arguments([args[position] for position in positions], names)
            changed = dict(zip(positions, dynamic, strict=True))
            args = tuple(changed.get(position, arg) for position, arg in enumerate(args))
            return self._given.constrain_results(self._fun(*args, **kwargs))

        return constrained

    @cached_property
    def _mesh_of_marker(self) -> jax.sharding.Mesh | None:
        """The mesh, if jax does not know it from a sharding."""
        mesh, jax_knows_mesh = self._given.mesh, self._trees[0] is None and not self._given.ours
        return mesh if isinstance(mesh, jax.sharding.Mesh) and not jax_knows_mesh else None

    def _devices(self) -> AbstractContextManager[None]:
        """Return a context in which jax lowers for the devices of the mesh, unless the context has a mesh already."""
        mesh = self._mesh_of_marker
        return on_devices(mesh) if mesh is not None and jax.sharding.get_abstract_mesh().empty else _NOWHERE

    def _check_sizes(self, args: tuple[Any, ...]) -> None:
        """Raise ValueError with the name of an argument whose sharding does not fit its shape; jax does not name it."""
        if self._given.arguments is None:
            return
        positions, names = self._dynamic(args)
        self._given.check_sizes([args[position] for position in positions], names)

    def _dynamic(self, args: tuple[Any, ...]) -> tuple[list[int], list[str]]:
        """Return the indices of the positional arguments that are not static, and the names of their parameters."""
        names = _parameters(self._fun)
        static = static_positions(names, len(args), self._options)
        positions = [index for index in range(len(args)) if index not in static]
        return positions, [names[index] if index < len(names) else f"args[{index}]" for index in positions]


def _parameters(fun: Function[Any]) -> list[str]:
    """Return the names of the parameters of `fun`, or none if it has no signature, as some built-in functions."""
    try:
        return list(inspect.signature(fun).parameters)
    except (TypeError, ValueError):
        return []
