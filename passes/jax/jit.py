"""`sdy.jit`: what `jax.jit` is, with this compiler between jax and XLA.

    @sdy.jit(mesh=mesh, in_shardings=(None, P("data")), donate_argnums=0)
    def step(params, batch): ...

jax traces the function and lowers it; what is run in its place, as one operation of another function that jax compiles,
is the program that propagation and partitioning make of it. So all that happens from the second call on is what jax
does for any function that it has compiled.
"""

# jax does not declare all of its types.
# pyright: basic

import inspect
from collections.abc import Callable, Sequence
from functools import cached_property, partial, update_wrapper, wraps
from types import MethodType
from typing import Any
from warnings import warn
from weakref import ref

import jax
import numpy as np
from jax.core import eval_context
from jax.export import is_symbolic_dim
from jax.extend.core import get_opaque_trace_state
from jax.tree_util import tree_leaves

from sdy.mesh import Mesh
from sdy.passes.jax.compiled_by import compiled_by
from sdy.passes.jax.compiler import Compiler, choosing, chosen
from sdy.passes.jax.device_mesh import AnyMesh
from sdy.passes.jax.given_shardings import GivenShardings, Tree
from sdy.passes.jax.jax_internals import check_closed_over
from sdy.passes.jax.specialized import Specialized, described, lower
from sdy.passes.jax.stages import Lowered, Traced, check_devices
from sdy.passes.policy.policy import Policy
from sdy.sharding import TensorSharding

with eval_context():
    _NOTHING_TRACED = get_opaque_trace_state()


def jit(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    mesh: AnyMesh | Mesh | None = None,
    in_shardings: Tree = None,
    out_shardings: Tree = None,
    policy: Policy | None = None,
    compare_layouts: bool = True,
    **options: Any,
) -> Any:
    """`fun` as `jax.jit` makes it, but propagated and partitioned by this compiler; see `Jitted`.

    `mesh` has the devices; by default it is that of the shardings of the arguments. On an abstract mesh, or an
    `sdy.Mesh` of more devices than there are, a function can be lowered, not run. `in_shardings` and `out_shardings`
    are trees, or prefixes of them, of `NamedSharding`, `PartitionSpec`, `sdy.Sharding`, `Format`, or None for what the
    array has, else the compiler decides. Before it does, `policy` chooses how operations are computed, as in
    `sdy.propagate`. Of the layouts that Shardy would give to the program as it is written and to XLA's form of it, it
    takes the one with which devices receive fewer bytes, or without `compare_layouts` the former.
    `options` are those of `jax.jit`: static_argnums, static_argnames, donate_argnums, donate_argnames, keep_unused,
    inline, compiler_options. Without `fun`, the result is a decorator.
    """
    trees = (mesh, in_shardings, out_shardings)
    make = partial(Jitted, trees=trees, policy=policy, compare_layouts=compare_layouts, options=options)
    return make if fun is None else make(fun)


class Jitted:
    """A function that this compiler compiles when it is called.

    Trees of arrays go in and out, and it is compiled once for each combination of shapes, element types, weak types,
    tree structures, static arguments and shardings. Called while jax traces, inside `jax.jit`, `jax.grad` or
    `jax.vmap`, it is a part of what is traced, and the whole of that is compiled by this compiler, for this mesh and
    with this policy.

    Calling it raises what calling `jax.jit(fun)` raises, and DiagnosticError where the program cannot be partitioned.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        trees: tuple[Any, Tree, Tree],
        policy: Policy | None,
        compare_layouts: bool,
        options: dict[str, Any],
    ):
        update_wrapper(self, fun, updated=())  # what is cached for one function is not for another
        jax.jit(fun, **options)  # which refuses what is no option
        ref(fun)  # what cannot be weakly referenced ends the process where jaxlib traces it
        self._fun = fun
        self._trees = trees  # the mesh, in_shardings and out_shardings
        self._policy = policy
        self._compare_layouts = compare_layouts
        self._options = options
        self._by_shardings: dict[tuple[Any, ...], Any] = {}
        self._last: tuple[tuple[Any, ...] | None, Any] = (None, None)

    def __repr__(self) -> str:
        return f"<sdy.jit of {self._fun!r}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        is_disabled: bool = jax.config.jax_disable_jit  # pyright: ignore[reportAttributeAccessIssue]
        if is_disabled:
            return self._by_jax(*args, **kwargs)
        if not _nothing_is_traced():
            self._warn_of_what_jax_does_not_know()
            return self._nested(*args, **kwargs)
        shardings = self._shardings(args, kwargs)
        last, compiled = self._last
        if shardings != last:  # the same objects as a rule, which is seen sooner than it is looked up
            compiled = self._by_shardings.get(shardings) or self._jit(partial(self._specialize_to_run, shardings))
            self._by_shardings[shardings] = compiled
            self._last = shardings, compiled
        try:
            return compiled(*args, **kwargs)
        except ValueError:
            self._check_sizes(args)
            raise

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The tree of `jax.ShapeDtypeStruct`s of the results for arguments of these types; nothing is compiled."""
        return self._by_jax.eval_shape(*args, **kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """The function as jax traces it for arguments of these types, arrays or `jax.ShapeDtypeStruct`s."""
        traced = self._as_jax_traces(*args, **kwargs)
        return Traced(traced, partial(self.lower, *args, **kwargs), partial(self._lower_for_export, args, kwargs))

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The program for arguments of these types, arrays or `jax.ShapeDtypeStruct`s, to look at or to compile."""
        made = self._specialize(self._shardings(args, kwargs), args, kwargs)
        meshes = [made.program.mesh]
        for_xla = lower(self._jit(lambda args, kwargs: made).trace(*args, **kwargs), meshes)
        by_jax = partial(lower, self._as_jax_traces(*args, **kwargs), meshes)
        return Lowered(made.name, made.module, made.program, for_xla, by_jax)

    def _as_jax_traces(self, *args: Any, **kwargs: Any) -> jax.stages.Traced:
        return jax.jit(self._fun, **self._given.for_jax(), **self._options).trace(*args, **kwargs)

    def _lower_for_export(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], *, lowering_platforms: tuple[str, ...], **options: Any
    ) -> jax.stages.Lowered:
        """What is run for arguments of these types, in the form that jax saves."""
        if any(is_symbolic_dim(size) for leaf in tree_leaves((args, kwargs)) for size in np.shape(leaf)):
            instead = "export jax.jit of the function, and call what is exported within sdy.jit"
            raise ValueError(f"a program is partitioned for shapes that are known: {instead}")
        if len(lowering_platforms) > 1:
            raise ValueError(f"sdy.jit exports for one platform at a time, not for {', '.join(lowering_platforms)}")
        made = self._specialize(self._shardings(args, kwargs), args, kwargs, lowering_platforms)
        traced = self._jit(lambda args, kwargs: made).trace(*args, **kwargs)
        return traced.lower(lowering_platforms=lowering_platforms, **options)

    def clear_cache(self) -> None:
        """Forget what was traced and compiled: the next call traces the function again."""
        self._by_jax.clear_cache()
        for compiled in self._by_shardings.values():
            compiled.clear_cache()
        self._by_shardings.clear()
        self._last = None, None

    @cached_property
    def _given(self) -> GivenShardings:
        return GivenShardings.of(*self._trees)

    @cached_property
    def _by_jax(self) -> Any:
        """The function for jax to trace, which has nothing to donate."""
        return self._traced_by_jax(self._fun)

    @cached_property
    def _nested(self) -> Any:
        """The function as a part of what jax traces, whose program is to be compiled by this compiler."""
        return self._traced_by_jax(compiled_by(self._compiler, self._fun))

    @cached_property
    def _compiler(self) -> Compiler:
        return Compiler(self._given.mesh, self._policy, self._compare_layouts)

    def _traced_by_jax(self, fun: Callable[..., Any]) -> Any:
        options = {name: value for name, value in self._options.items() if not name.startswith("donate")}
        return jax.jit(fun, **self._given.for_jax(), **options)

    def _shardings(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The sharding of each array, where it counts."""
        if self._given.all_arguments:
            return ()
        return tuple([getattr(leaf, "sharding", None) for leaf in tree_leaves((args, kwargs))])

    def _warn_of_what_jax_does_not_know(self) -> None:
        trees = {"in_shardings": self._given.arguments, "out_shardings": self._given.results}
        lost = [name for name, tree in trees.items() if TensorSharding in map(type, tree_leaves(tree))]
        if lost:
            whose = f"an sdy.Sharding in {' and '.join(lost)} of {self._fun.__name__}"
            instead = "call it outside of jax.jit and jax.grad, or give a NamedSharding, which jax knows"
            warn(f"{whose} is not used where the function is a part of another program: {instead}", stacklevel=3)

    def _check_sizes(self, args: tuple[Any, ...]) -> None:
        """Say which argument's sharding does not fit its shape, which jax does not."""
        if self._given.arguments is None:
            return
        names = list(inspect.signature(self._fun).parameters)
        static = _static_positions(names, len(args), **self._options)
        dynamic = [index for index in range(len(args)) if index not in static]
        named = [names[index] if index < len(names) else f"args[{index}]" for index in dynamic]
        self._given.check_sizes([args[index] for index in dynamic], named)

    def _jit(self, specialize: Callable[[tuple[Any, ...], dict[str, Any]], Specialized]) -> Any:
        """The function of jax that runs what `specialize` makes of its arguments, which jax asks once for each type."""

        @wraps(self._fun)
        def program(*args: Any, **kwargs: Any) -> Any:
            if _nothing_is_traced():  # jax found a NaN, and asks each operation for the one that makes it
                return self._fun(*args, **kwargs)
            return specialize(args, kwargs)(args, kwargs)

        return jax.jit(program, **self._given.for_jax(), **self._options)

    def _specialize(
        self,
        shardings: tuple[Any, ...],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        platforms: tuple[str, ...] | None = None,
    ) -> Specialized:
        """What is run for arguments of these types, or with these types and `shardings` where they are traced."""
        args, kwargs = described((args, kwargs), shardings)
        compilers = [*chosen(), self._compiler]
        with eval_context(), choosing(self._compiler):
            traced = self._by_jax.trace(*args, **kwargs)
        check_closed_over(traced)
        return Specialized.of(traced, shardings, self._given, compilers, platforms)

    def _specialize_to_run(
        self, shardings: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Specialized:
        """As `_specialize`. Raises ValueError where there are no devices to run it on."""
        made = self._specialize(shardings, args, kwargs)
        check_devices(made.name, made.program.mesh)
        return made


def _nothing_is_traced() -> bool:
    return get_opaque_trace_state() == _NOTHING_TRACED


def _static_positions(
    names: Sequence[str],
    count: int,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    **_: Any,
) -> set[int]:
    """Which of `count` positional arguments are static, of a function whose parameters have these names."""
    numbers = {static_argnums} if isinstance(static_argnums, int) else set(static_argnums or ())
    by_name = {static_argnames} if isinstance(static_argnames, str) else set(static_argnames or ())
    return {number % count for number in numbers} | {index for index, name in enumerate(names) if name in by_name}
