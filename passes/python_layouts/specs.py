"""`sdy.specs`: the shardings of a program as trees of `PartitionSpec`s, and as a Python file that imports JAX alone."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jax.sharding import PartitionSpec
from jax.tree_util import tree_structure, tree_unflatten
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from sdy.axes import AxisRef
from sdy.diagnostics import error, location_of
from sdy.dialect.meshes import mesh_of, named_meshes
from sdy.dialect.shardings import func_arg_shardings, func_result_shardings, get_sharding
from sdy.ir.companions import companion
from sdy.passes.account.partitioned_program import Program, partitioned_program, program_of
from sdy.passes.auto.origins import choosable_results
from sdy.passes.common.call_graph import main_function
from sdy.passes.jax.bindings.call_trees import CallTrees, call_trees, trace_of
from sdy.passes.layouts import PartitionedLayout, is_propagated
from sdy.passes.policy import apply_policy
from sdy.passes.python.device_axes import DeviceAxes, interval
from sdy.passes.python_layouts.equation_rules import rule_of
from sdy.passes.python_layouts.equations import Equation, number_equations, shardings_of_equations
from sdy.passes.python_layouts.for_checkpoint import checkpoint_file
from sdy.passes.python_layouts.for_equinox import equinox_file
from sdy.passes.python_layouts.for_flax import FLAX, MAXTEXT
from sdy.passes.python_layouts.for_jax import jax_file
from sdy.passes.python_layouts.for_torch import torch_file
from sdy.passes.python_layouts.layout_specs import ConstrainedResult, LayoutSpecs
from sdy.passes.python_layouts.paths import Keys, argument_keys, joined, result_keys
from sdy.passes.spmd.remat.recomputed import Recomputed
from sdy.sharding import TensorSharding

FORMATS: Mapping[str, Callable[[LayoutSpecs], str]] = {
    "jax": jax_file,
    "flax": FLAX.file,
    "maxtext": MAXTEXT.file,
    "equinox": equinox_file,
    "torch": torch_file,
}
"""The function that prints each format."""


@dataclass(frozen=True, repr=False)
class Specs(LayoutSpecs):
    """The shardings of a program, and the Python file that applies them, which is their `str`."""

    def __str__(self) -> str:
        return self.to_python()

    def __repr__(self) -> str:
        return f"<sdy.specs of {self.name}>"

    def to_python(self, format: str = "jax") -> str:  # noqa: A002
        """Return a Python file that imports JAX alone: the mesh, rules by path, and a function that applies them.

        It says how the bytes that a device receives with it under `jax.jit` compare with those under sdy.

        Args:
            format: "jax"; or "flax" or "maxtext" for logical axis rules, "equinox" for a filter tree, "torch" for names
                of parameters, as `sdy.torch` and DTensor take them.

        Raises:
            ValueError: The format is another one.
        """
        if format not in FORMATS:
            raise ValueError(f"format must be one of {', '.join(map(repr, FORMATS))}, not {format!r}")
        return FORMATS[format](self)

    def checkpoint_policy(self) -> str:
        """Return a Python file that recomputes and offloads what this program does, by a policy of `jax.checkpoint`.

        It imports JAX alone, and has a function for the one that `jax.grad` differentiates. The policy saves the
        results of a source line or recomputes all of them, so that it may need other memory than this program.

        Raises:
            ValueError: The program recomputes nothing: it fits, or has no limit of memory.
            RuntimeError: Another process made the specs.
        """
        if self._layout is None or self._module is None:
            raise RuntimeError("another process made the specs: only that process has the program")
        recomputed = companion(self._layout.local, Recomputed)
        if not recomputed.values and not recomputed.offloaded:
            raise ValueError(f"'{self.name}' recomputes nothing: plan or compile it with a smaller limit of memory")
        return checkpoint_file(self.name, recomputed, trace_of(self._module).jaxpr)


def specs(program: Program, *args: Any, **kwargs: Any) -> Specs:
    """Return the shardings of a program as `PartitionSpec`s.

        print(sdy.specs(step.lower(params, batch)).to_python())

    A program that has not been propagated is propagated, on a copy.

    Args:
        program: A function (of `sdy.jit` or any other), the result of `step.lower(...)`, a module, or a file of one.
        *args: The positional arguments of a function: arrays or `jax.ShapeDtypeStruct`s.
        **kwargs: Its keyword arguments.

    Raises:
        TypeError: `args` or `kwargs` are given for a program that is not a function.
        DiagnosticError: The program cannot be propagated, or has no mesh or several.
    """
    stage = program_of(program, *args, **kwargs)
    if isinstance(stage, ModuleOp):
        jaxpr = trace_of(stage).jaxpr
        numbered, equations = (stage, ()) if jaxpr is None else number_equations(stage, jaxpr)
        return _specs_of(stage, partitioned_program(numbered), call_trees(stage), "program", equations)
    module, policy, _ = stage.before_propagation()
    if policy is not None:
        apply_policy(module, policy)
    return _specs_of(module, partitioned_program(stage), stage.call_trees, stage.name)


def _specs_of(
    module: ModuleOp, layout: PartitionedLayout, trees: CallTrees, name: str, equations: Sequence[Equation] = ()
) -> Specs:
    main = main_function(layout.module)
    meshes = [mesh for mesh in named_meshes(layout.module).values() if mesh.axes]
    if len(meshes) != 1:
        raise error(layout.module, f"the program has {len(meshes)} meshes, but a file of its layout has one")
    (mesh,) = meshes
    shardings = [*func_arg_shardings(main), *func_result_shardings(main)]
    results: Sequence[SSAValue] = () if is_propagated(module) else choosable_results(module)
    chosen = [(result, sharding) for result in results if (sharding := get_sharding(result))]
    known = shardings_of_equations(layout.module)
    used = [
        *filter(None, shardings),
        *(sharding for _, sharding in chosen),
        *(each for shardings in known.values() for each in shardings if each),
    ]
    cuts = [place for each in used for axis in each.axes() for place in interval(axis, mesh_of(each, main))]
    axes = DeviceAxes.of(mesh, cuts)
    sizes = dict(zip(axes.names, axes.sizes, strict=True))

    def spec(sharding: TensorSharding | None) -> PartitionSpec:
        entries = [_entry(dim, axes, sharding, main) for dim in sharding.dim_axes] if sharding else []
        while entries and entries[-1] is None:
            entries.pop()
        return PartitionSpec(*entries)

    names_of_arguments, positional = argument_keys(main, trees)
    of_arguments = [spec(each) for each in shardings[: len(main.args)]]
    of_leaves = (
        of_arguments
        if trees.arguments is None
        else [PartitionSpec() if number is None else of_arguments[number] for number in trees.numbers]
    )
    of_results = [spec(each) for each in shardings[len(main.args) :]]
    names_of_results = result_keys(main, trees)
    return Specs(
        name,
        axes,
        _as_tree(trees.arguments, names_of_arguments, of_leaves),
        _as_tree(trees.results, names_of_results, of_results),
        tuple(ConstrainedResult(_name(result), spec(sharding)) for result, sharding in chosen),
        tuple(positional),
        tuple(zip(names_of_arguments, of_leaves, strict=True)),
        tuple(zip(names_of_results, of_results, strict=True)),
        [
            (equation, rule_of(equation, [*map(spec, known.get(number, ()))], sizes))
            for number, equation in enumerate(equations)
        ],
        module,
        layout,
    )


def _name(result: Any) -> str:
    place = location_of(result)
    return f"{result.op.name} at {place}" if place else result.op.name


def _entry(dim: Sequence[AxisRef], axes: DeviceAxes, sharding: TensorSharding, where: Any) -> Any:
    names = axes.of_sharding(dim, mesh_of(sharding, where))
    return None if not names else names[0] if len(names) == 1 else tuple(names)


def _as_tree(tree: Any, keys: Sequence[Keys], specs: Sequence[PartitionSpec]) -> Any:
    if tree is None:
        return {joined(path): spec for path, spec in zip(keys, specs, strict=True)}
    return tree_unflatten(tree_structure(tree), specs)
