"""Operations for every corner case of MLIR's syntax of attributes, types and locations, printed as MLIR does."""

import random
import re
from typing import Any

import pytest

from oracle import oracle
from samples import covering
from sdy.diagnostics import DiagnosticError
from sdy.text import context, format, parse

FORMS: dict[str, Any] = {
    "custom": {},
    "generic": {"generic": True},
    "debuginfo": {"debuginfo": True},
    "generic-debuginfo": {"generic": True, "debuginfo": True},
    "local-scope": {"local_scope": True, "debuginfo": True},
}

TEXTS = {
    "affine_maps": """"a.b"() {
        spaces = [affine_map<() -> ()>, affine_map<()[s0] -> (s0)>, affine_map<(i, j)[n] -> (j, n, i)>],
        semi = affine_map<(i, j)[n] -> (i ceildiv n, n * j, i mod n, i floordiv 3 * 2 + j)>,
        signs = affine_map<(i, j) -> (-i - j, -(i + j), 2 * (i + j) - 3, i - 2 * j, 0, -4, i * -1, i - (j + 1))>,
        sums = affine_map<(d0, d1) -> (d0 - (d0 floordiv 4) * 4, (d0 + 1) + 2 + d1, d0 + d0, 3 * d0 + d0 * 2, 3 + d0)>,
        quotients = affine_map<(d0) -> ((d0 * 8) floordiv 4, d0 floordiv 1, d0 ceildiv 1, 7 floordiv 2, -7 floordiv 2,
            7 ceildiv 2, (d0 * 4 + 3) floordiv 4, d0 * 4 ceildiv 2)>,
        remainders = affine_map<(d0) -> (d0 * 4 mod 2, d0 mod 1, -7 mod 4, d0 mod 8 mod 4, (d0 * 4 + 1) mod 4)>,
        trivial = affine_map<(d0) -> (d0 * 0, d0 + 0, d0 * 1)>,
        again = affine_map<()[n] -> (n)>
    } : () -> ()""",
    "affine_sets": """"a.b"() {a = affine_set<() : (1 >= 0)>, b = affine_set<(d0) : ()>,
        c = affine_set<(d0, d1)[s0] : (d0 == d1, d0 <= s0, d0 + 1 >= d1 * 2)>} : () -> ()""",
    "typed_strings": """"a.b"() {a = "x" : i64, b = ["y" : !stablehlo.token, "" : none],
        c = {"d e" = "\\22" : tensor<2xf32>}} : () -> ()""",
    "alias_order": """module attributes {m.b = affine_map<(d0) -> (d0)>, m.a = [affine_set<(d0) : (d0 >= 0)>]} {
        "a.b"() ({
            "a.c"() {a = affine_map<(d0) -> (d0 + 2)>} : () -> memref<4xf32, affine_map<(d0) -> (d0 + 3)>>
        }) {a = affine_map<(d0) -> (d0 + 4)>} : () -> memref<4xf32, affine_map<(d0) -> (d0 + 5)>>
    }""",
    "memrefs": """"a.b"() {a = memref<4xf32, strided<[?], offset: ?>, 3>,
        b = memref<4x4xf32, affine_map<(i, j) -> (i, j)>>,
        c = memref<*xf32>, d = memref<*xf32, 1>, e = memref<4xf32, 0>, f = memref<?x4xf32, strided<[4, 1]>>,
        g = memref<4xf32, "near">, h = memref<4x2xf32, affine_map<(i, j) -> (j, i)>>, i = memref<f32>,
        j = [strided<[1, ?], offset: 4>, strided<[]>, strided<[2], offset: ?>]} : () -> ()""",
    "vectors_and_tensors": """"a.b"() {a = vector<4xf32>, b = vector<[4]x2xf32>, c = vector<f32>, d = vector<4x[8]xi1>,
        e = tensor<*xf32>, f = tensor<?x2xf32>, g = tensor<0xi1>, h = tensor<2xf32, #foo.enc>, i = tensor<2xf32, "s">,
        j = tensor<2xf32, {a = 1}>, k = tensor<2xvector<2xf32>>, l = tensor<2xcomplex<i32>>, m = tensor<4xf32, 1>,
        n = tensor<2xf32, affine_map<(d0) -> (d0)>>, o = tensor<2x!foo.b<x>>} : () -> ()""",
    "tuples": f""""a.b"() {{a = tuple<>, b = tuple<tuple<i1, i2>, f32>, c = tuple<{", ".join(["i1"] * 16)}>,
        d = tuple<{", ".join(["i1"] * 17)}>, e = [tuple<tuple<{", ".join(["i2"] * 17)}>>]}} : () -> ()""",
    "functions": """"a.b"() {a = () -> (), b = (i1) -> i2, c = (i1) -> ((i1) -> i2), d = () -> (i1, i2),
        e = ((i1) -> (i2)) -> (), f = none} : () -> ()""",
    "symbols": """"a.b"() {a = @a, b = @a::@b::@c, c = @"a b"::@"c\\22d", d = @"1a", e = @"a.b$c-d", f = @a.b,
        g = @"\\C3\\A9"} : () -> ()""",
    "strings": """"a.b"() {a = "\\n\\t\\\\\\"\\00\\FF", b = "\\C3\\A9", "weird key" = 1, "x-y" = 2, x.y = "s", _a,
        a$b, "a\\22b"} : () -> ()""",
    "floats": """"a.b"() {a = 1.0 : f16, b = 0x7C00 : f16, d = 1.0e10 : f32, e = 1.5e300,
        f = 0.1 : f16, g = 3.0e-5 : f16,
        h = 0.1 : bf16, i = 65504.0 : f16, j = -0.0 : f16, m = 1.0 : tf32, n = 2.5 : f8E4M3FN, o = 0x80 : f8E4M3FNUZ,
        p = 0x7E : f8E5M2, q = 1.5 : f4E2M1FN, r = 2.0 : f8E8M0FNU, s = 1.25 : f6E2M3FN, t = 7.0 : f6E3M2FN,
        u = 1.0 : f8E3M4, v = 1.0 : f8E4M3, w = 1.0 : f8E5M2FNUZ, x = 1.0 : f8E4M3B11FNUZ} : () -> ()""",
    "integers": """"a.b"() {a = 1 : i1, b = true, c = -1 : i1, d = 255 : ui8, e = -128 : si8, f = 3 : i3, g = -1 : i3,
        h = 18446744073709551615 : ui64, i = -9223372036854775808 : i64, j = 5 : index, k = -5 : index, l = 0x10 : i32,
        m = 0xFF : i8, n = 255 : i8, o = 170141183460469231731687303715884105727 : i128} : () -> ()""",
    "dense": """"a.b"() {a = dense<1> : tensor<4xi4>, b = dense<[1, -2, 7]> : tensor<3xi4>,
        c = dense<"0x0F01"> : tensor<2xi4>, d = dense<(1, 2)> : tensor<complex<i32>>,
        e = dense<[(1.0, 2.0), (3.0, -0.0)]> : tensor<2xcomplex<f32>>,
        f = dense<[[(1, 2)], [(3, 4)]]> : tensor<2x1xcomplex<i8>>,
        g = dense<true> : tensor<i1>, h = dense<[true, false, true]> : tensor<3xi1>, i = dense<"0xFF"> : tensor<8xi1>,
        j = dense<[0x7F800000, 0xFFC00001, 1.0]> : tensor<3xf32>, k = dense<0x7FC0> : tensor<3xbf16>,
        l = dense<[-1, 1]> : tensor<2xindex>, m = dense<[255, 0]> : tensor<2xui8>,
        n = dense<[1.0, 2.0]> : vector<2xf64>,
        o = dense<> : tensor<2x0xf32>, p = dense<1.0> : tensor<0xf32>, q = dense<[1.5, 2.0, 0x7F]> : tensor<3xf8E4M3FN>,
        r = dense<"0x3F80"> : tensor<2xf8E5M2>, s = dense<[1, -1]> : tensor<2xi2>, t = dense<[3, 0]> : tensor<2xui2>,
        u = dense<[1.0, 0.5]> : tensor<2xf4E2M1FN>, v = dense<[-1, 3]> : tensor<2xi17>} : () -> ()""",
    "sparse": """"a.b"() {a = sparse<[[0, 1], [2, 3]], [1.0, 2.0]> : tensor<3x4xf32>, b = sparse<1, 2> : tensor<3xi32>,
        c = sparse<[[0], [1]], [5, 5]> : tensor<4xi8>, d = sparse<0, 1.0> : vector<3xf32>, e = sparse<> : tensor<2xf32>,
        f = sparse<[[0, 1]], [(1.0, 2.0)]> : tensor<2x2xcomplex<f32>>, g = sparse<[], []> : tensor<3xi1>} : () -> ()""",
    "arrays": """"a.b"() {
        a = array<i1: true, false>, b = array<i8>, c = array<i32: -1>, d = array<f32: 1.0, 0x7FC00000>,
        e = array<f64>, f = array<bf16: 1.5>, g = [], h = [[]], i = {}, j = [1 : i8, "x", @s, unit, {b}],
        k = {unit = unit, "a b" = 2}} : () -> ()""",
    "resources": """"a.b"() {a = dense_resource<blob> : tensor<2xf32>, b = dense_resource<"a b"> : tensor<3xi8>,
        c = dense_resource<unknown> : tensor<3xi8>} : () -> ()
        {-# dialect_resources: { builtin: {
            "a b": "0x01000000010203",
            blob: "0x040000000000803F00000040",
            unused: "0x040000000000803F00000040"
        } } #-}""",
    "unknown_dialects": """%0 = "a.op"() {
        a = !foo.bar, b = !foo.bar<a, "b>", [1], {x -> y}>, c = !foo<bar>, d = !foo<"x y">,
        e = !foo.bar<>, f = !foo<bar<1>>, g = #foo.attr, h = #foo.attr<1 : i32>, i = #foo<attr>, j = #foo<"s p">,
        k = #foo<a b c>, l = #foo.attr<  x   y >, m = !foo.a.b<c>, n = #foo.a.b.c} : () -> !foo.bar<x>
        "b.op"(%0) <{p = 1 : i32}> {q} : (!foo.bar<x>) -> ()""",
    "regions": """"x.z"() ({}, {^bb0: "a.b"() : () -> ()}, {^bb0(%x : i1):}, {
        ^a: "c.br"()[^b, ^b] : () -> ()
        ^b: "c.br"()[^c] {k = 1} : () -> ()
        ^c: "c.end"() : () -> () }) {z} : () -> ()""",
    "modules": """"builtin.module"() <{sym_name = "a b", sym_visibility = "private"}> ({
        module @inner { } module {} }) {mhlo.a} : () -> ()""",
    "properties that forms have no words for": """"func.func"() <{function_type = () -> f32, sym_name = "f"}> ({
          %0 = "func.call"() <{callee = @f, no_inline}> {mhlo.a} : () -> f32
          %1 = "func.call"() <{callee = @f, arg_attrs = [], no_inline, res_attrs = [{mhlo.b = 1 : i32}]}> : () -> f32
          func.return %0 : f32 }) : () -> ()
        "func.func"() <{function_type = () -> (), sym_name = "g", no_inline, sym_visibility = "private"}> ({
        }) {mhlo.z, x.y = 1.0 : f32} : () -> ()""",
    "constants": """%0 = arith.constant dense<1> : vector<4xi32>
        %1 = arith.constant false
        %2 = arith.constant -1 : index
        %3 = arith.constant -1 : i8
        %4 = arith.cmpi slt, %3, %3 : i8
        %5 = arith.select %4, %3, %3 : i8
        %6 = arith.constant dense_resource<a> : tensor<2xf32>""",
    "tensors": """func.func @f(%a: tensor<4xf32>, %e: tensor<2x2xf32>, %i: index, %s: f32) {
        %0 = tensor.cast %a : tensor<4xf32> to tensor<?xf32>
        %1 = tensor.extract %a[%i] : tensor<4xf32>
        %2 = tensor.insert %s into %a[%i] : tensor<4xf32>
        %3 = tensor.dim %a, %i : tensor<4xf32>
        %4 = tensor.empty() : tensor<4xf32>
        %5 = tensor.extract_slice %a[0] [2] [1] : tensor<4xf32> to tensor<2xf32>
        %6 = tensor.insert_slice %5 into %a[0] [2] [1] : tensor<2xf32> into tensor<4xf32>
        %7 = tensor.collapse_shape %e [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>
        %8 = tensor.from_elements %s, %s : tensor<2xf32>
        %9 = tensor.splat %s : tensor<4xf32>
        %10 = tensor.expand_shape %a [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>
        %11 = tensor.concat dim(0) %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
        %12 = tensor.pad %a low[1] high[1] {
        ^bb0(%k: index):
          tensor.yield %s : f32
        } : tensor<4xf32> to tensor<6xf32>
        %13 = math.absf %a : tensor<4xf32>
        %14 = arith.mulf %a, %a fastmath<fast> : tensor<4xf32>
        return
    }""",
    "locations": """#a = loc("A":1:2 to 3:4)
module @m attributes {a.name = loc("x"), a.range = loc("f":1:2 to :7), a.unknown = loc(unknown)} {
  "a.b"() {m = affine_map<(d0, d1) -> (d1)>, n = [affine_map<(d0) -> (d0)>]} : () -> ()
    loc(fused<affine_map<(d0) -> (d0)>>["a", "f":1:2 to :2, #a, unknown])
  "a.c"() ({^bb0(%x: i32 loc("w"(#a))): }) : () -> () loc("n"("x":3:4))
  "a.d"() : () -> () loc("n"(unknown))
  "a.e"() : () -> () loc(callsite("n" at fused["m", "k", fused["l", "m"]]))
  "a.f"() : () -> () loc("file":12)
  "a.g"() : () -> () loc(fused[unknown, "x"])
  "a.h"() : () -> () loc(fused<[1, 2, {a = affine_map<(d0) -> (d0)>}]>["x"])
  "a.i"() : () -> () loc("file":12:3 to 12:3)
  "a.j"() : () -> () loc("file":12:3 to 12:7)
  "a.k"() : () -> () loc("fi\\22le")
  "a.l"() : () -> ()
}""",
}


@covering
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", TEXTS)
def test_prints_what_mlir_prints(name: str, form: str):
    printed = format(parse(TEXTS[name], "-", context(allow_unregistered=True)), **FORMS[form])
    expected = oracle(TEXTS[name], **FORMS[form])
    if name == "resources" and form == "local-scope":  # if MLIR does not print resources, they are lost
        printed = printed[: printed.index("\n{-#")]
    assert printed.rstrip() == expected.rstrip()


PROPERTIES = """module MODULE_SET_APART attributes {mhlo.aMODULE_AMONG} {
  func.func @f() attributes {FUNCTION} {
    call @f()CALL : () -> ()
    return
  }
}
"""
PRINTED_FOR = {
    "0.10": {
        "MODULE_SET_APART ": "",
        "MODULE_AMONG": ', sym_visibility = "private"',
        "FUNCTION": "no_inline, x.y",
        "CALL": " {mhlo.b, no_inline}",
    },
    "0.11.2": {
        "MODULE_SET_APART ": "",
        "MODULE_AMONG": ', sym_visibility = "private"',
        "FUNCTION": "x.y, no_inline",
        "CALL": " {mhlo.b, no_inline}",
    },
    "0.12.0.1": {
        "MODULE_SET_APART": '<sym_visibility = "private">',
        "MODULE_AMONG": "",
        "FUNCTION": "x.y, no_inline",
        "CALL": " <no_inline> {mhlo.b}",
    },
}


def printed_for(version: str) -> str:
    return re.sub("|".join(PRINTED_FOR[version]), lambda word: PRINTED_FOR[version][word[0]], PROPERTIES)


@pytest.mark.parametrize("source", PRINTED_FOR)
@pytest.mark.parametrize("version", PRINTED_FOR)
def test_the_text_of_each_version_of_jaxlib_is_read_and_printed(version: str, source: str):
    assert format(parse(printed_for(source)), for_jaxlib=version) == printed_for(version)


@pytest.mark.parametrize("properties", ["<no_inline>", "<{no_inline}>", "<no_inline = unit>", "<{}>", "<>"])
def test_properties_in_angle_brackets_are_read(properties: str):
    text = f"func.func @f() {{\n  call @f() {properties} : () -> ()\n  return\n}}"
    assert ("no_inline" in format(parse(text))) == ("no_inline" in properties)


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ("<no_inline, no_inline>", "duplicate or unknown property in properties dictionary: no_inline"),
        ("<callee = @g>", "duplicate or unknown property in properties dictionary: callee"),
        ("<arg_attrs>", "expected '='|'=' expected"),
        ('<no_inline = "a">', "invalid kind of attribute specified"),
        ("<{no_inline>", "'}' expected|expected '}'"),
    ],
)
def test_wrong_properties_in_angle_brackets_are_refused(properties: str, problem: str):
    with pytest.raises(DiagnosticError, match=problem):
        parse(f"func.func @f() {{\n  call @f() {properties} : () -> ()\n  return\n}}")


def test_a_sum_is_named_for_the_versions_that_know_other_reductions():
    module = parse("""
      sdy.mesh @mesh = <["x"=2]>
      func.func @f(%a: tensor<8xf32>) -> tensor<8xf32> {
        %0 = sdy.all_reduce {"x"} %a out_sharding=<@mesh, [{}]> : tensor<8xf32>
        %1 = sdy.all_reduce max {"x"} %0 out_sharding=<@mesh, [{}]> : tensor<8xf32>
        return %1 : tensor<8xf32>
      }""")
    named = {version: format(module, generic=True, for_jaxlib=version) for version in ("0.10", "0.11")}
    assert [re.findall(r"reduction_op = (\d)", text) for text in named.values()] == [["1"], ["0", "1"]]
    for text in named.values():
        assert parse(text).is_structurally_equivalent(module)


@pytest.mark.parametrize("version", ["0.9", "1.0", "new", ""])
def test_a_version_that_is_not_known_is_refused(version: str):
    with pytest.raises(ValueError, match=r"known versions: 0\.10, 0\.11, 0\.12"):
        format(parse("module {}"), for_jaxlib=version)


_LEAVES = ("s0", "s1", "d0", "d1", "d0", "d1", "0", "1", "2", "4", "8", "(-3)")
_DIVISORS = ("1", "2", "4", "8", "3", "0", "(-2)", "s0", "(s1 + 1)")


def random_expression(source: random.Random, depth: int) -> str:
    if depth == 0:
        return source.choice(_LEAVES)
    left = random_expression(source, source.randrange(depth))
    match source.randrange(4):
        case 0:
            return f"-({left})"
        case 1:
            return f"({left} * {source.choice(_DIVISORS)})"
        case 2:
            return f"({left} {source.choice(('floordiv', 'ceildiv', 'mod'))} {source.choice(_DIVISORS)})"
        case _:
            return f"({left} {source.choice('+-')} {random_expression(source, source.randrange(depth))})"


def test_affine_expressions_are_simplified_as_mlir_does():
    source = random.Random(0)
    entries = (
        f"a{number} = affine_map<(d0, d1)[s0, s1] -> ({random_expression(source, 5)})>" for number in range(1000)
    )
    text = f'"a.b"() {{{", ".join(entries)}}} : () -> ()'
    printed = format(parse(text, "-", context(allow_unregistered=True)), local_scope=True)
    expected = oracle(text, local_scope=True)
    assert re.findall(r"a\d+ = affine_map<.*?\)>", printed) == re.findall(r"a\d+ = affine_map<.*?\)>", expected)


def test_structured_operations_name_their_elements():
    text = """#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
module {
  func.func @f(%arg0: tensor<4x8xf32>, %arg1: tensor<4xf32>, %arg2: tensor<4x8xf32>) -> tensor<4xf32> {
    %0 = linalg.generic {indexing_maps = [#map, #map, #map1], iterator_types = ["parallel", "reduction"]} \
ins(%arg0, %arg2 : tensor<4x8xf32>, tensor<4x8xf32>) outs(%arg1 : tensor<4xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""
    assert format(parse(text)) == text
    assert format(parse(format(parse(text), generic=True))) == text


def test_large_constants_are_left_out():
    module = parse("module attributes {a.a = dense<[1, 2, 3]> : tensor<3xi8>, a.b = dense<1> : tensor<9xi8>} {}")
    assert "a.a = dense_resource<__elided__> : tensor<3xi8>, a.b = dense<1> : tensor<9xi8>" in format(
        module, most_elements=2
    )
    assert "a.a = dense<[1, 2, 3]>" in format(module, most_elements=3)


def test_a_resource_is_what_its_own_text_says():
    text = '"a.b"() {a = dense_resource<key> : tensor<1xi8>} : () -> ()'
    parse(text + '{-# dialect_resources: {builtin: {key: "0x0100000001"}} #-}', ctx=context(allow_unregistered=True))
    assert "{-#" not in format(parse(text, ctx=context(allow_unregistered=True)))


@pytest.mark.parametrize(
    ("literal", "message"),
    [
        (
            "sparse<[[5]], [1.0]> : tensor<3xf32>",
            "sparse index #0 is not contained within the value shape, with index=",
        ),
        ("sparse<[[1, 2]], [1.0]> : tensor<3xf32>", "expected shape ([3]); inferred shape of indices literal ([1, 2])"),
        ("sparse<[[1], [2]], [1.0]> : tensor<3xf32>", "inferred shape of values literal ([1])"),
        ("sparse<[[1]], [1.0]> : tensor<?xf32>", "elements literal type must have static shape"),
    ],
)
def test_elements_are_in_the_tensor(literal: str, message: str):
    with pytest.raises(DiagnosticError) as caught:
        parse(f"module attributes {{a.a = {literal}}} {{}}")
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (
            "d0 * d1",
            "non-affine expression: at least one of the multiply operands has to be either a constant or symbolic",
        ),
        ("d0 floordiv d1", "non-affine expression: right operand of floordiv has to be either a constant or symbolic"),
        ("d0 ceildiv d1", "non-affine expression: right operand of ceildiv has to be either a constant or symbolic"),
        ("d0 mod d1", "non-affine expression: right operand of mod has to be either a constant or symbolic"),
    ],
)
def test_an_expression_that_is_not_affine_is_refused(expression: str, message: str):
    with pytest.raises(DiagnosticError, match=message.replace("*", r"\*")):
        parse(f"module attributes {{a.a = affine_map<(d0, d1) -> ({expression})>}} {{}}")
