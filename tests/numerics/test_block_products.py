"""Products in blocks: those with long contracting dimensions are accumulated step by step."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sdy
from samples import sample
from sdy.ir.walking import operations_of
from sdy.passes.blocks.block_shapes import within
from sdy.passes.blocks.build import block_graph
from sdy.passes.blocks.fit_blocks import fit_blocks
from sdy.passes.blocks.schedule import run
from sdy.stablehlo import DotGeneralOp

LIMIT = 2**14

Product = Callable[[jax.Array, jax.Array], jax.Array]

STEPS: dict[str, tuple[Product, tuple[int, ...], tuple[int, ...], str]] = {
    "matrices": (lambda x, w: x @ w, (128, 512), (512, 128), "float32"),
    "uneven steps": (lambda x, w: x @ w, (128, 499), (499, 131), "float32"),
    "transposed": (lambda x, w: x.T @ w.T, (512, 128), (128, 512), "float32"),
    "batches": (lambda x, w: jnp.einsum("bik,bkj->bij", x, w), (2, 128, 512), (2, 512, 128), "float32"),
    "two contracting dimensions": (
        lambda x, w: jnp.einsum("ikl,klj->ij", x, w),
        (128, 512, 2),
        (512, 2, 128),
        "float32",
    ),
    "integers": (lambda x, w: x @ w, (128, 512), (512, 128), "int32"),
    "wide sums of narrow factors": (
        lambda x, w: jnp.matmul(x, w, preferred_element_type=jnp.float32),
        (128, 512),
        (512, 128),
        "bfloat16",
    ),
}
ONE_STEP: dict[str, tuple[Product, tuple[int, ...], tuple[int, ...], str]] = {
    "a short contracting dimension": (lambda x, w: x @ w, (512, 16), (16, 512), "float32"),
    "narrow sums": (lambda x, w: x @ w, (128, 512), (512, 128), "bfloat16"),
    "a vector": (lambda x, w: x @ w, (128, 512), (512,), "float32"),
}


def _fitted(name: str) -> tuple[int, float]:
    """Run a product in blocks, and return its number of products and the greatest difference from float32."""
    fun, *shapes, element = (STEPS | ONE_STEP)[name]
    generator = np.random.default_rng(0)
    operands = [jnp.asarray(generator.integers(-4, 5, size=size)).astype(element) for size in shapes]
    module = sdy.from_jax(jax.jit(fun), *operands)
    fit_blocks(module, LIMIT)
    steps = len(operations_of(module, DotGeneralOp))
    (result,), _ = run(block_graph(module, within(LIMIT)), [*map(np.asarray, operands)], 2**24)
    expected = fun(*(operand.astype("float32") for operand in operands))
    difference = np.abs(np.asarray(result, np.float64) - np.asarray(expected, np.float64))
    return steps, float(difference.max(initial=0))


@pytest.mark.parametrize("name", sample(STEPS, one_in=2))
def test_a_long_product_is_accumulated_in_steps(name: str) -> None:
    steps, difference = _fitted(name)
    assert steps > 1
    assert difference == 0  # sums of small integers are exact


@pytest.mark.parametrize("name", ONE_STEP)
def test_any_other_product_is_one_step(name: str) -> None:
    steps, difference = _fitted(name)
    assert steps == 1
    assert difference <= (2 if name == "narrow sums" else 0)


def test_a_product_that_does_not_fit_reads_its_operands_once() -> None:
    """The fewest parts that fit had thin blocks that read all rows: the gradient of a weight took hours."""
    x, y = np.random.default_rng(0).normal(size=(2, 1024, 8, 16)).astype(np.float32)
    module = sdy.from_jax(jax.jit(lambda x, y: jnp.einsum("bsd,bse->de", x, y)), x, y)
    fit_blocks(module, LIMIT)
    graph = block_graph(module, within(LIMIT))
    assert sum(shard.nbytes for shard in graph.shards()) <= 2 * (x.nbytes + y.nbytes)
    (result,), _ = run(graph, [x, y], 2**24)
    assert np.allclose(result, np.einsum("bsd,bse->de", x, y), atol=1e-2)


def test_steps_of_a_transposed_product_read_their_parts() -> None:
    """Each block of a step transposed all of the contracting dimension."""
    read: list[int] = []
    for name in ("matrices", "transposed"):
        fun, *shapes, _ = STEPS[name]
        module = sdy.from_jax(jax.jit(fun), *(jax.ShapeDtypeStruct(shape, "float32") for shape in shapes))
        fit_blocks(module, LIMIT)
        read.append(sum(shard.nbytes for shard in block_graph(module, within(LIMIT)).shards()))
    assert read[1] <= 1.05 * read[0]
