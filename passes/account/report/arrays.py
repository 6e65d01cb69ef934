"""The report's table of arrays: arguments, results and the largest intermediate tensors."""

import heapq
from collections.abc import Iterable, Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, OpResult

from sdy.dialect.shardings import func_result_sharding, get_sharding
from sdy.passes.account.report.listing import Listing
from sdy.passes.account.report.numbering import NONE, Json, Numbers
from sdy.passes.common.argument_names import argument_names
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.properties import value_bytes
from sdy.passes.spmd.costs.fusion import FusedValues
from sdy.sharding import TensorSharding
from sdy.stablehlo.constants import ConstantOp

_MOST_INTERMEDIATES = 200
"""Number of intermediate tensors listed."""


def arrays_as_json(module: ModuleOp, largest: Iterable[OpResult], listing: Listing, numbers: Numbers) -> list[Json]:
    """Serialize the arguments, the results and the `largest` intermediate tensors."""
    return [*_arguments(module, listing, numbers), *_results(module, numbers), *_largest(largest, listing, numbers)]


def largest_intermediates(listing: Listing) -> list[OpResult]:
    """Return the largest intermediate tensors that are not fused away, including those in loop bodies."""
    fused = FusedValues()
    results = [
        result
        for op in listing.rows
        for result in op.results
        if not isinstance(op, ConstantOp) and value_bytes(result) and result not in fused
    ]
    return heapq.nlargest(_MOST_INTERMEDIATES, results, key=value_bytes)


def _arguments(module: ModuleOp, listing: Listing, numbers: Numbers) -> Iterator[Json]:
    main = main_function(module)
    for name, argument in zip(argument_names(main), main.args, strict=True):
        yield _array("argument", name, argument.type, get_sharding(argument), listing.value(argument), numbers)


def _results(module: ModuleOp, numbers: Numbers) -> Iterator[Json]:
    main = main_function(module)
    for index, type_ in enumerate(main.function_type.outputs):
        yield _array("result", f"result {index}", type_, func_result_sharding(main, index), NONE, numbers)


def _largest(largest: Iterable[OpResult], listing: Listing, numbers: Numbers) -> Iterator[Json]:
    for each in largest:
        yield _array("intermediate", each.op.name, each.type, get_sharding(each), listing.value(each), numbers)


def _array(
    kind: str, name: str, type_: Attribute, sharding: TensorSharding | None, value: int, numbers: Numbers
) -> Json:
    """Serialize an array; `value` is its number in the listing, or NONE for a result."""
    return {"kind": kind, "name": numbers.string(name), "tensor": numbers.tensor(type_, sharding), "value": value}
