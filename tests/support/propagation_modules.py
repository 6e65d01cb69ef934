"""Small modules by subject, which cover every operation and attribute that can carry a sharding."""

_MESH = 'sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>\n'


def _main(body: str, arguments: str, results: str = "tensor<8x8xf32>", mesh: str = _MESH) -> str:
    return f"{mesh}func.func @main({arguments}) -> ({results}) {{\n{body}\n}}\n"


_X = '%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>}'
_Y = '%y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>}'
_XY = f"{_X}, {_Y}"

MODULES: dict[str, str] = {
    "chain": _main(
        """
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
    : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.tanh %0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>""",
        _XY,
    ),
    "func result": _main(
        """
  %0 = stablehlo.add %x, %x : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>""",
        "%x: tensor<8x8xf32>",
        'tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}',
    ),
    "priorities": _main(
        """
  %0 = stablehlo.add %x, %y : tensor<8x8xf32>
  %1 = stablehlo.multiply %0, %z : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>""",
        '%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}p1, {?}]>},'
        '%y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a"}p0]>},'
        '%z: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", "c"}p2, {?}], replicated={"a"}>}',
    ),
    "while": _main(
        """
  %c = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<9> : tensor<i32>
  %0:2 = stablehlo.while(%i = %c, %v = %x) : tensor<i32>, tensor<8x8xf32>
  cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %1 = stablehlo.add %v, %y : tensor<8x8xf32>
    stablehlo.return %i, %1 : tensor<i32>, tensor<8x8xf32>
  }
  return %0#1 : tensor<8x8xf32>""",
        _XY,
    ),
    "while with edges": _main(
        """
  %c = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<9> : tensor<i32>
  %0:3 = stablehlo.while(%i = %c, %v = %x, %w = %x) : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>
  cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %1 = stablehlo.add %v, %y : tensor<8x8xf32>
    %t = stablehlo.transpose %w, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
    stablehlo.return %i, %1, %t : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>
  }
  %2 = sdy.data_flow_edge %0#0 : tensor<i32>
  %3 = sdy.data_flow_edge %0#1 sharding=<@mesh, [{?}, {"c", ?}]> : tensor<8x8xf32>
  %4 = sdy.data_flow_edge %0#2 : tensor<8x8xf32>
  %5 = stablehlo.tanh %3 : tensor<8x8xf32>
  return %5 : tensor<8x8xf32>""",
        _XY,
    ),
    "case": _main(
        """
  %0 = "stablehlo.case"(%i) ({
    stablehlo.return %x : tensor<8x8xf32>
  }, {
    stablehlo.return %y : tensor<8x8xf32>
  }) : (tensor<i32>) -> tensor<8x8xf32>
  %1 = sdy.data_flow_edge %0 : tensor<8x8xf32>
  %2 = stablehlo.tanh %1 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>""",
        f"%i: tensor<i32>, {_XY}",
    ),
    "optimization barrier": _main(
        """
  %0:2 = stablehlo.optimization_barrier %x, %y : tensor<8x8xf32>, tensor<8x8xf32>
  %1 = sdy.data_flow_edge %0#0 : tensor<8x8xf32>
  %2 = sdy.data_flow_edge %0#1 sharding=<@mesh, [{}, {?}]> : tensor<8x8xf32>
  %3 = stablehlo.add %1, %2 : tensor<8x8xf32>
  return %3 : tensor<8x8xf32>""",
        _XY,
    ),
    "optimization barrier without edges": _main(
        """
  %0:2 = stablehlo.optimization_barrier %x, %y : tensor<8x8xf32>, tensor<8x8xf32>
  %3 = stablehlo.add %0#0, %0#1 : tensor<8x8xf32>
  return %3 : tensor<8x8xf32>""",
        _XY,
    ),
    "propagation barriers": _main(
        """
  %0 = sdy.propagation_barrier %x allowed_direction=NONE : tensor<8x8xf32>
  %1 = sdy.propagation_barrier %y allowed_direction=FORWARD : tensor<8x8xf32>
  %2 = sdy.propagation_barrier %z allowed_direction=BACKWARD : tensor<8x8xf32>
  %3 = stablehlo.add %0, %1 : tensor<8x8xf32>
  %4 = stablehlo.add %3, %2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"c"}, {?}]>]>} : tensor<8x8xf32>
  return %4 : tensor<8x8xf32>""",
        f"{_XY}, %z: tensor<8x8xf32>",
    ),
    "manual computation": _main(
        """
  %0 = stablehlo.add %x, %x : tensor<8x8xf32>
  %1 = sdy.manual_computation(%0, %y) in_shardings=[<@mesh, [{"c", ?}, {?}]>, <@mesh, [{"c"}, {?}]>]
      out_shardings=[<@mesh, [{"c", ?}, {?}]>] manual_axes={"c"} (%p: tensor<4x8xf32>, %q: tensor<4x8xf32>) {
    %2 = sdy.data_flow_edge %p sharding=<@mesh, [{?}, {?}]> : tensor<4x8xf32>
    %3 = sdy.data_flow_edge %q sharding=<@mesh, [{}, {?}]> : tensor<4x8xf32>
    %4 = stablehlo.add %2, %3 : tensor<4x8xf32>
    sdy.return %4 : tensor<4x8xf32>
  } : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %5 = sdy.data_flow_edge %1 sharding=<@mesh, [{"c", ?}, {?}]> : tensor<8x8xf32>
  %6 = stablehlo.tanh %5 : tensor<8x8xf32>
  return %6 : tensor<8x8xf32>""",
        _XY,
        'tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"c", "a"}, {"b"}]>}',
    ),
    "named computation": _main(
        """
  %0 = sdy.named_computation<"f">(%x) in_shardings=[<@mesh, [{?}, {"c", ?}]>] out_shardings=[<@mesh, [{?}, {?}]>]
      (%p: tensor<8x8xf32>) {
    %1 = sdy.data_flow_edge %p sharding=<@mesh, [{?}, {"c", ?}]> : tensor<8x8xf32>
    %2 = stablehlo.tanh %1 : tensor<8x8xf32>
    sdy.return %2 : tensor<8x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = sdy.data_flow_edge %0 sharding=<@mesh, [{?}, {?}]> : tensor<8x8xf32>
  %4 = stablehlo.add %3, %y : tensor<8x8xf32>
  return %4 : tensor<8x8xf32>""",
        _XY,
    ),
    "sharding group": _main(
        """
  sdy.sharding_group %x group_id=0 : tensor<8x8xf32>
  %0 = stablehlo.tanh %y : tensor<8x8xf32>
  %1 = stablehlo.abs %z : tensor<8x8xf32>
  sdy.sharding_group %1 group_id=0 : tensor<8x8xf32>
  sdy.sharding_group %0 group_id=1 : tensor<8x8xf32>
  %2 = stablehlo.add %0, %1 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>""",
        f"{_XY}, %z: tensor<8x8xf32>",
    ),
    "conflicting group": _main(
        """
  sdy.sharding_group %x group_id=0 : tensor<8x8xf32>
  sdy.sharding_group %y group_id=0 : tensor<8x8xf32>
  %2 = stablehlo.add %x, %y : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>""",
        _XY,
    ),
    "functions with edges": _MESH
    + f"""
func.func @main({_X}) -> tensor<8x8xf32> {{
  %0 = call @f(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.func_data_flow_edge %0 : tensor<8x8xf32>
  %2 = call @f(%1) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = sdy.func_data_flow_edge %2 : tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}}
func.func private @f(%p: tensor<8x8xf32>) -> tensor<8x8xf32> {{
  %0 = sdy.func_data_flow_edge %p : tensor<8x8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{{?}}, {{"b", ?}}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}}
""",
    "dead operations": _main(
        """
  %0 = stablehlo.tanh %x : tensor<8x8xf32>
  %1 = stablehlo.add %x, %y : tensor<8x8xf32>
  %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = stablehlo.multiply %2, %0 : tensor<8x8xf32>
  %4 = stablehlo.negate %x : tensor<8x8xf32>
  return %4 : tensor<8x8xf32>""",
        _XY,
    ),
    "a dead loop with a dead operation": _main(
        """
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %c, %z = %x) : tensor<i32>, tensor<8x8xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %z, %z : tensor<8x8xf32>
    stablehlo.return %i, %z : tensor<i32>, tensor<8x8xf32>
  }
  %2 = stablehlo.negate %x : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>""",
        _XY,
    ),
    "several results": _main(
        """
  %0:2 = stablehlo.custom_call @f(%x, %y) {sdy.sharding_rule = #sdy.op_sharding_rule<
      ([i, j], [j, k])->([i, l], [m, k]) {i=8, j=8, k=8, l=8, m=8}, custom>}
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
  %1 = stablehlo.add %0#0, %0#1 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>""",
        _XY,
    ),
    "tokens and unknown operations": _main(
        """
  %0 = stablehlo.create_token : !stablehlo.token
  %1 = stablehlo.optimization_barrier %0 : !stablehlo.token
  %2:2 = stablehlo.custom_call @unknown(%x, %1)
      : (tensor<8x8xf32>, !stablehlo.token) -> (tensor<8x8xf32>, !stablehlo.token)
  %3 = stablehlo.add %2#0, %y : tensor<8x8xf32>
  return %3 : tensor<8x8xf32>""",
        _XY,
    ),
    "several meshes": _main(
        """
  %0 = stablehlo.tanh %x : tensor<8x8xf32>
  %1 = stablehlo.add %0, %y : tensor<8x8xf32>
  %2 = stablehlo.tanh %y : tensor<8x8xf32>
  %3 = stablehlo.custom_call @g(%2) {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>}
      : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1, %3 : tensor<8x8xf32>, tensor<8x8xf32>""",
        f'{_X}, %y: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@other, [{{?}}, {{"z", ?}}]>}}',
        "tensor<8x8xf32>, tensor<8x8xf32>",
        _MESH + 'sdy.mesh @other = <["z"=8]>\nsdy.mesh @one = <[], device_ids=[3]>\nsdy.mesh @none = <[]>\n',
    ),
    "reshapes": _main(
        """
  %0 = stablehlo.reshape %x : (tensor<8x8xf32>) -> tensor<64xf32>
  %1 = stablehlo.reshape %0 : (tensor<64xf32>) -> tensor<2x4x8xf32>
  %2 = stablehlo.reshape %y : (tensor<8x8xf32>) -> tensor<16x4xf32>
  %3 = stablehlo.reshape %2 : (tensor<16x4xf32>) -> tensor<2x4x8xf32>
  %4 = stablehlo.add %1, %3 : tensor<2x4x8xf32>
  return %4 : tensor<2x4x8xf32>""",
        '%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {"c"}]>}, %y: tensor<8x8xf32>',
        "tensor<2x4x8xf32>",
    ),
}
