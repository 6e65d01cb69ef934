"""Sharding rules: compared with the oracle, registered by users, and written as annotations."""

import re
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from jax._src.custom_partitioning_sharding_rule import sdy_sharding_rule_to_mlir, str_to_sdy_sharding_rule
from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from xdsl.dialects import test
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition, traits_def, var_operand_def, var_result_def

from cxx_versions import has_another_rule
from jax_programs import PROGRAMS, lowered
from oracle import oracle
from random_operations import FAMILIES, programs, tensor
from samples import sample
from sdy.diagnostics import DiagnosticError, capture
from sdy.dialect.attributes import SHARDING_RULE, OpShardingRuleAttr
from sdy.dialect.interfaces import ShardingRuleInterface
from sdy.dialect.rule_syntax import rule_text
from sdy.passes.propagation.populate_op_sharding_rules import PopulateOpShardingRulesPass
from sdy.rule import OpShardingRule
from sdy.rules import (
    AnnotationError,
    RuleBuilder,
    annotate,
    identity_rule,
    parse_annotation,
    register,
    shape_of,
    sharding_rule,
    sharding_rules,
)
from sdy.rules.annotation import MISTAKES
from sdy.text import context, parse

EXAMPLES = Path(__file__).parents[2] / "examples"


def rules(module: ModuleOp) -> list[tuple[str, str]]:
    """Return each operation and its rule attribute."""
    return [(op.name, str(op.attributes.get(SHARDING_RULE))) for op in module.walk()]


def assert_rules_are_the_oracles(text: str, conservative: bool) -> None:
    module = parse(text)
    with capture():
        PopulateOpShardingRulesPass(conservative_propagation=conservative).apply(context(), module)
    option = f"{{conservative-propagation={str(conservative).lower()}}}"
    expected = parse(oracle(text, f"func.func(sdy-populate-op-sharding-rules{option})", generic=True))
    differing = [pair for pair in zip(rules(module), rules(expected), strict=True) if pair[0] != pair[1]]
    others = [
        ((name, ours), theirs)
        for (name, ours), theirs in differing
        # Before 0.12, Shardy has no rule for any operation of CHLO.
        if not (name.startswith("chlo.") and "None" in (ours, theirs[1])) and not has_another_rule(name)
    ]
    assert not others, others


def first_op(body: str) -> Operation:
    """Return the first operation of a function with `body` and the arguments `%a` and `%b` of type tensor<4x8xf32>."""
    module = parse(f"func.func @f(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>) {{\n{body}\nreturn\n}}")
    function = module.body.block.first_op
    assert function is not None
    op = function.regions[0].block.first_op
    assert op is not None
    return op


@pytest.mark.parametrize("conservative", [False, True])
def test_rules_of_the_transformer_are_the_oracles(conservative: bool) -> None:
    assert_rules_are_the_oracles((EXAMPLES / "transformer.mlir").read_text(), conservative)


@pytest.mark.parametrize("conservative", [False, True])
def test_rules_of_random_operations_are_the_oracles(conservative: bool) -> None:
    assert_rules_are_the_oracles(programs(count=800, seed=1), conservative)


@pytest.mark.parametrize("name", sample([name for name in PROGRAMS if not name.startswith("symbolic")], one_in=8))
def test_rules_of_jax_programs_are_the_oracles(name: str) -> None:
    for conservative in (False, True):
        assert_rules_are_the_oracles(lowered(name).pretty, conservative)


def test_operations_with_a_wrong_number_have_a_rule_or_are_refused() -> None:
    """Changing any number in an operation's attributes or shapes causes a diagnostic at worst."""
    rng = Random(0)
    refused = 0
    for seed in range(8):
        for text in programs(len(FAMILIES), seed).split("\n\n"):
            number = rng.choice(list(re.finditer(r"(?<![%@\w.])\d+", text)))
            changed = f"{text[: number.start()]}{rng.choice([0, 1, 2, 9])}{text[number.end() :]}"
            with capture():
                try:
                    for op in parse(changed).walk():
                        sharding_rule(op)
                except DiagnosticError:
                    refused += 1
    assert refused > 100


def test_equal_operations_share_a_rule() -> None:
    for body in (
        "%0 = stablehlo.add %a, %b : tensor<4x8xf32>",
        "%0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>",
    ):
        rules = [rule for _, rule in sharding_rules([first_op(body), first_op(body)])]
        assert len(rules) == 2
        assert rules[0] is rules[1]


def test_a_rule_attribute_takes_precedence() -> None:
    op = first_op("%0 = stablehlo.add %a, %b : tensor<4x8xf32>")
    given = OpShardingRule((4,), (((0,), (0,)), ((0,), (0,))), (((0,), (0,)),), is_custom=True)
    op.attributes[SHARDING_RULE] = OpShardingRuleAttr(given)
    assert sharding_rule(op) is given


def test_dimensions_whose_elements_are_reordered_need_replication() -> None:
    op = first_op("%0:2 = chlo.top_k(%a, k = 8) : tensor<4x8xf32> -> (tensor<4x8xf32>, tensor<4x8xi32>)")
    rule = sharding_rule(op)
    assert rule is not None
    assert (rule.need_replication, rule.blocked_propagation) == ((1,), (1,))


def test_unknown_operations_are_warned_about_once() -> None:
    call = (
        '%0 = "stablehlo.custom_call"(%a) <{call_target_name = "warned_once"}> : (tensor<4x8xf32>) -> tensor<4x8xf32>'
    )
    with capture() as diagnostics:
        assert sharding_rule(first_op(call)) is None
        assert sharding_rule(first_op(call)) is None
    assert [diagnostic.message for diagnostic in diagnostics] == [
        "custom call @warned_once is unknown to SDY sharding rule registry"
    ]


def test_a_custom_call_with_the_wrong_operands_is_an_error() -> None:
    call = '%0 = "stablehlo.custom_call"(%a) <{call_target_name = "Eigh"}> : (tensor<4x8xf32>) -> tensor<4x8xf32>'
    with pytest.raises(DiagnosticError, match=r"@Eigh to have the signature \(matrices\) -> \(matrices, vectors\)"):
        sharding_rule(first_op(call))


def test_dynamic_shapes_have_no_rule() -> None:
    dynamic = "func.func @f(%a: tensor<?x8xf32>) {\n%0 = stablehlo.add %a, %a : tensor<?x8xf32>\nreturn\n}"
    assert [sharding_rule(op) for op in parse(dynamic).walk() if op.name == "stablehlo.add"] == [None]


class OfItsOwn(ShardingRuleInterface):
    def sharding_rule(self, op: Operation) -> OpShardingRule:
        return identity_rule(shape_of(op.results[0]), len(op.operands))


@irdl_op_definition
class OwnRuleOp(IRDLOperation):
    name = "ours.own_rule"
    inputs = var_operand_def()
    outputs = var_result_def()
    traits = traits_def(OfItsOwn())


@irdl_op_definition
class RegisteredOp(IRDLOperation):
    name = "ours.registered"
    inputs = var_operand_def()
    outputs = var_result_def()


@irdl_op_definition
class AnnotatedOp(IRDLOperation):
    name = "ours.annotated"
    inputs = var_operand_def()
    outputs = var_result_def()


def test_operations_of_any_dialect_can_have_a_rule() -> None:
    @register("ours.registered")
    def registered(op: RegisteredOp, rule: RuleBuilder) -> None:
        rule.add_pointwise(shape_of(op.outputs[0]))

    annotate("ours.annotated", "... k -> ... k")

    type_ = TensorType(f32, [4, 8])
    operand = test.TestOp(result_types=[type_]).results[0]
    for op_class in (OwnRuleOp, RegisteredOp, AnnotatedOp):
        rule = sharding_rule(op_class.create(operands=[operand], result_types=[type_]))
        assert rule is not None
        assert (rule.operands, rule.results, rule.factor_sizes) == ((((0,), (1,)),), (((0,), (1,)),), (4, 8))
        assert not rule.is_custom
    with pytest.raises(ValueError, match="have a sharding rule already"):
        register("ours.registered")(registered)
    with pytest.raises(ValueError, match=r"write the dialect before it, as in 'mine\.scale'"):
        annotate("scale", "i -> i")


def rules_in(body: str) -> list[OpShardingRule | None]:
    """Return the rules of the operations of `body`, without those of its first operations and of the return."""
    module = parse(
        "func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %c: tensor<4x6xf32>, %v: tensor<4xf32>, %i: index) {\n"
        f"{body}\nreturn\n}}"
    )
    function = module.body.block.first_op
    assert function is not None
    skipped = ("arith.constant", "tensor.empty", "func.return", "stablehlo.constant")
    return [sharding_rule(op) for op in function.regions[0].block.ops if op.name not in skipped]


MATMUL = """linalg.generic {
    indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
    iterator_types = ["parallel", "parallel", "reduction"]
  } ins(%a, %b : tensor<4x8xf32>, tensor<8x6xf32>) outs(%c : tensor<4x6xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<4x6xf32>"""


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (f"%0 = {MATMUL}", "<([i, k], [k, j], [i, j])->([i, j]) {i=4, j=6, k=8} reduction={k}>"),
        (
            "%0 = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x6xf32>) outs(%c : tensor<4x6xf32>)"
            " -> tensor<4x6xf32>",
            "<([i, k], [k, j], [i, j])->([i, j]) {i=4, j=6, k=8} reduction={k}>",
        ),
        (
            "%e = tensor.empty() : tensor<8x4xf32>\n"
            "%0 = linalg.transpose ins(%a : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]",
            "<([j, i], [i, j])->([i, j]) {i=8, j=4}>",
        ),
        (
            "%0 = linalg.broadcast ins(%v : tensor<4xf32>) outs(%a : tensor<4x8xf32>) dimensions = [1]",
            "<([i], [i, j])->([i, j]) {i=4, j=8}>",
        ),
        ("%0 = arith.addf %a, %a : tensor<4x8xf32>", "<([i, j], [i, j])->([i, j]) {i=4, j=8}>"),
        ("%0 = math.exp %a : tensor<4x8xf32>", "<([i, j])->([i, j]) {i=4, j=8}>"),
        (
            "%0 = tensor.collapse_shape %a [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>",
            "<([i, j])->([ij]) {i=4, j=8}>",
        ),
        (
            "%0 = tensor.extract_slice %a[0, 2] [4, 3] [1, 1] : tensor<4x8xf32> to tensor<4x3xf32>",
            "<([i, j])->([i, j]) {i=4, j=8} permutation={j}>",
        ),
        (
            "%0 = tensor.extract_slice %a[%i, 0] [1, 8] [1, 1] : tensor<4x8xf32> to tensor<8xf32>",
            "<([i, j], [])->([j]) {i=4, j=8} need_replication={i} blocked_propagation={i}>",
        ),
        (
            "%0 = tensor.insert_slice %v into %a[0, 2] [4, 1] [1, 1] : tensor<4xf32> into tensor<4x8xf32>",
            "<([i], [i, j])->([i, j]) {i=4, j=8}>",
        ),
    ],
)
def test_operations_outside_of_stablehlo_have_rules(body: str, rule: str) -> None:
    found = rules_in(body)
    assert [None if each is None else rule_text(each) for each in found] == [rule]


Shapes = list[tuple[int, ...]]


def tensor_type(shape: Sequence[int]) -> ir.Type:
    return ir.Type.parse(tensor(shape))  # pyright: ignore[reportUnknownMemberType]


@pytest.mark.parametrize(
    ("annotation", "operands", "results", "keywords"),
    [
        ("i k, k j -> i j", [(4, 8), (8, 6)], [(4, 6)], {"reduction_factors": ("k",)}),
        ("... i k, ... k j -> ... i j", [(2, 3, 4, 8), (2, 3, 8, 6)], [(2, 3, 4, 6)], {}),
        ("...1 i, ...2 j -> ...1 i, ...2 j", [(5, 4), (8,)], [(5, 4), (8,)], {}),
        ("(i j) -> i j", [(32,)], [(4, 8)], {}),
        ("i (j k) -> k (l j)", [(3, 8)], [(4, 6)], {"j": 2, "l": 3}),
        (" -> row, col_2", [()], [(3,), (5,)], {"need_replication_factors": ("col_2",)}),
        ("a, a -> a", [(8,), (4,)], [(8,)], {"permutation_factors": ("a",)}),
    ],
)
def test_annotations_mean_what_they_mean_to_jax(
    annotation: str, operands: Shapes, results: Shapes, keywords: dict[str, Any]
) -> None:
    sizes = ", ".join(f"{name}={value}" for name, value in keywords.items() if isinstance(value, int))
    kinds = "".join(
        f" {name.removesuffix('_factors')}={{{', '.join(factors)}}}"
        for name, factors in keywords.items()
        if name.endswith("_factors")
    )
    ours = parse_annotation(f"{annotation} {{{sizes}}} {kinds}" if sizes else annotation + kinds)
    with make_ir_context():
        types = [[tensor_type(shape) for shape in shapes] for shapes in (operands, results)]
        theirs = str(sdy_sharding_rule_to_mlir(str_to_sdy_sharding_rule(annotation, **keywords), *types))
    assert f"#sdy.op_sharding_rule{rule_text(ours.rule(operands, results))}" == theirs


@pytest.mark.parametrize(("advice", "mistake"), [(advice, text) for advice in MISTAKES for text in MISTAKES[advice]])
def test_syntax_errors_in_annotations_give_advice(advice: str, mistake: str) -> None:
    with pytest.raises(AnnotationError) as raised:
        parse_annotation(mistake)
    assert str(raised.value).startswith(advice)


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        ("i (j k) -> i", "factor 'j' is never the only factor of a dimension"),
        ("i -> j {k=2}", "factor 'k' has a size, but is in no tensor"),
        ("i -> i {i=2}", "factor 'i' is the only factor of a dimension"),
        ("i i -> i", "'i' occurs twice in one tensor"),
        ("i -> i reduction={j}", "factor 'j' is in `reduction`, but in no tensor"),
        ("i -> i reduction={i} permutation={i}", "'i' is of more than one kind"),
        ("i -> i reduction={i} reduction={i}", "'reduction' is listed twice"),
        ("i j$ -> i", r"expected `->` or `,` or `\(` or `{` or a factor's name.*\ni j\$ -> i\n   \^"),
        ("i -> i reduction={i", r"expected `,` or `}`:\ni -> i reduction={i\n +\^"),
    ],
)
def test_errors_for_inconsistent_annotations(annotation: str, message: str) -> None:
    with pytest.raises(AnnotationError, match=message):
        parse_annotation(annotation)


@pytest.mark.parametrize(
    ("annotation", "operands", "results", "message"),
    [
        ("i -> i", [(4,), (4,)], [(4,)], r"the annotation has 1 operand\(s\), the operation 2"),
        ("i j -> i", [(4,)], [(4,)], r"operand 0 has 2 dimension\(s\) in the annotation, but is of rank 1"),
        ("... -> ...", [(4,)], [(5,)], "an ellipsis stands for dimensions"),
        ("(i j) -> i j", [(30,)], [(4, 8)], r"dimension 0 of operand 0 is 30, but the product of \(i=4 j=8\) is 32"),
    ],
)
def test_errors_for_annotations_that_do_not_match(
    annotation: str, operands: Shapes, results: Shapes, message: str
) -> None:
    with pytest.raises(AnnotationError, match=message):
        parse_annotation(annotation).rule(operands, results)
