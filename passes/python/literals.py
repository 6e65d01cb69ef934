"""Python text of types, numbers and constant arrays."""

import base64
import math
from collections.abc import Iterable
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType
from xdsl.ir import Attribute, OpResult, SSAValue
from xdsl.utils.hints import isa

from sdy.array_types import element_dtype
from sdy.dialect.constants import constant_value
from sdy.interpreter.values import constant_array
from sdy.ir.shapes import shape
from sdy.passes.python.expressions import Expression, Item, Precedence, call, list_of, sizes
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.elementwise import ConvertOp

Array = np.ndarray[Any, np.dtype[Any]]

_LISTED = 64
"""The most elements of a constant that are listed; a larger one is decoded from base 64."""


def dtype_of(value: SSAValue) -> np.dtype[Any]:
    """Return the element type of a tensor. Raises NotImplementedError for one that JAX does not have."""
    dtype = optional_dtype_of(value)
    if dtype is None:
        raise NotImplementedError(f"JAX has no arrays of type {value.type}")
    return dtype


def optional_dtype_of(value: SSAValue) -> np.dtype[Any] | None:
    """Return the element type of a tensor; None if JAX does not have it, or if `value` is no tensor."""
    type_: Attribute = value.type
    return element_dtype(cast(TensorType[Attribute], type_).element_type) if isinstance(type_, TensorType) else None


def holds(value: SSAValue, number: float) -> bool:
    """Return whether all elements of `value` are known to be `number`."""
    elements = known_elements(value)
    return elements is not None and elements.size > 0 and bool((elements == number).all())


def dtype_text(dtype: np.dtype[Any]) -> str:
    """Return `jnp.float32`, say."""
    return f"jnp.{'bool_' if dtype == np.bool_ else dtype.name}"


def type_text(value: SSAValue) -> str:
    """Return the type of a value for comments, such as `float32[8, 64]`."""
    return f"{dtype_of(value).name}[{', '.join(map(str, shape(value.type)))}]"


def number(element: Any, dtype: np.dtype[Any]) -> Expression:
    """Return a Python number that converts to `element` of type `dtype`."""
    if dtype == np.bool_:
        return Expression(str(bool(element)))
    if dtype.kind == "c":
        return call("complex", number(element.real, element.real.dtype), number(element.imag, element.imag.dtype))
    if dtype.kind in "iu" or dtype.name.startswith(("int", "uint")):
        text = str(int(element))
    elif math.isfinite(wide := float(element)):
        text = _shortest(element, wide, dtype)
    else:
        text = "jnp.nan" if math.isnan(wide) else f"{'-' if wide < 0 else ''}jnp.inf"
    return Expression(text, Precedence.SIGN if text.startswith("-") else Precedence.ATOM)


def _shortest(element: Any, wide: float, dtype: np.dtype[Any]) -> str:
    """Return the shortest decimal number that rounds to `element`."""
    short = str(element)
    text = repr(float(short)) if dtype.type(float(short)) == element else repr(wide)
    return repr(wide) if len(repr(wide)) < len(text) else text


def constant(values: Array) -> Expression:
    """Return a scalar, a filled array, or a list of the elements of an array for which `is_listed` is true."""
    dtype = dtype_text(values.dtype)
    if values.ndim == 0:
        return call(dtype, number(values[()], values.dtype))
    if not values.tobytes().strip(b"\0"):
        return call("jnp.zeros", sizes(values.shape), dtype)
    if _is_uniform(values):
        element = values.flat[0]
        return call("jnp.full", sizes(values.shape), number(element, values.dtype), dtype)
    return call("jnp.array", _nested(values), dtype)


def is_listed(values: Array) -> bool:
    """Return whether the elements of an array are written one by one: there are few, or they are equal."""
    return _is_uniform(values) or (values.size <= _LISTED and not _has_payloads(values))


def decoded(values: Array) -> Expression:
    """Return an array decoded from base 64."""
    text = base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()
    return call("np.ndarray", sizes(values.shape), dtype_text(values.dtype), call("base64.b64decode", f'"{text}"'))


def _is_uniform(values: Array) -> bool:
    first = np.ascontiguousarray(values).reshape(-1)[:1].tobytes()
    return np.ascontiguousarray(values).tobytes() == first * values.size


def _has_payloads(values: Array) -> bool:
    """Return whether an element is a NaN or a complex number, whose bits a Python number may not have."""
    return values.dtype.kind == "c" or (values.dtype.kind not in "iub" and bool(np.isnan(values.astype(float)).any()))


def _nested(values: Array) -> Item:
    if values.ndim == 0:
        return number(values[()], values.dtype)
    return list_of(_nested(each) for each in values)


def integers(attribute: DenseIntOrFPElementsAttr) -> list[int]:
    """Return the elements of a constant of integers; none if it is empty."""
    return (
        [int(value) for value in cast(Iterable[int], attribute.get_values())] if 0 not in attribute.get_shape() else []
    )


def unconverted(value: SSAValue) -> SSAValue:
    """Return `value` before converts to its own type, of numbers that JAX types weakly."""
    while isinstance(value, OpResult) and isinstance(value.op, ConvertOp) and value.op.operand.type == value.type:
        value = value.op.operand
    return value


def known_elements(value: SSAValue) -> Array | None:
    """Return the elements of a constant, or of a scalar constant that is broadcast; None if `value` is neither."""
    if isinstance(value.owner, BroadcastInDimOp) and not shape(value.owner.operand.type):
        scalar = known_elements(value.owner.operand)
        return None if scalar is None else np.broadcast_to(scalar, shape(value.type))
    attribute = constant_value(value)
    if attribute is None:
        return None
    try:
        return elements(attribute)
    except NotImplementedError:
        return None


def elements(attribute: Attribute) -> Array:
    """Return the elements of a constant. Raises NotImplementedError for those that JAX does not have."""
    if not isa(attribute, DenseIntOrFPElementsAttr):
        raise NotImplementedError("constants of this form have no JAX equivalent")
    dtype = element_dtype(cast(TensorType[Attribute], attribute.get_type()).element_type)
    if dtype is None:
        raise NotImplementedError(f"JAX has no arrays of type {attribute.get_type()}")
    return constant_array(attribute, dtype)
