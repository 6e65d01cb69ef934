"""Operator annotations: parsing, size inference, and sharding rules."""

from ast import literal_eval

import pytest

from nnscaler_annotations import SHAPES, SPLIT, WRITTEN, Shape
from sdy.dialect.rule_syntax import rule_text
from sdy.operators.annotation import Reduction
from sdy.operators.notation import MISTAKES, parse_operator
from sdy.operators.rules import operator_rule
from sdy.operators.shapes import Fitted, fit
from sdy.operators.transforms import Batched, Gradient
from sdy.rules import AnnotationError


def fitted(text: str, *shapes: Shape | None, **values: int) -> Fitted:
    """Return an annotation fitted to arguments named x0, x1, ..."""
    return fit(parse_operator(text), [f"x{index}" for index in range(len(shapes))], shapes, values)


@pytest.mark.parametrize(("text", "shapes", "values", "outputs"), SHAPES, ids=[row[0] for row in SHAPES])
def test_shapes_are_those_of_nnscaler(
    text: str, shapes: list[Shape | None], values: dict[str, int], outputs: list[Shape]
):
    assert list(fitted(text, *shapes, **values).output_shapes) == outputs


@pytest.mark.parametrize(("text", "understood"), WRITTEN.items())
def test_shardable_identifiers_are_those_of_nnscaler(text: str, understood: str):
    annotation = parse_operator(text)
    assert str(annotation) == understood
    places: list[tuple[int, int]] = []
    seen: set[str] = set()
    for index, tensor in enumerate(annotation.tensor_inputs):
        for dim, identifiers in enumerate(tensor):
            name = next(i.name for i in identifiers if i.name != "1")
            if name not in seen and annotation.reduction(name) is not Reduction.UNSHARDABLE:
                places.append((index, dim))
            seen.add(name)
    assert places == SPLIT[text]


SEED: dict[str, tuple[tuple[list[int], ...], dict[str, int], list[Shape]]] = {
    "m^ kd+, kd+ n -> m^ n": (([4, 8], [8, 6]), {}, [(4, 6)]),
    "(h t) k -> h t k": (([1024, 8],), {"h": 8}, [(8, 128, 8)]),
    "(h^ m^) kd+, kd+ n -> h^ m^ n": (([8, 16], [16, 4]), {"h": 2}, [(2, 4, 4)]),
    "* t -> a * t": (([5, 6, 7],), {"a": 3}, [(3, 5, 6, 7)]),
}


@pytest.mark.parametrize(("text", "case"), SEED.items())
def test_shapes_of_examples(text: str, case: tuple[tuple[list[int], ...], dict[str, int], list[Shape]]):
    shapes, values, outputs = case
    assert list(fitted(text, *map(tuple, shapes), **values).output_shapes) == outputs


def test_a_star_is_expanded_in_place():
    assert str(parse_operator("* t -> a * t").expanded(2)) == "b c t -> a b c t"
    assert str(parse_operator("*+, ? -> 1").expanded(3)) == "a+ b+ c+, ? -> 1^"
    assert str(parse_operator("* t -> *").expanded(0)) == "t ->"


RULES = {
    ("m^ kd+, kd+ n -> m^ n", ((4, 8), (8, 6)), ()): (
        "([i, j], [j, k])->([i, k]) {i=4, j=8, k=6} reduction={j} need_replication={i} blocked_propagation={i}"
    ),
    ("(h t) k -> h t k", ((32, 3),), (("h", 4),)): (
        "([ij, k])->([i, j, k]) {i=4, j=8, k=3} need_replication={j} blocked_propagation={j}"
    ),
    # Identifiers that an output lacks without a sum, or that no input has, cannot be sharded.
    ("a b -> a", ((4, 8),), ()): "([i, j])->([i]) {i=4, j=8} need_replication={j} blocked_propagation={j}",
    ("a -> a b", ((4,),), (("b", 2),)): "([i])->([i, j]) {i=4, j=2} need_replication={j} blocked_propagation={j}",
    # A sum identifier that only some outputs lack is a pass-through factor.
    ("a b+ -> a b+, a", ((4, 8),), ()): "([i, j])->([i, j], [i]) {i=4, j=8}",
    # No tensor has a factor twice, nor a factor of size 1 in a dimension with others.
    ("a -> a a", ((4,),), ()): "([i])->([i, j]) {i=4, j=4} need_replication={i, j} blocked_propagation={i, j}",
    ("(1 a) 3 -> a", ((4, 3),), ()): "([i, j])->([i]) {i=4, j=3} need_replication={j} blocked_propagation={j}",
    ("a+, ? -> 1", ((4,), None), ()): (
        "([i])->([j]) {i=4, j=1} reduction={i} need_replication={j} blocked_propagation={j}"
    ),
}


@pytest.mark.parametrize(("case", "expected"), RULES.items(), ids=[case[0] for case in RULES])
def test_rules(case: tuple[str, tuple[Shape | None, ...], tuple[tuple[str, int], ...]], expected: str):
    text, shapes, values = case
    found = fitted(text, *shapes, **dict(values))
    inputs = [shape for shape in shapes if shape is not None]
    assert rule_text(operator_rule(found, inputs, found.output_shapes).rule) == f"<{expected}, custom>"


def test_the_annotation_of_a_scalar_is_1():
    rule = operator_rule(fitted("a+, 1 -> 1", (4,), ()), [(4,), ()], [()]).rule
    assert rule_text(rule) == "<([i], [])->([]) {i=4} reduction={i}, custom>"
    many = Batched((True, False)).apply(fitted("a+, 1 -> 1", (4,), ()), [(3, 4), ()])
    rule = operator_rule(many, [(3, 4), ()], [(3,)]).rule
    assert rule_text(rule) == "<([i, j], [])->([i]) {i=3, j=4} reduction={j}, custom>"


def test_gradients_are_sums_over_identifiers_that_an_input_lacks():
    operator = fitted("m^ kd+, kd+ n -> m^ n", (4, 8), (8, 6))
    shapes = [(4, 8), (8, 6), (4, 6)]
    gradient = Gradient(2, (0, 1), (0,)).apply(operator, shapes)
    assert str(gradient.annotation) == "m^ kd+, kd+ n+, m^ n+ -> m^ kd+, kd+ n+"
    rule = operator_rule(gradient, shapes, gradient.output_shapes)
    # The gradient of the first input is a partial sum along n; that of the second is not along kd and n.
    assert rule.summed == ((rule.factors["n"],), ())
    again = Gradient(3, (0,), (0, 1)).apply(gradient, [*shapes, (4, 8), (8, 6)])
    assert str(again.annotation) == "m^ kd+, kd+ n+, m^ n+, m^ kd+, kd+ n+ -> m^ kd+"


def test_identifiers_that_cannot_be_sharded_cannot_in_the_gradient():
    operator = fitted("a b -> a", (4, 8))
    assert str(Gradient(1, (0,), (0,)).apply(operator, [(4, 8), (4,)]).annotation) == "a+ b^, a+ -> a+ b^"


def test_batched_operators_have_one_more_dimension():
    operator = fitted("batch kd+, kd+ n -> batch n", (4, 8), (8, 6))
    many = Batched((True, False)).apply(operator, [(3, 4, 8), (8, 6)])
    assert str(many.annotation) == "batch' batch kd+, kd+ n -> batch' batch n"
    assert many.output_shapes == ((3, 4, 6),)
    again = Batched((False, True)).apply(many, [(3, 4, 8), (2, 8, 6)])
    assert str(again.annotation) == "batch' batch kd+, batch'' kd+ n -> batch'' batch' batch n"


def test_syntax_errors_give_advice():
    for advice, examples in MISTAKES.items():
        for example in examples:
            with pytest.raises(AnnotationError) as raised:
                parse_operator(example)
            said, shown, caret = str(raised.value).split("\n")
            assert said == f"{advice}:", example
            assert shown == example
            assert caret.strip() == "^"


WRONG = {
    "i => j": ("expected `->` or `,` or `(` or `*` or an identifier, as `n`, `n+`, `n^` or a number:\ni => j\n  ^"),
    "m^^ -> m": "expected `->` or `,` or `(` or `*` or an identifier, as `n`, `n+`, `n^` or a number:\nm^^ -> m\n  ^",
    "a b^, b^ c -> a c^": "identifier 'c' is written both `c` and `c^`: use one form",
    "8+ -> 8": "`8+` is a number, which can't be split: write `8`",
    "* * -> *": "`*` occurs twice in one tensor",
}


@pytest.mark.parametrize(("text", "message"), WRONG.items())
def test_wrong_annotations(text: str, message: str):
    with pytest.raises(AnnotationError) as raised:
        parse_operator(text)
    assert str(raised.value) == message


UNFIT = {
    "a b -> b; (4,)": "argument 'x0' has 2 dimensions in the annotation, but its shape is (4,)",
    "a * b -> b; (4,)": "argument 'x0' has at least 2 dimensions in the annotation, but its shape is (4,)",
    "a -> a; None": "argument 'x0' is not an array, but has dimensions in the annotation",
    "a b, b c -> a c; (3, 4), (5, 6)": (
        "`b` is 4 as dimension 1 of argument 'x0', but 5 as dimension 0 of argument 'x1'"
    ),
    "3 b -> b; (4, 5)": "dimension 0 of argument 'x0' is 4, but `3` in the annotation",
    "*, * -> *; (3, 4), (5,)": "`*` is 2 dimensions of argument 'x0', but 1 of argument 'x1'",
    "(h t) -> h t; (1024,)": (
        "dimension 0 of argument 'x0' is 1024, from which `(h t)` can't be inferred: all but one of 'h' or 't' must be "
        "known, so give an argument of that name"
    ),
    "(h t) -> h t; (1023,); h=8": "dimension 0 of argument 'x0' is 1023, which is not divisible by `(h t)` with h=8",
    "(h t) -> h t; (1024,); h=0": "dimension 0 of argument 'x0' is 1024, which is not divisible by `(h t)` with h=0",
    "(h t), t -> h; (12,), (4,); h=5": "dimension 0 of argument 'x0' is 12, but `(h t)` is 20 with h=5, t=4",
    "h k -> h; (4, 5); h=3": "`h` is 3 as argument 'h', but 4 as dimension 0 of argument 'x0'",
    "k -> h; (4,)": "'h' is in an output, but in no input: give its size as the argument 'h'",
    "k -> *; (4,)": "`*` is in an output, but in no input",
    "k -> h; (4,); h=-1": "argument 'h' is the size of a dimension, and can't be -1",
}


@pytest.mark.parametrize(("case", "message"), UNFIT.items())
def test_errors_for_arguments_that_do_not_match(case: str, message: str):
    text, shapes, *values = case.split("; ")
    arguments: list[Shape | None] = literal_eval(f"[{shapes}]")
    with pytest.raises(AnnotationError) as raised:
        fitted(text, *arguments, **{name: int(size) for name, _, size in (v.partition("=") for v in values)})
    assert str(raised.value) == message
