"""Pipelines written in JAX: `sdy.mpmd.stages`.

A function of jax whose stages are named is lowered for the mesh of one stage, partitioned by Shardy's MPMD compiler,
and executed by `sdy.mpmd.run`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import update_wrapper
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import AxisType
from jax.tree_util import tree_flatten, tree_leaves, tree_map, tree_unflatten

from sdy.mesh import Mesh
from sdy.passes.auto.auto import auto
from sdy.passes.jax.api.accumulate import with_pipelined_microbatches
from sdy.passes.jax.api.auto_jit import type_of
from sdy.passes.jax.api.given_shardings import GivenShardings, Tree
from sdy.passes.jax.api.positional_call import PositionalCall, positional_call
from sdy.passes.jax.bindings.from_jax import from_jax
from sdy.passes.jax.mpmd.named_computations import as_stage, name_computations
from sdy.passes.jax.mpmd.pipeline import Pipeline
from sdy.passes.jax.mpmd.run import run
from sdy.passes.jax.mpmd.shardy_compiler import partition
from sdy.passes.jax.operators.keys import Keys, keys_among, with_data, with_keys
from sdy.passes.mpmd.plan import PipelinePlan, plan
from sdy.passes.mpmd.scheduled_calls import schedule_calls, stage_name
from sdy.passes.mpmd.schedules import SCHEDULES
from sdy.passes.mpmd.schedules import schedule as schedule_of
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.text import format, parse
from sdy.type_helpers import Function


def stages(mesh: jax.sharding.Mesh, axis: str = "stage", *, chunks: int = 1) -> "Stages":
    """Divide a mesh into the meshes of stages, along one axis.

    Args:
        mesh: The mesh of all devices.
        axis: The axis along which the stages are. The mesh of a stage has it with size 1.
        chunks: The number of stages of each mesh. Mesh d of p has the stages d, d + p, d + 2p, ...

    Raises:
        ValueError: The mesh has no such axis, or `chunks` is less than 1.

    Example:
        ```python
        pp = sdy.mpmd.stages(mesh)

        def loss(params, x, y):
            for index in range(4):
                x = pp.stage(index)(block)(params[index], x)
            return pp.stage(3)(cross_entropy)(x, y)

        @pp.jit
        def train_step(params, x, y):
            value, gradients = sdy.accumulate(jax.value_and_grad(loss), params, x, y, microbatches=8)
            return value, jax.tree.map(lambda w, g: w - 0.1 * g, params, gradients)
        ```
    """
    return Stages(mesh, axis, chunks)


class Stages:
    """The stages of a pipeline, each on a mesh of its own; `sdy.mpmd.stages` makes it.

    Attributes:
        mesh: The mesh of all devices.
        axis: The axis of the mesh along which the stages are.
        chunks: The number of stages of each mesh.
        meshes: The meshes of stages, by the name of their first: "stage0", "stage1", ...
    """

    def __init__(self, mesh: jax.sharding.Mesh, axis: str, chunks: int = 1):
        if axis not in mesh.axis_names:
            raise ValueError(f"the mesh has no axis '{axis}'; its axes are {', '.join(map(str, mesh.axis_names))}")
        if chunks < 1:
            raise ValueError(f"the number of chunks is {chunks}; it must be at least 1")
        self.mesh, self.axis, self.chunks = mesh, axis, chunks
        position = mesh.axis_names.index(axis)
        types = (AxisType.Auto,) * len(mesh.axis_names)
        self.meshes: Mapping[str, jax.sharding.Mesh] = {
            stage_name(index): jax.sharding.Mesh(
                np.take(mesh.devices, [index], position), mesh.axis_names, axis_types=types
            )
            for index in range(mesh.shape[axis])
        }

    def __len__(self) -> int:
        """Return the number of stages."""
        return len(self.meshes) * self.chunks

    def __repr__(self) -> str:
        return f"<{len(self)} stages on {len(self.meshes)} meshes of {next(iter(self.meshes.values())).size} devices>"

    def stage(self, index: int) -> Callable[[Function[Any]], Function[Any]]:
        """Return a decorator of functions that the devices of a stage compute.

        jax differentiates and batches them as functions of `jax.jit`. In `jax.jit` and `sdy.jit`, they are these.

        Raises:
            ValueError: There is no such stage.
        """
        if not 0 <= index < len(self):
            raise ValueError(f"there is no stage {index}: the mesh has {len(self)} stages, from 0")
        return lambda function: as_stage(index, function)

    def jit(
        self, fun: Function[Any], *, schedule: str = "1f1b", in_shardings: Tree = None, **options: Any
    ) -> "Pipelined":
        """Compile `fun` as a pipeline: each stage for its devices, with the microbatches of `sdy.accumulate` in turn.

        Operations outside of stages, such as the update of parameters, run in the stage that uses them. Results are on
        the devices of their stage, and can be passed to the next call.

        Args:
            fun: The function.
            schedule: `gpipe`, `1f1b`, `interleaved`, `zb-h1`, `zb-h2` or `circular`, as in `sdy.mpmd.predict`. Several
                chunks need `interleaved` or `circular`.
            in_shardings: A tree, or a prefix, of `PartitionSpec` or None, for the mesh of a stage.
            **options: Options of `jax.jit`: static_argnums, static_argnames, donate_argnums, donate_argnames.

        Raises:
            ValueError: There is no such schedule.
        """
        if schedule not in SCHEDULES:
            raise ValueError(f"there is no schedule '{schedule}'; the schedules are {', '.join(SCHEDULES)}")
        return Pipelined(fun, self, schedule, in_shardings, options)


class _Partitioned(NamedTuple):
    text: str
    """The program after the phase PARTITION of Shardy's compiler, with the calls in the order of the schedule."""
    results: Any
    """The tree of the results."""
    keys: Keys
    """The results that are random keys."""


class Pipelined:
    """A function that `Stages.jit` compiles as a pipeline, at the first call with each combination of types.

    Calling it raises:
        DiagnosticError: A stage reads what a later one computes, stages or microbatches are called in a loop, or the
            program cannot be partitioned.
        NotImplementedError: jaxlib has no MPMD compiler.
        ValueError: The schedule does not fit the number of microbatches, or Shardy's compiler rejects the program.
    """

    def __init__(
        self, fun: Function[Any], stages: Stages, schedule: str, in_shardings: Tree, options: Mapping[str, Any]
    ):
        update_wrapper(self, fun, updated=())
        self._fun = fun
        self._stages = stages
        self._schedule = schedule
        self._given = GivenShardings.of(next(iter(stages.meshes.values())), in_shardings, None)
        if self._given.ours:
            raise TypeError("in_shardings of a pipeline must be PartitionSpecs or None, not sdy.Shardings")
        self._options = options
        self._partitioned: dict[Any, _Partitioned] = {}
        self._pipelines: dict[str, Pipeline] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = positional_call(self._fun, args, kwargs, self._options)
        program = self._program(call)
        leaves = [
            leaf if isinstance(leaf, jax.Array) else np.asarray(leaf, type_of(leaf).dtype)
            for leaf in tree_leaves(call.arguments)
        ]
        results = self._pipeline(program)(*with_data(leaves, keys_among(leaves)))
        return tree_unflatten(program.results, with_keys(results, program.keys))

    def pipeline(self, *args: Any, **kwargs: Any) -> Pipeline:
        """Return the program for arguments of these types, arrays or `jax.ShapeDtypeStruct`s.

        It has the list of steps, and the bytes that each stage receives.
        """
        return self._pipeline(self._program(positional_call(self._fun, args, kwargs, self._options)))

    def plan(
        self, *args: Any, hardware: str | Hardware = "h100-hosts", unpipelined: bool = True, **kwargs: Any
    ) -> PipelinePlan:
        """Predict the time, bubble, memory and bytes of a step; nothing is compiled or run.

        Args:
            *args: The arguments of the function, arrays or `jax.ShapeDtypeStruct`s.
            hardware: The name of a preset or of a hardware file.
            unpipelined: Whether to search a layout of the same program on all devices without a pipeline, as `sdy.auto`
                does, and say its cost.
            **kwargs: The keyword arguments of the function.

        Raises:
            DiagnosticError: As when it is called, or the hardware is unknown.
        """
        call = positional_call(self._fun, args, kwargs, self._options)
        mesh = Mesh.of(self._stages.mesh)
        own = plan(self._program(call).text, hardware, mesh=mesh, axis=self._stages.axis)
        if not unpipelined:
            return own
        module = from_jax(jax.jit(call.function, **call.options), *tree_map(type_of, call.arguments))
        return replace(own, unpipelined=auto(module, mesh=mesh, hardware=own.hardware).cost)

    def _pipeline(self, program: _Partitioned) -> Pipeline:
        if program.text not in self._pipelines:
            self._pipelines[program.text] = run(program.text, self._stages.meshes)
        return self._pipelines[program.text]

    def _program(self, call: PositionalCall) -> _Partitioned:
        leaves, tree = tree_flatten(call.arguments)
        key = tree, tuple([(leaf.shape, leaf.dtype) for leaf in map(type_of, leaves)]), call.static
        if key not in self._partitioned:
            self._partitioned[key] = self._partition(call)
        return self._partitioned[key]

    def _partition(self, call: PositionalCall) -> _Partitioned:
        options = {**call.options, **self._given.for_jax()}
        donated = _leaf_numbers(call.arguments, options.pop("donate_argnums", ()))
        jitted: Any = jax.jit(with_pipelined_microbatches(call.function), keep_unused=True, **options)
        types = tree_map(type_of, call.arguments)
        module = from_jax(jitted, *types)
        microbatches = name_computations(module)
        stages = self._stages
        order = schedule_of(self._schedule, len(stages.meshes), microbatches, stages.chunks)
        text = partition(
            module,
            {name: dict(mesh.shape) for name, mesh in stages.meshes.items()},
            {stage_name(index): (stage_name(index % len(stages.meshes)), index) for index in range(len(stages))},
            donated=donated,
            splits_backwards=order.splits_backwards,
        )
        partitioned = parse(text, "<mpmd>")
        schedule_calls(partitioned, order)
        results, tree = tree_flatten(jax.eval_shape(jitted, *types))
        return _Partitioned(format(partitioned), tree, keys_among(results))


def _leaf_numbers(arguments: tuple[Any, ...], numbers: Any) -> list[int]:
    """Return the numbers of the leaves of some arguments."""
    selected = {numbers} if isinstance(numbers, int) else {*numbers}
    owners = [index for index, argument in enumerate(arguments) for _ in tree_leaves(argument)]
    return [leaf for leaf, index in enumerate(owners) if index in selected]
