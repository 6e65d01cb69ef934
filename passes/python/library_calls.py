"""Random bits, linear algebra, transforms and custom calls."""

import re
from typing import cast

import numpy as np
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
)
from xdsl.ir import Attribute, Operation, SSAValue

from sdy import stablehlo
from sdy.array_types import element_dtype
from sdy.ir.shapes import shape
from sdy.passes.python.device_axes import string
from sdy.passes.python.expressions import Expression, Item, call, list_of, sizes, tuple_of
from sdy.passes.python.literals import dtype_of, dtype_text, integers
from sdy.passes.python.scope import Printer, Scope
from sdy.stablehlo.attributes.enums import RngAlgorithm, Transpose
from sdy.stablehlo.chlo.creation import TopKOp
from sdy.stablehlo.custom_call import TYPED_FFI, CustomCallOp

_ALGORITHMS = {
    RngAlgorithm.DEFAULT: "RNG_DEFAULT",
    RngAlgorithm.THREE_FRY: "RNG_THREE_FRY",
    RngAlgorithm.PHILOX: "RNG_PHILOX",
}

_LAPACK_TYPES = {"s": "jnp.float32", "d": "jnp.float64", "c": "jnp.complex64", "z": "jnp.complex128"}

_IDENTITIES = frozenset({"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement"})
"""The custom calls that return their operand."""


def _random_bits(op: stablehlo.RngBitGeneratorOp, scope: Scope) -> Expression:
    algorithm = f"lax.RandomAlgorithm.{_ALGORITHMS[op.rng_algorithm.data]}"
    size, dtype = sizes(shape(op.output.type)), dtype_text(dtype_of(op.output))
    return call("lax.rng_bit_generator", scope.of(op.initial_state), size, dtype=dtype, algorithm=algorithm)


def _random(op: stablehlo.RngOp, scope: Scope) -> Expression:
    if op.rng_distribution.data.value != "UNIFORM":
        raise NotImplementedError("JAX has no stateful normal distribution")
    return call("lax.rng_uniform", scope.of(op.a), scope.of(op.b), sizes(shape(op.result.type)))


def _cholesky(op: stablehlo.CholeskyOp, scope: Scope) -> Expression:
    if not op.lower.value.data:
        raise NotImplementedError("JAX computes lower factors only")
    return call("lax.linalg.cholesky", scope.of(op.a), symmetrize_input="False")


def _triangular_solve(op: stablehlo.TriangularSolveOp, scope: Scope) -> Expression:
    transpose = op.transpose_a.data
    flags = {
        "left_side": op.left_side.value.data,
        "lower": op.lower.value.data,
        "unit_diagonal": op.unit_diagonal.value.data,
        "transpose_a": transpose in (Transpose.TRANSPOSE, Transpose.ADJOINT),
        "conjugate_a": transpose is Transpose.ADJOINT,
    }
    return call(
        "lax.linalg.triangular_solve", scope.of(op.a), scope.of(op.b), **{k: "True" for k, v in flags.items() if v}
    )


def _fft(op: stablehlo.FftOp, scope: Scope) -> Expression:
    kind = string(op.fft_type.data.value)
    return call("lax.fft", scope.of(op.operand), kind, sizes(op.fft_length.get_values()))


def _top_k(op: TopKOp, scope: Scope) -> Expression:
    return call("lax.top_k", scope.of(op.operand), str(op.k.value.data))


def _custom_call(op: CustomCallOp, scope: Scope) -> Expression:
    target = op.call_target_name.data
    if target in _IDENTITIES and len(op.inputs) == 1:
        return scope.of(op.inputs[0])
    if "_python_" in target:
        raise NotImplementedError("it calls a Python function, which is not in the program")
    if op.called_computations.data:
        raise NotImplementedError(f"@{target} calls functions of the program")
    version = op.api_version.value.data
    config = op.backend_config if version == TYPED_FFI else op.attributes.get("mhlo.backend_config")
    values = {name: _plain(value) for name, value in config.data.items()} if isinstance(config, DictionaryAttr) else {}
    results = [_struct(result) for result in op.results]
    options: dict[str, Item] = {}
    if version != TYPED_FFI and config is None:
        options["custom_call_api_version"] = str(version)
        if isinstance(op.backend_config, StringAttr) and op.backend_config.data:
            options["legacy_backend_config"] = string(op.backend_config.data)
    if _has_layouts(op):
        options["input_layouts"] = list_of(_layout(each) for each in op.operand_layouts or ())
        layouts = [_layout(each) for each in op.result_layouts or ()]
        options["output_layouts"] = list_of(layouts) if len(results) > 1 else layouts[0]
    aliases = {alias.data.operand_index: alias.data.output_tuple_indices for alias in op.output_operand_aliases}
    if aliases:
        pairs = (f"{operand}: {output[0] if output else 0}" for operand, output in aliases.items())
        options["input_output_aliases"] = "{" + ", ".join(pairs) + "}"
    function = call(
        "jax.ffi.ffi_call", _target(target), tuple_of(results) if len(results) != 1 else results[0], **options
    )
    name = scope.names.new(target)
    scope.write(name, function)
    return call(name, *map(scope.of, op.inputs), **values)


def _target(target: str) -> Expression:
    """Return the name of a library function; those of LAPACK need to be loaded first."""
    routine = re.fullmatch(r"lapack_([sdcz])(\w+_ffi)", target)
    if routine is None:
        return Expression(string(target))
    return call("lapack.prepare_lapack_call", string(routine[2]), _LAPACK_TYPES[routine[1]])


def _struct(value: SSAValue) -> Expression:
    return call("jax.ShapeDtypeStruct", sizes(shape(value.type)), dtype_text(dtype_of(value)))


def _has_layouts(op: CustomCallOp) -> bool:
    """Return whether a layout is not that of JAX, with the last dimension minor."""
    layouts = (*(op.operand_layouts or ()), *(op.result_layouts or ()))
    return any(integers(each) != [*range(len(integers(each)))][::-1] for each in layouts)


def _layout(layout: DenseIntOrFPElementsAttr) -> Expression:
    """Return a layout, major to minor as `jax.ffi` takes it."""
    return sizes(integers(layout)[::-1])


def _plain(value: Attribute) -> Item:
    """Return an attribute of a typed call as a NumPy scalar."""
    match value:
        case IntegerAttr() | FloatAttr():
            number = cast(IntegerAttr[IntegerType] | FloatAttr[AnyFloat], value)
            dtype = element_dtype(number.type)
            if dtype is None:
                raise NotImplementedError(f"its attribute {value} has no NumPy equivalent")
            text = str(number.value.data)
            return str(bool(number.value.data)) if dtype == np.bool_ else f"np.{dtype.name}({text})"
        case StringAttr():
            return string(value.data)
        case _:
            raise NotImplementedError(f"its attribute {value} has no NumPy equivalent")


LIBRARY_CALLS: dict[type[Operation], Printer] = {
    CustomCallOp: _custom_call,
    TopKOp: _top_k,
    stablehlo.CholeskyOp: _cholesky,
    stablehlo.FftOp: _fft,
    stablehlo.RngBitGeneratorOp: _random_bits,
    stablehlo.RngOp: _random,
    stablehlo.TriangularSolveOp: _triangular_solve,
}
