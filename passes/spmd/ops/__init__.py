"""Registry of partitioning rules: how each class of operations is exchanged, padded and lowered to one device.

Every module of this package defines a table `PARTITIONING` for one family of operations, and is discovered by its
location. `partitioning_of` looks an operation up; `register_partitioning` adds an operation of another dialect. An
operation in no table is partitioned by its sharding rule alone.
"""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from xdsl.ir import Operation

from sdy.dialect.interfaces import Elementwise
from sdy.ir.fast_access import has_trait
from sdy.passes.spmd.emit.op_conversion import carries
from sdy.passes.spmd.emit.operation_partitioning import OperationPartitioning, PartitioningTable

_BY_RULE = OperationPartitioning()
_ELEMENTWISE = OperationPartitioning(pad=carries)


@cache
def _tables() -> dict[type[Operation], OperationPartitioning]:
    tables = dict[type[Operation], OperationPartitioning]()
    for submodule in iter_modules(__path__):
        family: PartitioningTable = import_module(f"{__name__}.{submodule.name}").PARTITIONING
        for op_class, partitioning in family.items():
            _add(tables, op_class, partitioning)
    return tables


def _add(
    tables: dict[type[Operation], OperationPartitioning],
    op_class: type[Operation],
    partitioning: OperationPartitioning,
) -> None:
    if op_class in tables:
        raise ValueError(f"'{op_class.name}' operations already have a registered partitioning")
    tables[op_class] = partitioning


def partitioning_of(op: Operation) -> OperationPartitioning:
    """Return the partitioning of the class of `op`."""
    return _tables().get(type(op)) or (_ELEMENTWISE if has_trait(op, Elementwise) else _BY_RULE)


def register_partitioning(op_class: type[Operation], partitioning: OperationPartitioning) -> None:
    """Register the partitioning of a class of operations.

    Raises:
        ValueError: If the class has a registered partitioning.
    """
    _add(_tables(), op_class, partitioning)
