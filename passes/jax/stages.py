"""The stages of a function of `sdy.jit`: traced, lowered, compiled, with the attributes of `jax.stages`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
from jax.export import is_symbolic_dim
from jax.interpreters import mlir
from jax.sharding import AbstractMesh
from jax.tree_util import tree_leaves
from xdsl.dialects.builtin import ModuleOp

from sdy.passes.common.immutable import OfThisProcess
from sdy.passes.jax.bindings.bound_arguments import with_bound_arguments
from sdy.passes.jax.bindings.call_trees import CallTrees, call_trees_of
from sdy.passes.jax.bindings.from_jax import JaxProgram, Staged, from_jax, from_lowered
from sdy.passes.jax.compilation import Compilation, PropagatedProgram, inner_compilers
from sdy.passes.jax.compiler_context import Compiler, compares_layouts, memory_of, policy_of, use_compilers
from sdy.passes.jax.device_mesh import refuse_abstract
from sdy.passes.jax.jax_internals import ToCompile, lower_with_placements, with_module
from sdy.passes.jax.memory_limit import rematerialization_limit
from sdy.passes.jax.program.sharded_program import ShardedProgram
from sdy.passes.jax.refused_kernels import explain_refused_kernels
from sdy.passes.layouts import partitioner_for
from sdy.passes.policy import Policy
from sdy.passes.python.program import to_python


class _AsInJax:
    """An attribute that forwards to the `jax.stages` object of this stage."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, stage: Any, owner: type) -> Any:
        return self if stage is None else getattr(stage._in_jax, self._name)


class Compiled(OfThisProcess, jax.stages.Compiled):
    """A `jax.stages.Compiled` with a description as its repr."""

    describe: Callable[[], str]

    @classmethod
    def of(cls, compiled: jax.stages.Compiled, describe: Callable[[], str]) -> "Compiled":
        """Change the class of `compiled` in place, and set the description."""
        compiled.__class__ = cls
        assert isinstance(compiled, cls)
        compiled.describe = describe
        return compiled

    def __repr__(self) -> str:
        return f"<{self.describe()}>"


class LoweredProgram(Staged):
    """A program lowered by JAX: its propagated `module` and its partitioned `program`."""

    name: str
    _compilers: tuple[Compiler, ...]

    @cached_property
    @abstractmethod
    def _compilation(self) -> Compilation:
        """The propagated and partitioned program."""

    @property
    def module(self) -> ModuleOp:
        """The module with all shardings. Raises DiagnosticError if it cannot be partitioned."""
        return self._compilation.layout.module

    @cached_property
    def program(self) -> ShardedProgram:
        """The partitioned program. Raises DiagnosticError if it cannot be partitioned."""
        return self._compilation.program()

    @property
    def lowered(self) -> ModuleOp:
        """A copy of the module as jax lowered it, with the shardings that were given."""
        return self._compilation.with_shardings()

    @property
    def call_trees(self) -> CallTrees:
        """The trees of the arguments and results, as far as they are known."""
        return CallTrees()

    def before_propagation(self) -> tuple[ModuleOp, Policy | None, bool]:
        """Return a copy of the module before propagation, its policy, and whether to compare its HLO form."""
        module = self._compilation.before_propagation()
        return module, policy_of(self._compilers), compares_layouts(self._compilers)

    @cached_property
    def memory_limit(self) -> str:
        """The limit of the predicted memory of a device, such as "2G"; empty without limit."""
        return memory_of(self._compilers)

    def device_text(self, *, debug_info: bool = False) -> str:
        """Return the program of one device as StableHLO text, with source locations if `debug_info`."""
        return self.program.local.as_text(debug_info)

    def to_python(self) -> str:
        """Return the program of one device as a Python file that imports JAX alone, as `sdy.to_python` does."""
        return to_python(self._compilation.layout.local, self.name)


@dataclass(frozen=True, repr=False)
class Lowered(LoweredProgram):
    """A lowered function: its propagated `module` and its partitioned `program`.

    Attributes of `jax.stages.Lowered` describe global arrays. `cost_analysis` and `device_text` describe the program of
    one device.
    """

    name: str
    _in_jax: jax.stages.Lowered
    _compilers: tuple[Compiler, ...]

    args_info = _AsInJax()
    as_text = _AsInJax()
    compiler_ir = _AsInJax()
    donate_argnums = _AsInJax()
    in_avals = _AsInJax()
    in_tree = _AsInJax()
    out_info = _AsInJax()
    out_tree = _AsInJax()

    def __repr__(self) -> str:
        return f"<sdy.jit({self.name}), lowered {self.program.signature}>"

    def from_jax(self) -> ModuleOp:
        return from_lowered(self._in_jax)

    @cached_property
    def _compilation(self) -> Compilation:
        lowered = ToCompile.of(self._in_jax)
        partitioner = partitioner_for(self.memory_limit, warns=self._abstract_mesh is not None)
        return PropagatedProgram.of(lowered, self._all_compilers).partitioned(partitioner)

    @cached_property
    def memory_limit(self) -> str:
        """The limit of the predicted memory of a device, such as "2G"; empty without limit.

        The first access compiles the program, if it has devices: the limit is smaller than the given one where XLA
        needs more memory than predicted.
        """
        memory = memory_of(self._all_compilers)
        if not memory or self._abstract_mesh is not None:
            return memory
        limit = rematerialization_limit(self.compile())
        return memory if limit is None else str(limit)

    @property
    def _all_compilers(self) -> Sequence[Compiler]:
        """The compilers, those of functions inside the program included."""
        return [*self._compilers, *inner_compilers(ToCompile.of(self._in_jax))]

    @property
    def _abstract_mesh(self) -> AbstractMesh | None:
        """An abstract mesh of the program, on which it cannot be compiled."""
        meshes = [*(compiler.mesh for compiler in self._compilers), *ToCompile.of(self._in_jax).meshes]
        return next((mesh for mesh in meshes if isinstance(mesh, AbstractMesh)), None)

    @property
    def call_trees(self) -> CallTrees:
        return call_trees_of(self._in_jax)

    def cost_analysis(self) -> Any:
        """Return XLA's cost analysis of one device's program: floating-point operations ("flops"), bytes and so on."""
        with jax.enable_x64(True):
            parts = [
                jax.ShapeDtypeStruct(port.sharding.shard_shape(port.shape), port.dtype) for port in self.program.inputs
            ]
            return jax.jit(self.program.local, keep_unused=True).lower(*parts).cost_analysis()

    def compile(self, compiler_options: dict[str, Any] | None = None, **options: Any) -> Compiled:
        """Compile the program with XLA, for arguments of the same trees, shapes and types.

        Args:
            compiler_options: options of XLA, in addition to those of `sdy.jit`.
            **options: other options of `jax.stages.Lowered.compile`, such as `device_assignment`.

        Raises:
            ValueError: the mesh is abstract.
            DiagnosticError: the program cannot be partitioned.
        """
        if "device_assignment" not in options:
            refuse_abstract(self.name, self._abstract_mesh)
        with use_compilers(self._compilers):
            compiled = self._in_jax.compile(compiler_options, **options)
        return Compiled.of(compiled, lambda: f"sdy.jit({self.name}), compiled {self.program.signature}")


class Lowerable(ABC):
    """A function that sdy compiles for the arguments of a call, such as one of `sdy.jit`."""

    @abstractmethod
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Lower the function for arguments of these types, arrays or `jax.ShapeDtypeStruct`s."""


@dataclass(frozen=True, repr=False)
class Traced(Staged):
    """A traced function, with the attributes of `jax.stages.Traced`. Calling it calls the function."""

    _in_jax: jax.stages.Traced
    _compilers: tuple[Compiler, ...]

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
        """Lower the function to a `Lowered`, or to a `jax.stages.Lowered` if `jax.export` calls it.

        Raises the errors of calling the function.
        """
        if "lowering_platforms" in for_export:
            return self._lower_for_export(**for_export)
        with use_compilers(self._compilers), explain_refused_kernels(lambda: self.jaxpr):
            lowered = lower_with_placements(self._in_jax, **for_export)
        return Lowered(self.fun_name, lowered, self._compilers)

    def from_jax(self) -> ModuleOp:
        return from_lowered(self.lower()._in_jax, self.jaxpr)

    def _lower_for_export(self, *, lowering_platforms: tuple[str, ...], **options: Any) -> jax.stages.Lowered:
        """Lower the partitioned program in the form that `jax.export` saves."""
        if any(is_symbolic_dim(size) for aval in tree_leaves(self.in_avals) for size in aval.shape):
            instead = "export jax.jit of the function, and call what is exported within sdy.jit"
            raise ValueError(f"a program is partitioned for shapes that are known: {instead}")
        if len(lowering_platforms) > 1:
            raise ValueError(f"sdy.jit exports for one platform at a time, not for {', '.join(lowering_platforms)}")
        with use_compilers(self._compilers), explain_refused_kernels(lambda: self.jaxpr):
            lowered = self._in_jax.lower(lowering_platforms=lowering_platforms)
            saved = self._in_jax.lower(lowering_platforms=lowering_platforms, **options)
        compilers = [*self._compilers, *inner_compilers(ToCompile.of(lowered))]
        propagated = PropagatedProgram.of(ToCompile.of(lowered), compilers)
        compilation = propagated.partitioned(partitioner_for(memory_of(compilers)))
        return (
            with_module(saved, compilation.manual(mlir.make_ir_context()).module) if compilation.is_sharded else saved
        )


def lowered(program: JaxProgram, *args: Any, **kwargs: Any) -> LoweredProgram | ModuleOp:
    """Lower a program: one of `sdy.jit` to its `Lowered`, any other to a module that has not been propagated.

    Raises:
        TypeError: Arguments are given for a traced or lowered program.
    """
    program, args, kwargs = with_bound_arguments(program, args, kwargs)
    if isinstance(program, Lowerable):
        return program.lower(*args, **kwargs)
    if not isinstance(program, Traced | LoweredProgram) or args or kwargs:
        return from_jax(program, *args, **kwargs)
    return program.lower() if isinstance(program, Traced) else program
