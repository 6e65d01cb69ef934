"""Shardings by patterns of parameter names, as in `sdy.torch.train_step`; runs without torch."""

import re
from typing import Any

import pytest
from jax.sharding import PartitionSpec as P

import sdy
from sdy.passes.torch.names import shardings_of, split_alike

NAMES = {
    "embedding.weight": ["embedding.weight", "head.weight"],
    "layers.0.q_proj.weight": ["layers.0.q_proj.weight"],
    "layers.0.q_proj.bias": ["layers.0.q_proj.bias"],
}
SHAPES = {"embedding.weight": (32, 8), "layers.0.q_proj.weight": (8, 8), "layers.0.q_proj.bias": (8,)}


def given(patterns: Any) -> list[Any]:
    return [*shardings_of(patterns, NAMES, SHAPES, {"data": 4, "model": 2}).values()]


def test_the_first_pattern_that_matches_counts() -> None:
    assert given({"*.q_proj.weight": P("model", None), "*.weight": P("data")}) == [P("data"), P("model", None), P()]
    assert given({"head.*": P("model"), "*.bias": P(("data", "model"))}) == [P("model"), P(), P(("data", "model"))]
    assert given({"*.bias": P("data"), "*": sdy.AUTO}) == [sdy.AUTO, sdy.AUTO, P("data")]
    assert given(sdy.AUTO) == [sdy.AUTO] * 3
    assert given(None) == [P()] * 3


@pytest.mark.parametrize(
    ("patterns", "problem"),
    [
        (
            {"*.q_prj.weight": P()},
            "'*.q_prj.weight' matches no parameter or buffer of the model; similar names are layers.0.q_proj.weight",
        ),
        ({"*": P(), "*.bias": P("data")}, "'*.bias' has no effect: '*' comes before it"),
        (
            {"head.*": P("data"), "emb*": P("model")},
            "embedding.weight is given PartitionSpec('model',) by 'emb*', head.weight",
        ),
        (
            {"*.bias": P("data", None)},
            "layers.0.q_proj.bias is given PartitionSpec('data', None) of 2 dimensions, but has shape (8,)",
        ),
        ({"*.bias": P("modle")}, "the mesh has no axis 'modle'; it has data, model"),
        ({"*q*": P(("data", "model", "data"))}, "dimension 0 of size 8 is not divisible by 32"),
    ],
)
def test_what_does_not_fit_is_told_by_name(patterns: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem).replace("PartitionSpec", "(PartitionSpec|P)")):
        given(patterns)


def test_optimizer_state_is_sharded_like_its_parameter() -> None:
    spec = P("data", "model")
    assert split_alike(spec, (32, 8), (32, 8)) == spec
    assert split_alike(spec, (32, 8), (32, 1)) == P("data", None)
    assert split_alike(spec, (32, 8), ()) == P()
    assert split_alike(sdy.AUTO, (32, 8), ()) is sdy.AUTO
