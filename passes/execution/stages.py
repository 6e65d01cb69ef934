"""What `sdy.jit` makes of a function on its way to XLA, with what `jax.stages` says of each stage."""

# jax does not declare all of its types.
# pyright: basic

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp

from sdy.passes.execution.sharded_program import ShardedProgram


class _AsInJax:
    """What jax says of a function at this stage, under the same name."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, stage: Any, owner: type) -> Any:
        return self if stage is None else getattr(stage._in_jax, self._name)


@dataclass(frozen=True, repr=False)
class Lowered:
    """A function lowered for certain arguments: the `module` with all shardings, and the `program` made of it.

    It answers what `jax.stages.Lowered` answers. Trees and types are those of whole arrays; texts and costs are those
    of the program that one device runs.
    """

    name: str
    module: ModuleOp
    program: ShardedProgram
    _in_jax: jax.stages.Lowered

    args_info = _AsInJax()
    donate_argnums = _AsInJax()
    in_avals = _AsInJax()
    in_tree = _AsInJax()
    out_info = _AsInJax()
    out_tree = _AsInJax()

    def __repr__(self) -> str:
        mesh = ", ".join(f"{name}={size}" for name, size in self.program.mesh.shape.items())
        inputs, outputs = len(self.program.inputs), len(self.program.outputs)
        return f"<sdy.jit({self.name}), lowered for the mesh {mesh}: arrays in: {inputs}, out: {outputs}>"

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """What one device runs, as StableHLO or in another dialect of jax, which is "hlo".

        With `debug_info`, the text says where in the source each operation comes from. Raises ValueError for a dialect
        that there is not.
        """
        if dialect in _STABLEHLO:
            return self.program.local.as_text(debug_info)
        return self._alone.as_text(dialect, debug_info=debug_info)

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """What one device runs, as an object of jaxlib: a module of MLIR, or with "hlo" a computation of XLA."""
        return self.program.local.module() if dialect in _STABLEHLO else self._alone.compiler_ir(dialect)

    def cost_analysis(self) -> Any:
        """What one device does, as XLA counts it: a table of floating-point operations ("flops"), bytes and so on."""
        return self._alone.cost_analysis()

    def compile(self, compiler_options: dict[str, Any] | None = None) -> jax.stages.Compiled:
        """The program compiled by XLA, as jax has it: call it with arguments of the same trees, shapes and types.

        `compiler_options` are those of XLA for this time, besides those that `sdy.jit` was given.
        """
        return self._in_jax.compile(compiler_options)

    @cached_property
    def _alone(self) -> jax.stages.Lowered:
        """The program of one device, as if there were no others."""
        with jax.enable_x64(True):
            parts = [
                jax.ShapeDtypeStruct(port.sharding.shard_shape(port.shape), port.dtype) for port in self.program.inputs
            ]
            return jax.jit(self.program.local, keep_unused=True).lower(*parts)


_STABLEHLO = {None, "stablehlo"}


@dataclass(frozen=True, repr=False)
class Traced:
    """A function traced for certain arguments: what `jax.stages.Traced` says of it, and the way to what we make of it.

    Called, it is the function itself.
    """

    _in_jax: jax.stages.Traced
    _lower: Callable[[], Lowered]

    args_info = _AsInJax()
    closure_convert = _AsInJax()
    donate_argnums = _AsInJax()
    effects = _AsInJax()
    fun_name = _AsInJax()
    in_avals = _AsInJax()
    in_tree = _AsInJax()
    jaxpr = _AsInJax()
    lojax = _AsInJax()
    out_avals = _AsInJax()
    out_info = _AsInJax()
    out_tree = _AsInJax()
    physicalize = _AsInJax()
    with_consts_as_arg = _AsInJax()

    def __repr__(self) -> str:
        return f"<sdy.jit({self.fun_name}), traced>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._in_jax(*args, **kwargs)

    def lower(self) -> Lowered:
        """The program for these arguments, to look at or to compile. Raises what calling the function raises."""
        return self._lower()
