"""How operations are partitioned: a file for each family says what is exchanged, padded, and lowered to one device.

The files beside this one each have a table `PARTITIONING`, and are found by being here. `partitioning_of` asks all of
them; `register_partitioning` adds an operation of another dialect. An operation that is in no table is computed in
parts as far as its sharding rule says that it can be.
"""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from xdsl.ir import Operation

from sdy.dialect.interfaces import Elementwise
from sdy.ir.traits import has_trait
from sdy.passes.spmd.operation_partitioning import OperationPartitioning, PartitioningTable
from sdy.passes.spmd.padded_site import carries

_BY_RULE = OperationPartitioning()
_ELEMENTWISE = OperationPartitioning(pad=carries)


@cache
def _tables() -> dict[type[Operation], OperationPartitioning]:
    tables = dict[type[Operation], OperationPartitioning]()
    for found in iter_modules(__path__):
        family: PartitioningTable = import_module(f"{__name__}.{found.name}").PARTITIONING
        for op_class, partitioning in family.items():
            _enter(tables, op_class, partitioning)
    return tables


def _enter(
    tables: dict[type[Operation], OperationPartitioning],
    op_class: type[Operation],
    partitioning: OperationPartitioning,
) -> None:
    if op_class in tables:
        raise ValueError(f"how operations called '{op_class.name}' are partitioned is said already")
    tables[op_class] = partitioning


def partitioning_of(op: Operation) -> OperationPartitioning:
    """How operations of the class of `op` are partitioned."""
    return _tables().get(type(op)) or (_ELEMENTWISE if has_trait(op, Elementwise) else _BY_RULE)


def register_partitioning(op_class: type[Operation], partitioning: OperationPartitioning) -> None:
    """Say how operations of a class are partitioned. Raises ValueError if that is said already."""
    _enter(_tables(), op_class, partitioning)
