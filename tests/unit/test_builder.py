"""The Python API that builds modules."""

import numpy as np
import pytest

import sdy
from oracle import assert_same, oracle
from sdy.axes import AxisRef
from sdy.sharding import DimSharding, DimSpec, TensorSharding

MESH = sdy.Mesh.of({"data": 4, "model": 2})


def test_ten_lines_from_a_mesh_to_a_sharding() -> None:
    b = sdy.Builder(MESH)
    x = b.argument((16, 64), "data", None)
    w = b.argument((64, 256), None, "model")
    y = b.elementwise("tanh", b.einsum("bi,ij->bj", x, w))
    module = b.build(y)
    sdy.propagate(module)
    assert sdy.get_sharding(y) == sdy.Sharding.of("data", "model")


def test_built_module_is_valid_mlir() -> None:
    b = sdy.Builder(MESH)
    x = b.argument((8, 16, 4), "data", None, ("model", ...))
    w = b.argument((4, 16, 8))
    y = b.einsum("bsw,wsh->sbh", x, w)
    z = b.elementwise("add", b.constrain(y, None, "data", ...), b.constant(0.5, (16, 8, 8)))
    module = b.build(z, x)
    text = sdy.format(module)
    assert_same(text, text)
    sdy.propagate(module)
    assert_same(sdy.format(module), oracle(text, "sdy-propagation-pipeline"))


def test_einsum_computes_what_numpy_does() -> None:
    b = sdy.Builder(MESH)
    module = b.build(b.einsum("bsw,wsh->hbs", b.argument((4, 3, 8), "data", None, "model"), b.argument((8, 3, 2))))
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape, dtype=np.float32) for shape in ((4, 3, 8), (8, 3, 2)))
    (result,) = sdy.compile(module)(x, w)
    np.testing.assert_allclose(result, np.einsum("bsw,wsh->hbs", x, w), rtol=1e-5, atol=1e-5)


def test_the_notation_of_dimensions() -> None:
    assert sdy.Sharding.of(None, "x", ("x", "y"), ..., ("x", ...), AxisRef("x", 1, 2)) == TensorSharding(
        "mesh",
        (
            DimSharding(),
            DimSharding((AxisRef("x"),)),
            DimSharding((AxisRef("x"), AxisRef("y"))),
            DimSharding(is_closed=False),
            DimSharding((AxisRef("x"),), is_closed=False),
            DimSharding((AxisRef("x", 1, 2),)),
        ),
    )
    with pytest.raises(ValueError, match="last part"):
        sdy.Sharding.of((..., "x"))


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        ("ik,kj", "is not of the form"),
        ("ik,kj->ik", "letters must be kij"),
        ("ikl,kj->ij", "does not name the 2 dimensions"),
        ("ik,jk->ij", "differ in the size of 'k'"),
    ],
)
def test_equations_that_do_not_fit(equation: str, message: str) -> None:
    b = sdy.Builder(MESH)
    with pytest.raises(ValueError, match=message):
        b.einsum(equation, b.argument((4, 8)), b.argument((8, 2)))


def test_arguments_and_operations_that_do_not_fit() -> None:
    b = sdy.Builder(MESH)
    with pytest.raises(ValueError, match="2 dimensions, the sharding 1"):
        b.argument((4, 8), "data")
    with pytest.raises(ValueError, match="unknown operation"):
        b.elementwise("tanhh", b.argument((4,)))


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ((None, "rows"), "the mesh has no axis 'rows': its axes are 'data', 'model'"),
        ((None, ("data", "rows", ...)), "the mesh has no axis 'rows'"),
        (("data",), "the shape has 2 dimensions, the sharding 1"),
        (("data", None, None), "the shape has 2 dimensions, the sharding 3"),
        (("data", "data"), 'duplicate axis ref: "data"'),
        ((AxisRef("data", 1, 3), None), "doesn't divide the size of the full axis 4"),
    ],
)
def test_a_sharding_that_does_not_fit_is_refused_where_it_is_given(dims: tuple[DimSpec, ...], message: str) -> None:
    b = sdy.Builder(MESH)
    with pytest.raises(ValueError, match=message):
        b.argument((4, 8), *dims)
    x = b.argument((4, 8), "data", None)
    with pytest.raises(ValueError, match=message):
        b.constrain(x, *dims)
    sdy.propagate(b.build(b.constrain(x, None, "model")))  # the refused operation has not been inserted
