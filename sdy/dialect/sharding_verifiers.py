"""Verification of shardings in context: the type of the value, the mesh, and manual computations around it."""

from collections.abc import Sequence

from xdsl.ir import Attribute, Operation

from sdy.diagnostics import DiagnosticError, op_error
from sdy.dialect.meshes import find_mesh, manual_axes_around
from sdy.dialect.sharding_checks import sharding_problem
from sdy.sharding import TensorSharding


def verify_sharding(op: Operation, sharding: TensorSharding, type_: Attribute | None, prefix: str = "") -> None:
    """Verify the sharding of a value of this type; errors begin with `prefix`."""
    if problem := sharding_problem(sharding, type_, find_mesh(sharding, op)):
        raise op_error(op, prefix + problem)
    bound = manual_axes_around(op)
    for axis in sharding.axes() if bound else ():
        if axis.name in bound:
            raise bound_axis_error(op, axis.name, bound[axis.name], prefix)


def bound_axis_error(op: Operation, axis: str, parent: Operation, prefix: str = "") -> DiagnosticError:
    """Return the error for a use of `axis` in `op`, although it is already manual in `parent`."""
    return op_error(
        op,
        f'{prefix}operates on axis "{axis}" which is already bound by a parent sdy.manual_computation op',
        (parent, "parent bounding this axis as manual"),
    )


def verify_shardings(
    op: Operation, shardings: Sequence[TensorSharding], types: Sequence[Attribute], prefix: str
) -> None:
    """Verify the shardings of several values; errors begin with `prefix` and the index of the value."""
    if not types and len(shardings) == 1:
        mesh = find_mesh(shardings[0], op)
        if shardings[0].is_fully_replicated or (mesh is not None and mesh.is_maximal):
            verify_sharding(op, shardings[0], None, f"{prefix}0 - ")
            return
    if len(shardings) != len(types):
        raise op_error(
            op,
            f"{prefix}shardings don't match number of values: {len(shardings)} shardings vs {len(types)} values",
        )
    for index, (sharding, type_) in enumerate(zip(shardings, types, strict=True)):
        verify_sharding(op, sharding, type_, f"{prefix}- " if len(types) == 1 else f"{prefix}{index} - ")
