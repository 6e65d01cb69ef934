"""Donated arguments of functions, whose buffers results reuse."""

from collections import defaultdict
from collections.abc import Mapping

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, DictionaryAttr, IntegerAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from sdy.passes.common.properties import num_bytes

_DONOR, _ALIASED = "jax.buffer_donor", "tf.aliasing_output"
_DONATED = {_DONOR, _ALIASED}
"""Attributes of a donated argument: its buffer may be reused by any result, or by a specified one."""


def is_donated(function: FuncOp, index: int) -> bool:
    """Return whether argument `index` of `function` is donated."""
    return not _DONATED.isdisjoint(_attributes(function, index))


def aliases(function: FuncOp) -> Mapping[int, int]:
    """Return the indices of the results that reuse the buffers of donated arguments, by the argument's index.

    A specified result has the type of its argument. Otherwise, XLA takes the first one that is left of as many bytes
    (`optimize_input_output_buffer_alias.cc`).
    """
    inputs, results = function.function_type.inputs.data, function.function_type.outputs.data
    donated = [index for index in range(len(inputs)) if is_donated(function, index)]
    specified = {index: _specified_result(function, index) for index in donated}
    found = {
        index: result
        for index, result in specified.items()
        if result is not None and results[result : result + 1] == (inputs[index],)
    }
    free: dict[int, list[int]] = defaultdict(list)
    for number in reversed(range(len(results))):
        if number not in found.values():
            free[num_bytes(results[number])].append(number)
    for index in donated:
        size = num_bytes(inputs[index])
        if index not in found and size and free[size]:
            found[index] = free[size].pop()
    return found


def check_donations(function: FuncOp) -> None:
    """Turn the alias of a donated argument into a plain donation if its result has another type by now."""
    if function.arg_attrs is None:
        return
    entries = [*function.arg_attrs]
    results = function.function_type.outputs.data
    for index, type_ in enumerate(function.function_type.inputs):
        result = _specified_result(function, index)
        if result is not None and results[result : result + 1] != (type_,):
            others = {name: value for name, value in entries[index].data.items() if name != _ALIASED}
            entries[index] = DictionaryAttr({**others, _DONOR: BoolAttr.from_bool(True)})
    function.arg_attrs = ArrayAttr(entries)


def drop_unused_donations(function: FuncOp) -> None:
    """Remove the donations of arguments whose buffers no result can reuse; XLA warns about them."""
    reused = aliases(function)
    entries = [
        entry if index in reused else DictionaryAttr({n: a for n, a in entry.data.items() if n not in _DONATED})
        for index, entry in enumerate(function.arg_attrs or ())
    ]
    function.arg_attrs = ArrayAttr(entries) if entries else None


def _specified_result(function: FuncOp, index: int) -> int | None:
    """Return the index of the result that argument `index` has to alias, or None."""
    alias = _attributes(function, index).get(_ALIASED)
    return alias.value.data if isinstance(alias, IntegerAttr) else None


def _attributes(function: FuncOp, index: int) -> Mapping[str, Attribute]:
    return {} if function.arg_attrs is None else function.arg_attrs.data[index].data
