"""The shardings that were chosen for results of operations, as a policy for the same program traced anew."""

from collections.abc import Sequence
from dataclasses import replace
from warnings import warn

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation

from sdy.dialect.meshes import enclosing_module, named_meshes
from sdy.dialect.shardings import get_sharding, set_sharding
from sdy.mesh import Mesh
from sdy.passes.auto.origins import choosable_results
from sdy.passes.policy.policy import Policy
from sdy.warning_categories import LostShardingWarning


def policies_of_results(module: ModuleOp) -> Sequence[Policy]:
    """The policy that gives results of operations the shardings that they have in `module`; none where none has one.

    Programs are the same that have the same operations of which results can be chosen. In another, one that the program
    of `module` is a part of, nothing is given, which a warning says.
    """
    chosen = {
        number: sharding
        for number, result in enumerate(choosable_results(module))
        if (sharding := get_sharding(result)) is not None
    }
    if not chosen:
        return ()
    kinds = _kinds(module)
    (mesh,) = named_meshes(module).values()

    def give(operations: Sequence[Operation]) -> None:
        target = enclosing_module(operations[0]) if operations else None
        if target is None or _kinds(target) != kinds:
            lost = "what was chosen for results of operations is left out, as the function is part of a larger program"
            warn(lost, LostShardingWarning, stacklevel=2)
            return
        name = _name_of(mesh, target)
        results = choosable_results(target)
        for number, sharding in chosen.items():
            set_sharding(results[number], replace(sharding, mesh=name))

    return (give,)


def _kinds(module: ModuleOp) -> Sequence[tuple[str, Attribute]]:
    return [(result.op.name, result.type) for result in choosable_results(module)]


def _name_of(mesh: Mesh, module: ModuleOp) -> str | Mesh:
    """What `module` calls a mesh with these axes; the mesh itself where it has none."""
    return next((name for name, each in named_meshes(module).items() if each.axes == mesh.axes), mesh)
