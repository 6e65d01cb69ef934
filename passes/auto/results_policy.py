"""Chosen shardings of operation results, as a policy that applies them when the same function is traced again."""

from collections.abc import Sequence
from dataclasses import replace
from warnings import warn

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, OpResult
from xdsl.transforms.dead_code_elimination import would_be_trivially_dead

from sdy.diagnostics import LostShardingWarning
from sdy.dialect.meshes import enclosing_module, main_mesh, named_meshes
from sdy.dialect.shardings import get_sharding, set_sharding
from sdy.ir.companions import clone
from sdy.ir.walking import operations
from sdy.mesh import Mesh
from sdy.passes.auto.origins import choosable_results, number_of, number_operations
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.inline import inline_calls
from sdy.passes.policy import Policy


def policies_of_results(module: ModuleOp) -> Sequence[Policy]:
    """Return a policy that applies the shardings of operation results in `module` to other traces of the program.

    The policy recognizes the program by its sequence of live choosable results, with calls inlined: one trace calls the
    body of a loop, and another one has it in place. If the function is traced as part of a larger program, the policy
    applies nothing and warns. Without sharded results, there is no policy.
    """
    planned = _live_results(module)
    shardings = {
        number: sharding
        for number, result in enumerate(planned)
        if (sharding := get_sharding(result)) is not None and sharding.dims  # not on a single device
    }
    if not shardings:
        return ()
    kinds = _kinds(planned)
    mesh = main_mesh(module)

    def apply(operations: Sequence[Operation]) -> None:
        target = enclosing_module(operations[0]) if operations else None
        results = _live_results(target) if target is not None else ()
        if target is None or _kinds(results) != kinds:
            lost = "the shardings chosen for operation results are dropped: the function is part of a larger program"
            warn(lost, LostShardingWarning, stacklevel=2)
            return
        name = _name_of(mesh, target)
        for number, sharding in shardings.items():
            set_sharding(results[number], replace(sharding, mesh=name))

    return (apply,)


def _kinds(results: Sequence[OpResult]) -> Sequence[tuple[str, Attribute]]:
    return [(result.op.name, result.type) for result in results]


def _live_results(module: ModuleOp) -> Sequence[OpResult]:
    """Return the choosable results that affect the program's results, in the order in which they are computed.

    Traces differ in whether they have others. A result of a function is listed once per call.
    """
    inlined = clone(module)
    number_operations(inlined)
    inline_calls(inlined)
    main = main_function(inlined)  # inlined functions are kept
    dead = set[Operation]()
    for op in reversed(operations(main)):
        if would_be_trivially_dead(op) and all(use.operation in dead for result in op.results for use in result.uses):
            dead.add(op)
    results = choosable_results(module)
    numbers = [number_of(result.op) for result in choosable_results(main) if result.op not in dead]
    return [results[number] for number in numbers if number is not None]


def _name_of(mesh: Mesh, module: ModuleOp) -> str | Mesh:
    """Return the name of a mesh with the same axes in `module`, or else the mesh itself."""
    return next((name for name, each in named_meshes(module).items() if each.axes == mesh.axes), mesh)
