"""Automatic sharding in `sdy.jit`: `in_shardings=sdy.AUTO` or `sdy.Auto(...)`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import update_wrapper
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec
from jax.tree_util import tree_flatten, tree_leaves, tree_map, tree_structure, tree_unflatten
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint

from sdy.diagnostics import warn
from sdy.dialect.meshes import named_meshes
from sdy.dialect.ops import MeshOp
from sdy.dialect.shardings import func_arg_shardings, func_result_shardings, set_func_arg_sharding
from sdy.ir.editing import insert
from sdy.ir.shapes import rank
from sdy.mesh import Mesh
from sdy.passes.auto.auto import auto
from sdy.passes.auto.plan import Plan
from sdy.passes.auto.results_policy import policies_of_results
from sdy.passes.auto.truth import LayoutOfModule
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.symbols import Symbols
from sdy.passes.jax.api.accumulate import AutomaticMicrobatches
from sdy.passes.jax.api.given_shardings import GivenShardings, Tree, leaf_for_each
from sdy.passes.jax.api.one_process import computed_once
from sdy.passes.jax.api.positional_call import PositionalCall, positional_call
from sdy.passes.jax.bindings.from_jax import from_jax
from sdy.passes.jax.device_hardware import PRESETS
from sdy.passes.jax.device_mesh import AnyMesh
from sdy.passes.jax.stages import Lowerable, Lowered
from sdy.passes.policy import Policy, apply_policy, chain_policies
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.sharding import TensorSharding
from sdy.type_helpers import Function

_ASSUMED = "h100"
"""The preset for devices that have none."""


@dataclass(frozen=True)
class Auto:
    """Placeholder for a sharding that the compiler chooses, with the options of `sdy.auto`.

    Attributes:
        hardware: The hardware to optimize for; by default the preset of the mesh's device kind, or that of the H100,
            with a warning, if no preset describes this kind.
        memory: The memory limit of a device; by default that of `sdy.jit`, or else the memory of that hardware.
        time_limit: The time limit of the search, in seconds; by default none.
    """

    hardware: Hardware | str | None = None
    memory: str | float | None = None
    time_limit: float | None = None

    def hardware_for(self, mesh: AnyMesh) -> Hardware | str:
        """Return `hardware`, or by default the preset for the devices of `mesh`, with a warning if they have none."""
        if self.hardware is not None:
            return self.hardware
        kind = _device_kind(mesh)
        if kind not in PRESETS:
            devices = f"devices of kind '{kind}'" if kind else "the devices of an abstract mesh"
            problem = f"no hardware preset describes {devices}: the plan is for those of '{_ASSUMED}'"
            warn(None, f"{problem}; name a preset or a file, as in sdy.Auto(hardware='mine.toml') (sdy-auto --measure)")
        return PRESETS.get(kind, _ASSUMED)


AUTO = Auto()
"""Automatic sharding for the hardware of the mesh, with the default limits."""


class _Made(NamedTuple):
    """The plan for one combination of argument types, the tree of argument shardings, and the `sdy.jit` function."""

    plan: Plan
    arguments: Tree
    compiled: Any


class _Attempt(NamedTuple):
    """The plan of a function with some number of microbatches, and the options of `sdy.jit` that apply it."""

    plan: Plan
    function: Function[Any]
    options: Mapping[str, Any]


def _rank(plan: Plan) -> tuple[int, float]:
    """Return the order of plans: by the memory beyond the limit, then by the step time."""
    return max(plan.cost.memory - plan.memory, 0), plan.cost.seconds


class Planned(Lowerable):
    """A function whose argument shardings `sdy.auto` chooses at the first call with each combination of types.

    It compiles `sdy.jit` of the function with the chosen shardings of arguments and of operation results; `plan`
    returns the choice. Each updated state has the sharding of its argument, so that results can be passed to the next
    call. Within an outer jax trace, propagation chooses the shardings of its operation results.
    """

    def __init__(
        self,
        fun: Function[Any],
        mesh: AnyMesh | Mesh | None,
        trees: tuple[Tree, Tree],
        compiled: Callable[..., Any],
        policy: Policy | None,
        memory: str | float | None,
        options: Mapping[str, Any],
    ) -> None:
        if mesh is None:
            raise ValueError("automatic sharding requires a mesh: mesh=...")
        choose = choice_in(trees[0])
        assert choose is not None
        update_wrapper(self, fun, updated=())
        self._fun = fun
        of_jax = GivenShardings.of(mesh, None, None).mesh
        assert of_jax is not None
        self._mesh = _without_explicit_axes(of_jax)
        self._arguments, self._results = trees
        self._choose = choose if choose.memory is not None else replace(choose, memory=memory)
        self._compiled = compiled  # called with the function, the trees of shardings, a policy and the options
        self._options = options
        self._policies = [] if policy is None else [policy]
        self._made: dict[Any, _Made] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = self._call(args, kwargs)
        return self._planned(call).compiled(*call.arguments)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        call = self._call(args, kwargs)
        return self._planned(call).compiled.lower(*call.arguments)

    def plan(self, *args: Any, **kwargs: Any) -> Plan:
        """Return the plan for arguments of these types, arrays or `jax.ShapeDtypeStruct`s."""
        return self._planned(self._call(args, kwargs)).plan

    def shardings(self, *args: Any, **kwargs: Any) -> Tree:
        """Return the tuple of trees of given and chosen shardings of the arguments that are not static."""
        return self._planned(self._call(args, kwargs)).arguments

    def _call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> PositionalCall:
        return positional_call(self._fun, args, kwargs, self._options)

    def _planned(self, call: PositionalCall) -> _Made:
        leaves, tree = tree_flatten(call.arguments)
        key = tree, tuple([(leaf.shape, leaf.dtype) for leaf in map(type_of, leaves)]), call.static
        if key not in self._made:
            self._made[key] = self._make_plan(call)
        return self._made[key]

    def _make_plan(self, call: PositionalCall) -> _Made:
        """Plan the function with each number of microbatches that may be the fastest, and compile the best plan.

        Once a plan fits, more microbatches are tried while that is faster.
        """
        automatic = AutomaticMicrobatches()
        best = self._attempt(call, automatic)
        costs = {automatic.number: best.plan.cost}
        for number in automatic.more():
            attempt = self._attempt(call, AutomaticMicrobatches(number))
            costs[number] = attempt.plan.cost
            if best.plan.fits and _rank(attempt.plan) >= _rank(best.plan):
                break
            best = min((best, attempt), key=lambda each: _rank(each.plan))
        plan = replace(best.plan, microbatches=costs if len(costs) > 1 else {})
        memory = {} if plan.recomputation is None else {"memory": plan.memory}
        compiled = self._compiled(best.function, mesh=self._mesh, **best.options, **memory, **call.options)
        return _Made(plan, best.options["in_shardings"], compiled)

    def _attempt(self, call: PositionalCall, microbatches: AutomaticMicrobatches) -> _Attempt:
        """Return the plan for a number of microbatches."""
        fun, args, options, _ = call
        function = microbatches.in_(fun)
        with_all_arguments: dict[str, Any] = {**options, "keep_unused": True}
        jitted = jax.jit(function, **with_all_arguments)
        types = tree_map(type_of, args)
        module = from_jax(jitted, *types)
        self._give(module, args)
        for policy in self._policies:
            apply_policy(module, policy)
        plan = self._choose_shardings(module)
        main = main_function(module)
        arguments = tree_unflatten(tree_structure(args), func_arg_shardings(main))
        results = self._results
        if results is None:
            results = tree_unflatten(tree_structure(jax.eval_shape(jitted, *types)), func_result_shardings(main))
        policy = chain_policies([*self._policies, *policies_of_results(module)])
        return _Attempt(plan, function, {"in_shardings": arguments, "out_shardings": results, "policy": policy})

    def _choose_shardings(self, module: ModuleOp) -> Plan:
        """Write the chosen shardings into `module`, the same in all processes, and return their plan."""
        choose, mesh = self._choose, self._mesh

        def plan() -> tuple[Plan, LayoutOfModule]:
            hardware = choose.hardware_for(mesh)
            chosen = auto(module, hardware=hardware, memory=choose.memory, time_limit=choose.time_limit)
            return chosen, LayoutOfModule.of(module)

        chosen, layout = plan() if isinstance(mesh, AbstractMesh) else computed_once(mesh, plan)
        layout.write(module)
        return chosen

    def _give(self, module: ModuleOp, args: tuple[Any, ...]) -> None:
        """Declare the mesh in `module` and set the given argument shardings."""
        mesh_name = _declared(Mesh.of(self._mesh), module)
        main = main_function(module)
        for index, (leaf, argument) in enumerate(zip(leaf_for_each(self._arguments, args), main.args, strict=True)):
            set_func_arg_sharding(main, index, _given(leaf, rank(argument.type), mesh_name))


def _device_kind(mesh: AnyMesh) -> str:
    """Return the `device_kind` of the devices of `mesh`; empty for an abstract mesh without devices."""
    if isinstance(mesh, jax.sharding.Mesh):
        return mesh.devices.flat[0].device_kind
    device = getattr(mesh, "abstract_device", None)
    return device.device_kind if device is not None else ""


def _without_explicit_axes(mesh: AnyMesh) -> AnyMesh:
    """Return `mesh` with Auto axes: with Explicit ones, jax rejects operations whose result sharding is ambiguous."""
    types = (AxisType.Auto,) * len(mesh.axis_names)
    if isinstance(mesh, AbstractMesh):
        return AbstractMesh(mesh.axis_sizes, mesh.axis_names, axis_types=types)
    return jax.sharding.Mesh(mesh.devices, mesh.axis_names, axis_types=types)


def type_of(leaf: Any) -> jax.ShapeDtypeStruct:
    """Return the shape and the element type of an array, or of a number, in jax."""
    return jax.ShapeDtypeStruct(np.shape(leaf), jax.dtypes.result_type(leaf))


def _declared(mesh: Mesh, module: ModuleOp) -> str:
    """Return the name of `mesh` in `module`, which may declare it already; insert it if missing."""
    for name, present in named_meshes(module).items():
        if present == mesh:
            return name
    operation = MeshOp("mesh", mesh)
    symbols = Symbols(module)
    insert(operation, InsertPoint.at_start(module.body.block))
    return symbols.insert(operation)


def _given(leaf: Any, num_dims: int, mesh_name: str) -> TensorSharding | None:
    """Convert the given sharding of an array of rank `num_dims`; None if the compiler chooses it."""
    match leaf:
        case NamedSharding():
            return _given(leaf.spec, num_dims, mesh_name)
        case PartitionSpec():
            return TensorSharding.of(*leaf, *[None] * (num_dims - len(leaf)), mesh=mesh_name)
        case TensorSharding():
            return replace(leaf, mesh=mesh_name)
        case _:
            return None


def choice_in(tree: Tree) -> Auto | None:
    """Return the first `Auto` in a tree of shardings, or None."""
    return next((leaf for leaf in tree_leaves(tree) if isinstance(leaf, Auto)), None)
