"""Programs with one operation or attribute of the SDY dialect and one mistake, in generic and pretty form.

Each operation has a valid text in sections: properties, operands, types, regions. A mistake changes one section; pretty
forms are changed token by token. `cases()` yields all of them, over 40,000.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from mutated_texts import TOKEN

_T = "tensor<8x8xf32>"
_LOCAL = "tensor<2x8xf32>"
_SHARDING = '#sdy.sharding<@mesh, [{"x"}, {}]>'
_PER_VALUE = '#sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>'


def _sharding(dims: str) -> str:
    return f"#sdy.sharding<@mesh, [{dims}]>"


def _region(*operations: str, arguments: str = "", label: str = "^bb0") -> str:
    head = f"{label}({arguments}):\n" if arguments else ""
    return "{\n" + head + "".join(f"      {operation}\n" for operation in operations) + "    }"


def _body(type_: str) -> str:
    return _region(f'"sdy.return"(%x) : ({type_}) -> ()', arguments=f"%x: {type_}")


@dataclass(frozen=True)
class Operation:
    """An operation in generic form. `%a` is an argument, `%e` an edge's operand, `%r` has its rows sharded over "x"."""

    name: str
    operands: tuple[str, ...] = ("%a",)
    properties: dict[str, str] = field(default_factory=dict[str, str])
    operand_types: tuple[str, ...] = (_T,)
    result_types: tuple[str, ...] = (_T,)
    regions: tuple[str, ...] = ()
    attributes: dict[str, str] = field(default_factory=dict[str, str])

    def text(self) -> str:
        """Return the operation as text."""
        results = (
            "%q = " if len(self.result_types) == 1 else f"%q:{len(self.result_types)} = " if self.result_types else ""
        )
        properties = f" <{{{_dictionary(self.properties)}}}>" if self.properties else ""
        regions = f" ({', '.join(self.regions)})" if self.regions else ""
        attributes = f" {{{_dictionary(self.attributes)}}}" if self.attributes else ""
        types = f"({', '.join(self.operand_types)}) -> ({', '.join(self.result_types)})"
        return f'{results}"{self.name}"({", ".join(self.operands)}){properties}{regions}{attributes} : {types}'


def _dictionary(entries: dict[str, str]) -> str:
    return ", ".join(f"{key} = {value}" if value else key for key, value in entries.items())


def _collective(name: str, property_: str, value: str, after: str) -> Operation:
    return Operation(f"sdy.{name}", ("%r",), {property_: value, "out_sharding": _sharding(after)})


OPERATIONS = (
    Operation("sdy.constant", (), {"value": f"dense<1.0> : {_T}"}, ()),
    Operation("sdy.data_flow_edge", ("%e",), {"sharding": _SHARDING}),
    Operation("sdy.propagation_barrier", properties={"allowed_direction": "1 : i32"}),
    Operation("sdy.reshard", properties={"sharding": _SHARDING}),
    Operation("sdy.sharding_constraint", properties={"sharding": _SHARDING}),
    Operation("sdy.sharding_group", properties={"group_id": "3 : i64"}, result_types=()),
    Operation(
        "sdy.named_computation",
        properties={"name": '"f"', "in_shardings": _PER_VALUE, "out_shardings": _PER_VALUE},
        regions=(_body(_T),),
    ),
    Operation(
        "sdy.manual_computation",
        properties={"in_shardings": _PER_VALUE, "out_shardings": _PER_VALUE, "manual_axes": '#sdy<manual_axes{"x"}>'},
        regions=(_body(_LOCAL),),
    ),
    _collective("all_gather", "gathering_axes", '#sdy<list_of_axis_ref_lists[{"x"}, {}]>', "{}, {}"),
    _collective("all_reduce", "reduction_axes", '#sdy<axis_ref_list{"y"}>', '{"x"}, {}'),
    _collective("all_slice", "slicing_axes", '#sdy<list_of_axis_ref_lists[{}, {"y"}]>', '{"x"}, {"y"}'),
    _collective("all_to_all", "params", '#sdy<all_to_all_param_list[{"x"}: 0->1]>', '{}, {"x"}'),
    _collective("reduce_scatter", "reduce_scatter_axes", '#sdy<list_of_axis_ref_lists[{}, {"y"}]>', '{"x"}, {"y"}'),
    Operation("sdy.collective_permute", ("%r",), {"out_sharding": _sharding('{"y", "x":(1)2}, {}')}),
)

VALUES = (
    *("0 : i32", "1 : i32", "2 : i32", "3 : i32", "4 : i32", "7 : i32", "-1 : i32", "1 : i64", "-1 : i64", "1 : i1"),
    *("1", "true", "1 : index", "1 : si32", "1 : ui64", "9223372036854775807 : i64", "18446744073709551615 : i64"),
    *("3.5 : f32", '"x"', '"BOTH"', '""', "unit", "[]", "{}", "@foo", "@mesh::@x", "f32", "array<i64: 1>", "none"),
    *("dense<1> : tensor<3xi32>", "dense<1.0> : tensor<8xf32>", "dense<> : tensor<0xf32>", "affine_map<(d0) -> (d0)>"),
    *("dense<1.0> : tensor<8x8xf64>", "dense<1.0> : vector<8xf32>", f"sparse<[[0, 0]], [1.0]> : {_T}", "array<i32>"),
    *(_SHARDING, _PER_VALUE, "#sdy.sharding_per_value<[]>", '[#sdy.sharding<@mesh, [{"x"}, {}]>]'),
    *(f"#sdy.sharding<@{mesh}, [{{}}, {{}}]>" for mesh in ("nowhere", "maximal", "other", "main")),
    *(_sharding(dims) for dims in ("", '{"x"}', '{"x"}, {"x"}', '{"q"}, {}', '{"x":(2)2}, {}', '{"x":(3)2}, {}')),
    *(_sharding(dims) for dims in ('{"x", ?}, {?}', '{"y", "x"}, {}', "{}, {}, {}", '{"x"}p1, {}', '{"x":(1)2}, {}')),
    *(f"#sdy.sharding_per_value<[<@mesh, [{dims}]>]>" for dims in ("{}, {}", '{"y"}, {}', '{"x"}', '{"q"}, {}')),
    '#sdy.sharding<mesh<["x"=4]>, [{"x"}, {}]>',
    '#sdy.sharding<@mesh, [{}, {}], replicated={"x"}>',
    '#sdy.sharding<@mesh, [{"x"}, {}], replicated={"x"}>',
    '#sdy.sharding<@mesh, [{}, {}], unreduced={"x"}>',
    '#sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, <@mesh, [{}, {}]>]>',
    *(f"#sdy<manual_axes{{{axes}}}>" for axes in ('"x"', "", '"y"', '"q"', '"x", "x"', '"x", "y"', '"y", "x"')),
    *(f"#sdy<axis_ref_list{{{axes}}}>" for axes in ('"x"', "", '"q"', '"y"', '"y", "y"', '"x":(1)2', '"y", "x"')),
    *(f"#sdy<list_of_axis_ref_lists[{lists}]>" for lists in ('{"z"}', '{"x"}, {}', '{}, {"y"}', "", '{"y"}, {"y"}')),
    *(f"#sdy<all_to_all_param_list[{all_}]>" for all_ in ("", '{"x"}: 0->0', '{"y"}: 0->1', "{}: 0->1", '{"x"}: 0->2')),
    *('#sdy<all_to_all_param{"x"}: 0->1>', '#sdy<axis_ref"x">', "#sdy<dim_mapping i>", '#sdy<mesh_axis"x"=2>'),
    *('#sdy.mesh<["q"=2]>', "#sdy<tensor_mapping[i]>", "#sdy.op_sharding_rule<([i])->([i]) {i=8}>", "loc(unknown)"),
    *("#sdy<sub_axis_info(2)4>", '#sdy<dimension_sharding{"x"}>', "#stablehlo<precision DEFAULT>", "#nowhere.x"),
)
"""Properties of every kind: valid for some operation, of a wrong kind or value for the others."""

TYPES = (
    *("tensor<8x8xf64>", "tensor<8xf32>", "tensor<8x8x1xf32>", "tensor<2x8xf32>", "tensor<?x8xf32>", "tensor<*xf32>"),
    *(
        "f32",
        "i32",
        "none",
        "index",
        "!stablehlo.token",
        "tuple<tensor<8x8xf32>>",
        "memref<8x8xf32>",
        "vector<8x8xf32>",
    ),
    *("tensor<f32>", "tensor<0x8xf32>", "complex<f32>", "(i32) -> i32", "tensor<8x8xi1>", "tensor<8x8xf32, 1 : i32>"),
)

_END = '"sdy.return"(%x)'


def _bodies(type_: str) -> Iterator[str]:
    """Return wrong regions with an argument of this type."""
    argument = f"%x: {type_}"
    end = f"{_END} : ({type_}) -> ()"
    negate = f'%n = "stablehlo.negate"(%x) : ({type_}) -> {type_}'
    yield from ("{\n}", _region(end.replace("(%x)", "()").replace(f"({type_})", "()")))
    for operations in (
        (),
        (negate,),
        (end, negate),
        (end, end),
        (end.replace("sdy.return", "stablehlo.return"),),
        (end.replace("sdy.return", "func.return"),),
        ('"sdy.return"() : () -> ()',),
        (f'"sdy.return"(%x, %x) : ({type_}, {type_}) -> ()',),
        (f'"sdy.return"(%a) : ({_T}) -> ()',),
        (
            '%n = "stablehlo.constant"() <{value = dense<1.0> : tensor<8xf32>}> : () -> tensor<8xf32>',
            '"sdy.return"(%n) : (tensor<8xf32>) -> ()',
        ),
        (f'"sdy.return"(%x) <{{a = 1}}> : ({type_}) -> ()',),
        (f'"sdy.return"(%x) {{sdy.sharding = 1 : i32}} : ({type_}) -> ()',),
        (f'%n = "sdy.return"(%x) : ({type_}) -> {type_}',),
        (f'"sdy.return"(%x)[^bb0] : ({type_}) -> ()',),
        (f'"sdy.return"(%x) ({{\n}}) : ({type_}) -> ()',),
        ('"sdy.mesh"() <{mesh = #sdy.mesh<["x"=4]>, sym_name = "m"}> : () -> ()', end),
        (f'%n = "sdy.data_flow_edge"(%x) : ({type_}) -> {type_}', f'"sdy.return"(%n) : ({type_}) -> ()'),
        ('"cf.br"()[^bb1] : () -> ()', "^bb1:", end),
        (end, "^bb1:", f'"sdy.return"(%x) : ({type_}) -> ()'),
        (end, "^bb1:"),
    ):
        yield _region(*operations, arguments=argument)
    for arguments in (f"{argument}, %y: {type_}", "%x: tensor<8xf32>", "%x: f32", "%x: tensor<?x8xf32>"):
        yield _region(f'"sdy.return"(%x) : ({arguments.split("%x: ")[1].split(", %y")[0]}) -> ()', arguments=arguments)


def _mistakes(op: Operation) -> Iterator[Operation]:
    """Yield the operation with each mistake; some happen to be valid."""
    for key in op.properties:
        yield replace(op, properties={name: value for name, value in op.properties.items() if name != key})
        yield replace(
            op,
            properties={name: value for name, value in op.properties.items() if name != key},
            attributes={key: op.properties[key]},
        )
        for value in ("", *VALUES):
            yield replace(op, properties={**op.properties, key: value})
    yield replace(op, properties={}, attributes=op.properties)
    yield replace(op, properties={})
    for name, value in product(
        ("a", "sdy.sharding", "name", "sharding", "reduction_op"), ("1 : i32", _SHARDING, '"x"')
    ):
        yield replace(op, properties={**op.properties, name: value})
        yield replace(op, attributes={name: value})
    for name in ("sdy.sharding", "sdy.sharding_rule", "sdy.propagation_edges", "sdy.result_propagation_edges"):
        for value in VALUES:
            yield replace(op, attributes={name: value})
    for type_ in TYPES:
        for index in range(len(op.operand_types)):
            types = (*op.operand_types[:index], type_, *op.operand_types[index + 1 :])
            yield replace(op, operands=(f'%w"{type_}"',), operand_types=types)
            yield replace(
                op, operands=(f'%w"{type_}"',), operand_types=types, result_types=(type_,) * len(op.result_types)
            )
        for index in range(len(op.result_types)):
            yield replace(op, result_types=(*op.result_types[:index], type_, *op.result_types[index + 1 :]))
        yield replace(op, result_types=(*op.result_types, type_))
    yield replace(op, operands=(*op.operands, "%a"), operand_types=(*op.operand_types, _T))
    yield replace(op, operands=(), operand_types=())
    yield replace(op, operands=(*op.operands, "%a"))
    yield replace(op, operands=("%nowhere",))
    yield replace(op, result_types=())
    yield replace(op, result_types=(_T, _T))
    yield replace(op, regions=(*op.regions, "{\n}"))
    yield replace(op, regions=(*op.regions, _body(_T)))
    yield replace(op, regions=())
    if op.regions:
        for body in _bodies(_LOCAL if "manual" in op.name else _T):
            yield replace(op, regions=(body,))


def _program(operation: str, operand_type: str | None = None) -> str:
    other = f", %w: {operand_type}" if operand_type else ""
    return f"""sdy.mesh @mesh = <["x"=4, "y"=2]>
sdy.mesh @maximal = <[], device_ids=[1]>
sdy.mesh @other = <["z"=2]>
func.func @main(%a: {_T}{other}) {{
  %e = stablehlo.optimization_barrier %a : {_T}
  %r = sdy.reshard %a <@mesh, [{{"x"}}, {{}}]> : {_T}
  {operation}
  return
}}
"""


def _generic_programs() -> Iterator[tuple[str, str]]:
    for op in OPERATIONS:
        for number, changed in enumerate((op, *_mistakes(op))):
            text, type_ = changed.text(), None
            if '%w"' in text:
                type_ = text.split('%w"')[1].split('"')[0]
                text = text.replace(f'%w"{type_}"', "%w")
            yield f"{op.name} {number}", _program(text, type_)


_PRETTY = {
    "sdy.constant": f"%q = sdy.constant dense<1.0> : {_T}",
    "sdy.constant with an attribute": f"%q = sdy.constant {{a = 1 : i32}} dense<1.0> : {_T}",
    "sdy.data_flow_edge": f'%q = sdy.data_flow_edge %e sharding=<@mesh, [{{"x"}}, {{?}}]> : {_T}',
    "sdy.propagation_barrier": f"%q = sdy.propagation_barrier %a allowed_direction=FORWARD : {_T}",
    "sdy.reshard": f'%q = sdy.reshard %a <@mesh, [{{"x"}}, {{}}]> : {_T}',
    "sdy.sharding_constraint": (
        f'%q = sdy.sharding_constraint %a <@mesh, [{{"x":(1)2, ?}}p1, {{?}}], replicated={{"y"}}> : {_T}'
    ),
    "sdy.sharding_group": f"sdy.sharding_group %a group_id=3 : {_T}",
    "sdy.named_computation": (
        '%q = sdy.named_computation<"f">(%a) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{}, {}]>] '
        f"(%x: {_T}) {{\n      sdy.return %x : {_T}\n    }} : ({_T}) -> {_T}"
    ),
    "sdy.manual_computation": (
        '%q = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] '
        f'manual_axes={{"x"}} (%x: {_LOCAL}) {{\n      sdy.return %x : {_LOCAL}\n    }} : ({_T}) -> {_T}'
    ),
    "sdy.all_gather": f'%q = sdy.all_gather [{{"x"}}, {{}}] %r out_sharding=<@mesh, [{{}}, {{}}]> : {_T}',
    "sdy.all_slice": f'%q = sdy.all_slice [{{}}, {{"y"}}] %r out_sharding=<@mesh, [{{"x"}}, {{"y"}}]> : {_T}',
    "sdy.all_reduce": f'%q = sdy.all_reduce {{"y"}} %r out_sharding=<@mesh, [{{"x"}}, {{}}]> : {_T}',
    "sdy.all_to_all": f'%q = sdy.all_to_all [{{"x"}}: 0->1] %r out_sharding=<@mesh, [{{}}, {{"x"}}]> : {_T}',
    "sdy.reduce_scatter": f'%q = sdy.reduce_scatter [{{}}, {{"y"}}] %r out_sharding=<@mesh, [{{"x"}}, {{"y"}}]> : {_T}',
    "sdy.collective_permute": f'%q = sdy.collective_permute %r out_sharding=<@mesh, [{{"y", "x":(1)2}}, {{}}]> : {_T}',
    "sdy.mesh": 'sdy.mesh @m = <["x"=4, "y"=2], device_ids=[0, 2, 4, 6, 1, 3, 5, 7]>',
    "sdy.return": f"sdy.return %a : {_T}",
}

_TOKENS = (
    *("x", "1", '"s"', '"x"', "@foo", "%a", "{", "}", "<", ">", "[", "]", "(", ")", ":", "=", ",", "?", "-1", "f32"),
    *(
        "18446744073709551615",
        "18446744073709551616",
        "9223372036854775808",
        "i32",
        "tensor<*xf32>",
        "!stablehlo.token",
    ),
    *("forward", "BOTH", "true", "1.5", "#sdy.mesh", _SHARDING, "->", "replicated", "^bb0", "tensor<?xf32>", "@mesh"),
)


def _pretty_programs() -> Iterator[tuple[str, str]]:
    """Yield pretty forms with one token dropped, doubled or replaced."""
    for name, text in _PRETTY.items():
        yield name, _place(name, text)
        for match in TOKEN.finditer(text):
            start, end = match.span()
            for number, token in enumerate(("", f"{match[0]} {match[0]}", *_TOKENS)):
                yield f"{name} {start} {number}", _place(name, text[:start] + token + text[end:])


def _place(name: str, text: str) -> str:
    if name != "sdy.mesh":
        return _program(text)
    return f"{text}\nfunc.func @main() {{\n  return\n}}\n"


ATTRIBUTES = (
    *('mesh<["x"=4]>', 'sharding<@mesh, [{"x":(1)2, ?}p1]>', 'sharding_per_value<[<@mesh, [{"x"}]>]>'),
    "op_sharding_rule<([i, jk])->([i, j]) {i=8, j=8, k=2} reduction={k}, custom>",
    *('mesh_axis"x"=4', "sub_axis_info(2)4", 'axis_ref"x":(2)4', 'axis_ref_list{"x", "y"}', 'manual_axes{"x", "y"}'),
    *('list_of_axis_ref_lists[{"x"}, {}]', 'dimension_sharding{"x", ?}p1', "dim_mapping ij", "tensor_mapping[i, jk]"),
    *('all_to_all_param{"x"}: 0->1', 'all_to_all_param_list[{"x"}: 0->1]', "edge_value_ref operand-0"),
    'axis_to_propagation_details{"x" = operand-0 -> [result-0]}',
    'propagation_one_step{step-0 = [{"x" = operand-0 -> [result-0]}]}',
    'propagation_edges<[{step-0 = [{"x" = operand-0 -> [result-0]}]}]>',
)
"""The attributes of the dialect, without `#sdy` and outer brackets."""


def _attribute_programs() -> Iterator[tuple[str, str]]:
    """Yield every attribute alone, in both syntaxes, and with one token changed."""
    for attribute in ATTRIBUTES:
        changed = [attribute]
        for match in TOKEN.finditer(attribute):
            start, end = match.span()
            changed += [
                attribute[:start] + token + attribute[end:] for token in ("", f"{match[0]} {match[0]}", *_TOKENS)
            ]
        word = TOKEN.match(attribute)
        assert word is not None
        rest = attribute[word.end() :]
        spellings = [f"#sdy<{text}>" for text in changed] + [f"#sdy.{text}" for text in changed]
        spellings += [f"#sdy.{word[0]}<{rest.strip()}>", f"#sdy.{word[0]}{rest.strip()}", f"#sdy.{word[0]} {rest}"]
        for number, spelling in enumerate(spellings):
            yield f"{word[0]} {number}", f"func.func @main() attributes {{a = {spelling}}} {{\n  return\n}}\n"


_COMPUTATION = 'sdy.named_computation<"f">() ()'
_MANUAL = "sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={} ()"


def _function(*lines: str) -> str:
    return "\n  ".join(("func.func @f(%i: tensor<i32>) {", *lines)) + "\n}\n"


_PLACES: Sequence[tuple[str, str]] = (
    ("at the top", "OP\n"),
    ("in a function", _function("OP", "return")),
    ("at the end of a function", _function("OP")),
    ("in a module", "module {\n  module {\n    OP\n  }\n}\n"),
    (
        "in a branch",
        _function('"stablehlo.case"(%i) ({', "  OP", "  stablehlo.return", "}) : (tensor<i32>) -> ()", "return"),
    ),
    ("at the end of a branch", _function('"stablehlo.case"(%i) ({', "  OP", "}) : (tensor<i32>) -> ()", "return")),
    ("in a computation", _function(f"{_COMPUTATION} {{", "  OP", "  sdy.return", "} : () -> ()", "return")),
    ("at the end of a computation", _function(f"{_COMPUTATION} {{", "  OP", "} : () -> ()", "return")),
    ("in a manual computation", _function(f"{_MANUAL} {{", "  OP", "  sdy.return", "} : () -> ()", "return")),
)
_PLACED = (
    *('sdy.mesh @m = <["x"=4]>', '"sdy.mesh"() <{mesh = #sdy.mesh<["x"=4]>, sym_name = "m"}> : () -> ()'),
    *("sdy.return", '"sdy.return"() : () -> ()', "sdy.return {a = 1 : i32}", "stablehlo.return", "func.return"),
    *("%c = sdy.constant dense<1> : tensor<i32>", 'sdy.named_computation<"g">() () {\n sdy.return\n } : () -> ()'),
    'sdy.named_computation<"g">() () {\n } : () -> ()',
    f"{_MANUAL} {{\n }} : () -> ()",
    'sdy.named_computation<"g">() () {\n sdy.return\n sdy.return\n } : () -> ()',
    'sdy.named_computation<"g">() () {\n sdy.return\n ^bb1:\n sdy.return\n } : () -> ()',
    'sdy.named_computation<"g">() () {\n stablehlo.return\n } : () -> ()',
)


def _placed_programs() -> Iterator[tuple[str, str]]:
    """Yield operations in every kind of block."""
    for (place, around), op in product(_PLACES, _PLACED):
        yield f"{op} {place}", around.replace("OP", op)


def cases() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each program."""
    for part in (_generic_programs(), _placed_programs(), _attribute_programs(), _pretty_programs()):
        yield from part
