"""What `sdy.jit` makes of a function on its way to XLA, with what `jax.stages` says of each stage."""

# jax does not declare all of its types.
# pyright: basic

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
from jax.sharding import AbstractMesh
from xdsl.dialects.builtin import ModuleOp

from sdy.passes.jax.device_mesh import AnyMesh
from sdy.passes.jax.sharded_program import ShardedProgram


class _AsInJax:
    """What jax says of a function at this stage, under the same name."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, stage: Any, owner: type) -> Any:
        return self if stage is None else getattr(stage._in_jax, self._name)


class Compiled(jax.stages.Compiled):
    """A function compiled for certain arguments, as jax has it, that says what it is."""

    described: str

    @classmethod
    def of(cls, compiled: jax.stages.Compiled, described: str) -> "Compiled":
        """`compiled` itself, which is then `described` so."""
        compiled.__class__ = cls
        assert isinstance(compiled, cls)
        compiled.described = described
        return compiled

    def __repr__(self) -> str:
        return f"<{self.described}>"


@dataclass(frozen=True, repr=False)
class Lowered:
    """A function lowered for certain arguments: the `module` with all shardings, and the `program` made of it.

    It answers what `jax.stages.Lowered` answers. Trees, types and texts are those of whole arrays; costs are those of
    the program that one device runs, whose text is `device_text`.
    """

    name: str
    module: ModuleOp
    program: ShardedProgram
    _in_jax: jax.stages.Lowered
    _by_jax: Callable[[], jax.stages.Lowered]

    args_info = _AsInJax()
    donate_argnums = _AsInJax()
    in_avals = _AsInJax()
    in_tree = _AsInJax()
    out_info = _AsInJax()
    out_tree = _AsInJax()

    def __repr__(self) -> str:
        return f"<sdy.jit({self.name}), lowered {self.program.signature}>"

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The program as jax lowered it, with the shardings that are given, as StableHLO or in another dialect of jax.

        With `debug_info`, the text says where in the source each operation comes from. Raises ValueError for a dialect
        that there is not.
        """
        return self._whole.as_text(dialect, debug_info=debug_info)

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """That program as an object of jaxlib: a module of MLIR, or with "hlo" a computation of XLA."""
        return self._whole.compiler_ir(dialect)

    def device_text(self, *, debug_info: bool = False) -> str:
        """What one device runs, with its collectives, as StableHLO; with `debug_info`, see `as_text`."""
        return self.program.local.as_text(debug_info)

    @cached_property
    def _whole(self) -> jax.stages.Lowered:
        return self._by_jax()

    def cost_analysis(self) -> Any:
        """What one device does, as XLA counts it: a table of floating-point operations ("flops"), bytes and so on."""
        with jax.enable_x64(True):
            parts = [
                jax.ShapeDtypeStruct(port.sharding.shard_shape(port.shape), port.dtype) for port in self.program.inputs
            ]
            return jax.jit(self.program.local, keep_unused=True).lower(*parts).cost_analysis()

    def compile(self, compiler_options: dict[str, Any] | None = None, **options: Any) -> Compiled:
        """The program compiled by XLA, as jax has it: call it with arguments of the same trees, shapes and types.

        `compiler_options` are those of XLA for this time, besides those that `sdy.jit` was given; `options` are the
        others that jax has, as `device_assignment`. Raises ValueError where the mesh has no devices.
        """
        check_devices(self.name, self.program.mesh)
        compiled = self._in_jax.compile(compiler_options, **options)
        return Compiled.of(compiled, f"sdy.jit({self.name}), compiled {self.program.signature}")


def check_devices(name: str, mesh: AnyMesh) -> None:
    """Raise ValueError where `mesh`, of the function of this name, is abstract, so that nothing can run on it."""
    if isinstance(mesh, AbstractMesh):
        axes = ", ".join(f"{axis}={size}" for axis, size in mesh.shape.items())
        raise ValueError(
            f"sdy.jit({name}) is for an abstract mesh of {mesh.size} devices ({axes}); here are {jax.device_count()}. "
            "It can be lowered; to compile and run it, give a jax.sharding.Mesh, which has devices"
        )


@dataclass(frozen=True, repr=False)
class Traced:
    """A function traced for certain arguments: what `jax.stages.Traced` says of it, and the way to what we make of it.

    Called, it is the function itself.
    """

    _in_jax: jax.stages.Traced
    _lower: Callable[[], Lowered]
    _lower_for_export: Callable[..., jax.stages.Lowered]

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

    def lower(self, **for_export: Any) -> Any:
        """The program for these arguments, to look at or to compile: a `Lowered`.

        Where `jax.export` asks for what it can save, with options of its own, it is a `jax.stages.Lowered`. Raises
        what calling the function raises.
        """
        return self._lower_for_export(**for_export) if for_export else self._lower()
