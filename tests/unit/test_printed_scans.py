"""`sdy.to_python` on loops: those that read and write an array row by row are `lax.scan`, and others are not."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import sdy

X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
START = np.ones(3, np.float32)


def _summed(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return lax.scan(lambda total, row: (total + row, total * row), START, x)


SCANS: dict[str, Callable[[jax.Array], Any]] = {
    "rows in, rows out": _summed,
    "from the end": lambda x: lax.scan(lambda total, row: (total + row, total * row), START, x, reverse=True),
    "rows of two arrays into two": lambda x: lax.scan(
        lambda total, rows: (total + rows[0] * rows[1], (total, rows[1])), START, (x, jnp.sin(x))
    ),
    "one array twice": lambda x: lax.scan(lambda total, rows: (total + rows[0] * rows[1], None), START, (x, x)),
    "numbers": lambda x: lax.scan(lambda total, number: (total + number, total), 0.5, x[:, 0]),
    "no state": lambda x: lax.scan(lambda _, row: (None, jnp.sin(row)), None, x),
    "two states": lambda x: lax.scan(lambda state, row: ((state[1], state[0] + row), state[0]), (START, 2 * START), x),
    "no array": lambda x: lax.scan(lambda total, _: (total * 2, total), x[0], None, length=4),
    "the index too": lambda x: lax.scan(
        lambda total, rows: (total + rows[1] * rows[0], total), START, (jnp.arange(5.0), x)
    ),
    "the index of the row": lambda x: lax.fori_loop(0, 5, lambda i, total: total + i * _row(x, i), START),
    "the next index": lambda x: lax.fori_loop(0, 5, lambda i, total: total + (i + 1) * _row(x, i), START),
    "a scan in a scan": lambda x: lax.scan(
        lambda total, row: (total + lax.scan(lambda a, b: (a * b, a), 1.0, row)[1], total), START, x
    ),
    "a gradient": jax.grad(lambda x: lax.scan(lambda total, row: (jnp.sin(total * row), None), START, x)[0].sum()),
}
OTHERS: dict[str, Callable[[jax.Array], Any]] = {
    "fewer iterations than rows": lambda x: lax.fori_loop(0, 4, lambda i, total: total + _row(x, i), START),
    "from the second row": lambda x: lax.fori_loop(1, 5, lambda i, total: total + _row(x, i), START),
    "an array that the loop also reads": lambda x: lax.fori_loop(
        0, 5, lambda i, a: _with_row(a, _row(a, i) + a[0], i), x
    ),
    "an array that the loop also tests": lambda x: lax.while_loop(
        lambda s: (s[0] < 5) & (s[1][0, 0] < 100), lambda s: (s[0] + 1, _with_row(s[1], START * s[0], s[0])), (0, x)
    )[1],
    "a row behind": lambda x: lax.fori_loop(0, 5, lambda i, a: _with_row(a, START * i, jnp.maximum(i - 1, 0)), x),
    "columns": lambda x: lax.fori_loop(
        0, 3, lambda i, total: total + lax.dynamic_index_in_dim(x, i, 1, False), x[:, 0]
    ),
    "rows in steps of two": lambda x: lax.fori_loop(
        0, 5, lambda i, total: total + _row(jnp.tile(x, (2, 1)), 2 * i), START
    ),
    "until a condition": lambda x: lax.while_loop(
        lambda s: s[1].sum() < 9, lambda s: (s[0] + 1, s[1] * 1.5 + _row(x, 0)), (0, START)
    )[1],
}


_AS_IT_IS: dict[str, Any] = {"allow_negative_indices": False}
"""Options of slices that do not add the size to a negative index."""


def _row(x: jax.Array, index: Any) -> jax.Array:
    return lax.dynamic_slice_in_dim(x, index, 1, **_AS_IT_IS)[0]


def _with_row(x: jax.Array, row: jax.Array, index: Any) -> jax.Array:
    return lax.dynamic_update_slice_in_dim(x, row[None], index, 0, **_AS_IT_IS)


def _printed(name: str, fun: Callable[[jax.Array], Any]) -> str:
    module = sdy.from_jax(fun, X)
    text = sdy.to_python(module, "program")
    names: dict[str, Any] = {}
    exec(text, names)
    result = names["program"](X)
    for one, expected in zip(jax.tree.leaves(result), jax.tree.leaves(fun(jnp.asarray(X))), strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-6, err_msg=f"{name}\n{text}")
    return text


def _lines_of_code(text: str) -> list[str]:
    return [line for line in text.split("\n") if not line.lstrip().startswith("#")]


@pytest.mark.parametrize("name", SCANS)
def test_a_loop_over_rows_is_a_scan(name: str) -> None:
    code = "\n".join(_lines_of_code(_printed(name, SCANS[name])))
    assert "lax.scan(" in code
    assert "fori_loop" not in code
    assert "dynamic" not in code


@pytest.mark.parametrize("name", OTHERS)
def test_other_loops_are_no_scans(name: str) -> None:
    assert "lax.scan(" not in "\n".join(_lines_of_code(_printed(name, OTHERS[name])))


def test_a_scan_reads_as_it_was_written() -> None:
    text = sdy.to_python(sdy.from_jax(jax.jit(_summed), X))
    assert _lines_of_code(text[text.index("    def body") :]) == [
        "    def body(carried, x_i):",
        "        return carried + x_i, carried * x_i",
        "",
        "    return lax.scan(body, jnp.full((3,), 1.0, jnp.float32), x)",
        "",
    ]


def test_functions_that_a_person_named_stay_functions() -> None:
    @jax.jit
    def layer(x: jax.Array) -> jax.Array:
        return jnp.tanh(x)

    text = sdy.to_python(sdy.from_jax(jax.jit(lambda x: layer(layer(x))), X))
    assert text.count("def layer(") == 1
    assert text.count("layer(") == 3
