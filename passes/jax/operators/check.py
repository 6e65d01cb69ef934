"""Numerical check of operator annotations: compares shard-by-shard results with the unpartitioned result.

Take `softmax(x)` over columns with the annotation `b d -> b d`. The results for both halves of the rows, concatenated,
equal the result for all rows. This fails for halves of the columns: the right annotation is `b d^ -> b d^`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain, combinations
from math import prod
from typing import Any, TypeAlias
from warnings import warn

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import eval_context

from sdy.operators.annotation import ONE_ELEMENT, Identifier, OperatorAnnotation, Reduction, Tensor
from sdy.operators.call import OperatorCall
from sdy.operators.rules import OperatorRule
from sdy.operators.shapes import Fitted
from sdy.passes.jax.operators.traced import ArrayOperator

Array: TypeAlias = "np.ndarray[Any, Any]"

_PARTS = 2
_SPLIT_SIZE = 4
"""The reduced size of a shardable identifier."""
_WHOLE_SIZE = 8
"""The maximal reduced size of any other identifier."""
_MOST_ALIKE = 4
"""The number of identifiers of equal size that are tried as one dimension with another."""
_MOST_ELEMENTS = 1 << 20
"""The maximal number of argument elements at full size, for functions that do not accept reduced sizes."""


def check_parts(operator: ArrayOperator, call: OperatorCall, types: Sequence[jax.ShapeDtypeStruct]) -> None:
    """Compare the results of `call` with those computed from shards, for each shardable identifier.

    The arguments are random arrays of reduced size, or of these types if the function does not accept those. Shards
    that the function does not accept are not an error here; they are reported when a program shards them. Warns if the
    function accepts no random arrays.

    Raises:
        AnnotationError: the combined results of the shards differ from the unpartitioned result.
    """
    problem: Exception | None = None
    for trial in _trials(operator, call, types):
        try:
            whole = trial.compute(trial.call, trial.arguments)
        except Exception as refusal:  # whatever a function of a person raises
            problem = refusal
            continue
        for name in trial.may_be_split():
            trial.check(name, whole)
        return
    reason = f"the function does not accept them: {problem}" if problem else "its arguments are large"
    warn(f"{operator.error(f'not checked with arrays of random numbers, as {reason}')}", stacklevel=4)


def _trials(operator: ArrayOperator, call: OperatorCall, types: Sequence[jax.ShapeDtypeStruct]) -> Iterator["_Trial"]:
    """Yield the call with reduced sizes, and at full size if that has at most `_MOST_ELEMENTS` elements.

    In the first trial, identifiers of equal size may get different reduced sizes, if only one is shardable; in the
    second, they get the same.
    """
    fitted = operator.fit_call(call, [each.shape for each in types])
    small = {name: _small(fitted.annotation, name, size) for name, size in fitted.sizes.items()}
    least: dict[int, int] = {}
    for name, size in fitted.sizes.items():
        least[size] = min(small[name], least.get(size, size))
    same = {name: size if name.isdecimal() else least[size] for name, size in fitted.sizes.items()}
    for sizes in [small] if small == same else [small, same]:
        typed_inputs = zip(fitted.annotation.tensor_inputs, types, strict=True)
        arrays = [jax.ShapeDtypeStruct(_shape(tensor, each.shape, sizes), each.dtype) for tensor, each in typed_inputs]
        yield _Trial(operator, call.with_sizes(sizes), arrays, fitted.sizes)
    if sum(prod(each.shape) for each in types) <= _MOST_ELEMENTS:
        yield _Trial(operator, call, types, fitted.sizes)


def _small(annotation: OperatorAnnotation, name: str, size: int) -> int:
    if name.isdecimal():
        return size
    if annotation.unshardable_reason(name) is None and size >= _PARTS:
        return min(_SPLIT_SIZE, size - size % _PARTS)
    return min(_WHOLE_SIZE, size)


def _shape(tensor: Tensor, given: tuple[int, ...], sizes: Mapping[str, int]) -> tuple[int, ...]:
    if tensor == ONE_ELEMENT:
        return given
    return tuple(prod(sizes[identifier.name] for identifier in dim) for dim in tensor)


@dataclass
class _Trial:
    """A call of an operator with random arguments of these types."""

    operator: ArrayOperator
    call: OperatorCall
    types: Sequence[jax.ShapeDtypeStruct]
    given: Mapping[str, int]
    """The sizes of the identifiers in the original call."""

    @property
    def fitted(self) -> Fitted:
        return self.operator.fit_call(self.call, [each.shape for each in self.types])

    @property
    def arguments(self) -> list[Array]:
        """Random arguments: standard normal floats, and integers 0 or 1, which are valid indices."""
        random = np.random.default_rng(0)
        return [
            np.asarray(random.standard_normal(each.shape)).astype(each.dtype)
            if jnp.issubdtype(each.dtype, jnp.inexact)
            else random.integers(0, 2, each.shape).astype(each.dtype)
            for each in self.types
        ]

    def compute(self, call: OperatorCall, arguments: Sequence[Array]) -> list[Array]:
        """Compute a call on one device, outside of any trace."""
        with eval_context(), jax.default_device(jax.local_devices()[0]):
            return [np.asarray(result) for result in jax.jit(self.operator.function(call))(*arguments)]

    def may_be_split(self) -> list[str]:
        """Return the shardable identifiers whose size the number of shards divides."""
        annotation, sizes = self.fitted.annotation, self.fitted.sizes
        names = dict.fromkeys(identifier.name for identifier in annotation.identifiers)
        return [
            name
            for name in names
            if annotation.unshardable_reason(name) is None and sizes[name] % _PARTS == 0 < sizes[name]
        ]

    def check(self, name: str, whole: Sequence[Array]) -> None:
        """Raise AnnotationError if the combined results of shards along `name` differ from `whole`.

        If the function accepts no shard of `name` alone, but one of `name` and others together, these should be one
        identifier.
        """
        try:
            parts = self._parts([name], whole)
        except Exception as refusal:  # as above
            if others := self._one_with(name, whole):
                raise self._error_of_one(name, others, refusal) from None
            return
        if (found := self._wrong_output([name], parts, whole)) is not None:
            raise self._error(name, *found)

    def _one_with(self, name: str, whole: Sequence[Array]) -> tuple[str, ...]:
        """Return identifiers that give right results if sharded together with `name`, or an empty tuple."""
        sizes, given = self.fitted.sizes, self.given
        alike = [
            other
            for other in sizes
            if other != name and not other.isdecimal() and sizes[other] == sizes[name] and given[other] == given[name]
        ][:_MOST_ALIKE]
        for others in chain.from_iterable(combinations(alike, count) for count in range(1, len(alike) + 1)):
            try:
                parts = self._parts([name, *others], whole)
            except Exception:  # as above
                continue
            if self._wrong_output([name, *others], parts, whole) is None:
                return others
        return ()

    def _rule(self, whole: Sequence[Array]) -> OperatorRule:
        return self.operator.rule(self.call, [each.shape for each in self.types], [result.shape for result in whole])

    def _parts(self, names: Sequence[str], whole: Sequence[Array]) -> list[list[Array]]:
        """Return the results of the function for each shard of the arguments along all of `names`."""
        factors = [self._rule(whole).factors[name] for name in names]
        mappings = self._rule(whole).rule.operands
        call = self.call.with_sizes({name: self.fitted.sizes[name] // _PARTS for name in names})

        def part(argument: Array, mapping: Sequence[Sequence[int]], number: int) -> Array:
            for factor in factors:
                if (dim := _dim_of(mapping, factor)) is not None:
                    argument = np.split(argument, _PARTS, dim)[number]
            return argument

        return [
            self.compute(call, [part(*each, number) for each in zip(self.arguments, mappings, strict=True)])
            for number in range(_PARTS)
        ]

    def _wrong_output(
        self, names: Sequence[str], parts: Sequence[Sequence[Array]], whole: Sequence[Array]
    ) -> tuple[str, str] | None:
        """Return how the shards of a wrong output are combined, and the difference; None if all outputs are right."""
        rule = self._rule(whole)
        for index, (mapping, expected, *of_parts) in enumerate(zip(rule.rule.results, whole, *parts, strict=True)):
            dims = {_dim_of(mapping, rule.factors[name]) for name in names} - {None}
            dim = next(iter(dims), None)
            combined = np.concatenate(of_parts, dim) if dim is not None else reduce(np.add, of_parts)
            if (difference := _difference(combined, expected)) is not None:
                return "summed" if dim is None else "concatenated", f"output {index} is {difference}"
        return None

    def _error_of_one(self, name: str, others: Sequence[str], refusal: Exception) -> Exception:
        annotation = self.fitted.annotation
        identifier = next(each for each in annotation.identifiers if each.name == name)
        right = annotation.mapped(
            lambda tensor: tuple(tuple(identifier if part.name in others else part for part in dim) for dim in tensor)
        )
        listed = " and ".join(f"`{each}`" for each in (name, *others))
        return self.operator.error(
            f"{listed} are one dimension, but have different names in the annotation `{annotation}`: the function "
            f"accepts no shard of `{name}` alone ({refusal}). Write `{right}`"
        )

    def _error(self, name: str, combination: str, difference: str) -> Exception:
        fitted = self.fitted
        types = ", ".join(f"{each.dtype}{list(each.shape)}" for each in self.types)
        right = fitted.annotation.mapped(
            lambda tensor: tuple(tuple(_whole(part, name) for part in dim) for dim in tensor)
        )
        return self.operator.error(
            f"`{name}` cannot be sharded as the annotation `{fitted.annotation}` says: for arguments {types}, "
            f"{_PARTS} shards of `{name}`={fitted.sizes[name]}, {combination}, differ from the unpartitioned result: "
            f"{difference}. Write `{right}`, which replicates `{name}`"
        )


def _whole(identifier: Identifier, name: str) -> Identifier:
    return replace(identifier, reduction=Reduction.UNSHARDABLE) if identifier.name == name else identifier


def _dim_of(mapping: Sequence[Sequence[int]], factor: int) -> int | None:
    return next((dim for dim, factors in enumerate(mapping) if factor in factors), None)


def _difference(found: Array, expected: Array) -> str | None:
    """Describe the element with the largest difference beyond rounding, or return None."""
    if found.shape != expected.shape:
        return f"of the shape {found.shape}, not {expected.shape}"
    if not expected.size:
        return None
    wide = [array.astype(np.complex128 if array.dtype.kind == "c" else np.float64) for array in (found, expected)]
    finite = np.abs(wide[1])[np.isfinite(wide[1])]
    allowed = _rounding(expected.dtype) * finite.max(initial=0)
    wrong = ~np.isclose(*wide, rtol=0, atol=allowed, equal_nan=True)
    if not wrong.any():
        return None
    worst = np.unravel_index(
        np.argmax(np.where(wrong, np.nan_to_num(np.abs(wide[0] - wide[1]), nan=np.inf), 0)), wrong.shape
    )
    place = f" at {[int(index) for index in worst]}" if worst else ""
    return f"{found[worst]:.4g}{place}, not {expected[worst]:.4g}"


def _rounding(dtype: np.dtype[Any]) -> float:
    """Return the tolerance for a different order of additions, relative to the largest element."""
    return 100 * float(jnp.finfo(dtype).eps) if jnp.issubdtype(dtype, jnp.inexact) else 0.0
