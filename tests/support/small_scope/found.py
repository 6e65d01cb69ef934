"""Regression cases, which once were wrong, invalid, or refused."""


def _main(mesh: str, arguments: str, results: str, body: str) -> str:
    return f"sdy.mesh @mesh = <[{mesh}]>\nfunc.func @main({arguments}) -> ({results}) {{\n{body}\n}}"


FOUND = {
    "update of an uneven tensor": _main(
        '"x"=2, "y"=4',
        '%a: tensor<7x2xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}, %b: tensor<2x2xi32>, %i: tensor<i32>',
        "tensor<7x2xi32>",
        """
        %zero = stablehlo.constant dense<0> : tensor<i32>
        %0 = stablehlo.dynamic_update_slice %a, %b, %i, %zero
          : (tensor<7x2xi32>, tensor<2x2xi32>, tensor<i32>, tensor<i32>) -> tensor<7x2xi32>
        %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}, {"y"}]> : tensor<7x2xi32>
        return %1 : tensor<7x2xi32>""",
    ),
    "sub-axes in another order": _main(
        '"x"=6',
        "%a: tensor<3x12xi32>",
        'tensor<3x12xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}',
        """
        %0 = sdy.sharding_constraint %a <@mesh, [{"x":(2)3}, {"x":(1)2, ?}]> : tensor<3x12xi32>
        return %0 : tensor<3x12xi32>""",
    ),
    "sub-axes that nothing can be cut into": _main(
        '"x"=6',
        "%a: tensor<6xi32>",
        "tensor<6xi32>",
        """
        %0 = sdy.sharding_constraint %a <@mesh, [{"x":(1)2}]> : tensor<6xi32>
        %1 = stablehlo.not %0 : tensor<6xi32>
        %2 = sdy.sharding_constraint %1 <@mesh, [{"x":(3)2, "x":(1)3}]> : tensor<6xi32>
        return %2 : tensor<6xi32>""",
    ),
    "open and uneven, then replicated": _main(
        '"x"=4, "y"=2',
        "%a: tensor<3x6xi32>",
        "tensor<3x6xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}",
        """
        %0 = sdy.sharding_constraint %a <@mesh, [{"y", ?}, {"x"}]> : tensor<3x6xi32>
        return %0 : tensor<3x6xi32>""",
    ),
    "two uneven dimensions": _main(
        '"x"=2, "y"=2, "z"=2',
        "%a: tensor<7x2xi32>",
        "tensor<2x7xi32>",
        """
        %0 = sdy.sharding_constraint %a <@mesh, [{"z"}, {"x"}]> : tensor<7x2xi32>
        %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<7x2xi32>) -> tensor<2x7xi32>
        %2 = sdy.sharding_constraint %1 <@mesh, [{"x", "z"}, {"y"}]> : tensor<2x7xi32>
        return %2 : tensor<2x7xi32>""",
    ),
    "reverse beside another part of the axis": _main(
        '"x"=2, "y"=4',
        "%a: tensor<5x6xi32>",
        "tensor<5x6xi32>",
        """
        %0 = stablehlo.reverse %a, dims = [1] : tensor<5x6xi32>
        %1 = sdy.sharding_constraint %0 <@mesh, [{"y":(1)2}, {"x", "y":(2)2}]> : tensor<5x6xi32>
        return %1 : tensor<5x6xi32>""",
    ),
    "concatenation beside another part of the axis": _main(
        '"y"=4',
        "%a: tensor<5x4xi32>, %b: tensor<5x3xi32>",
        "tensor<5x7xi32>",
        """
        %0 = sdy.sharding_constraint %a <@mesh, [{"y":(1)2}, {"y":(2)2}]> : tensor<5x4xi32>
        %1 = sdy.sharding_constraint %b <@mesh, [{"y":(1)2}, {"y":(2)2}]> : tensor<5x3xi32>
        %2 = stablehlo.concatenate %0, %1, dim = 1 : (tensor<5x4xi32>, tensor<5x3xi32>) -> tensor<5x7xi32>
        %3 = sdy.sharding_constraint %2 <@mesh, [{"y":(1)2}, {"y":(2)2}]> : tensor<5x7xi32>
        return %3 : tensor<5x7xi32>""",
    ),
    "a convolution with only its result sharded": _main(
        '"x"=2',
        "%a: tensor<1x1x8xi32>, %k: tensor<1x1x5xi32>",
        "tensor<1x1x4xi32>",
        """
        %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {}
          {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
          : (tensor<1x1x8xi32>, tensor<1x1x5xi32>) -> tensor<1x1x4xi32>
        %1 = sdy.sharding_constraint %0 <@mesh, [{}, {}, {"x"}]> : tensor<1x1x4xi32>
        return %1 : tensor<1x1x4xi32>""",
    ),
    "uneven windows of a convolution without places": _main(
        '"x"=3',
        "%a: tensor<2x3x3xi32>, %k: tensor<1x3x4xi32>",
        "tensor<2x1x0xi32>",
        """
        %0 = sdy.sharding_constraint %a <@mesh, [{?}, {?}, {"x", ?}]> : tensor<2x3x3xi32>
        %1 = stablehlo.convolution(%0, %k) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [2],
            pad = [[-1, 1]], lhs_dilate = [2], rhs_dilate = [2]}
          {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
          : (tensor<2x3x3xi32>, tensor<1x3x4xi32>) -> tensor<2x1x0xi32>
        return %1 : tensor<2x1x0xi32>""",
    ),
    "features within groups, split unevenly": _main(
        '"x"=2, "y"=2, "z"=2',
        "%a: tensor<3x6x5xi32>, %k: tensor<2x3x1xi32>",
        "tensor<3x2x3xi32>",
        """
        %0 = sdy.sharding_constraint %a <@mesh, [{}, {"y", "z"}, {}]> : tensor<3x6x5xi32>
        %1 = stablehlo.not %0 : tensor<3x6x5xi32>
        %2 = stablehlo.convolution(%1, %k) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [3],
            pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64}
          : (tensor<3x6x5xi32>, tensor<2x3x1xi32>) -> tensor<3x2x3xi32>
        %3 = sdy.sharding_constraint %2 <@mesh, [{?}, {?}, {"x", "y", "z", ?}]> : tensor<3x2x3xi32>
        return %3 : tensor<3x2x3xi32>""",
    ),
    "more groups of batches than there are": _main(
        '"x"=2, "y"=2, "z"=2',
        "%a: tensor<2x2x3xi32>, %k: tensor<2x2x2xi32>",
        "tensor<1x2x2xi32>",
        """
        %0 = sdy.sharding_constraint %a <@mesh, [{"z", "x"}, {}, {}]> : tensor<2x2x3xi32>
        %1 = sdy.sharding_constraint %k <@mesh, [{"x", "y"}, {"z"}, {}]> : tensor<2x2x2xi32>
        %2 = stablehlo.convolution(%0, %1) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {}
          {batch_group_count = 2 : i64, feature_group_count = 1 : i64}
          : (tensor<2x2x3xi32>, tensor<2x2x2xi32>) -> tensor<1x2x2xi32>
        return %2 : tensor<1x2x2xi32>""",
    ),
    "other axes within a manual computation": _main(
        '"x"=2, "y"=2, "z"=2',
        "%a: tensor<2x2xi32>",
        "tensor<1x2xi32>",
        """
        %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"y"}, {"x"}]>] out_shardings=[<@mesh, [{}, {"x"}]>]
            manual_axes={"y"} (%p: tensor<1x2xi32>) {
          %1 = stablehlo.not %p {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : tensor<1x2xi32>
          %2 = sdy.sharding_constraint %1 <@mesh, [{}, {"z"}]> : tensor<1x2xi32>
          %3 = "stablehlo.all_reduce"(%2) <{replica_groups = dense<[[0, 2], [1, 3], [4, 6], [5, 7]]> : tensor<4x2xi64>,
              channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
          ^bb0(%b: tensor<i32>, %c: tensor<i32>):
            %4 = stablehlo.add %b, %c : tensor<i32>
            stablehlo.return %4 : tensor<i32>
          }) : (tensor<1x2xi32>) -> tensor<1x2xi32>
          sdy.return %3 : tensor<1x2xi32>
        } : (tensor<2x2xi32>) -> tensor<1x2xi32>
        return %0 : tensor<1x2xi32>""",
    ),
    "factors split by sub-axes that cannot coexist": _main(
        '"x"=6',
        "%a: tensor<4xi32>",
        "tensor<4xi32>",
        """
        %i = stablehlo.iota dim = 0 : tensor<4xi32>
        %0 = sdy.sharding_constraint %a <@mesh, [{"x":(1)2}]> : tensor<4xi32>
        %1 = sdy.sharding_constraint %i <@mesh, [{"x":(3)2}]> : tensor<4xi32>
        %2 = "stablehlo.gather"(%0, %1) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0],
            start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}>
          : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
        %3 = sdy.sharding_constraint %2 <@mesh, [{"x":(3)2}]> : tensor<4xi32>
        return %3 : tensor<4xi32>""",
    ),
    "a reshape between sub-axes that cannot coexist": _main(
        '"x"=6',
        "%a: tensor<6x2xi32>",
        "tensor<12xi32>",
        """
        %0 = sdy.sharding_constraint %a <@mesh, [{"x":(1)3}, {}]> : tensor<6x2xi32>
        %1 = stablehlo.reshape %0 : (tensor<6x2xi32>) -> tensor<12xi32>
        %2 = sdy.sharding_constraint %1 <@mesh, [{"x":(1)2}]> : tensor<12xi32>
        return %2 : tensor<12xi32>""",
    ),
    "an uneven reshape between sub-axes that cannot coexist": _main(
        '"x"=6',
        "%a: tensor<5x2xi32>",
        "tensor<10xi32>",
        """
        %0 = sdy.sharding_constraint %a <@mesh, [{"x":(1)3}, {"x":(3)2}]> : tensor<5x2xi32>
        %1 = stablehlo.not %0 : tensor<5x2xi32>
        %2 = stablehlo.reshape %1 : (tensor<5x2xi32>) -> tensor<10xi32>
        %3 = sdy.sharding_constraint %2 <@mesh, [{"x":(1)2}]> : tensor<10xi32>
        return %3 : tensor<10xi32>""",
    ),
    "a pad between sub-axes that cannot coexist": _main(
        '"x"=6',
        "%a: tensor<5x6xi32>, %b: tensor<i32>",
        "tensor<8x16xi32>",
        """
        %0 = sdy.sharding_constraint %a <@mesh, [{}, {"x":(1)3}]> : tensor<5x6xi32>
        %1 = stablehlo.not %0 : tensor<5x6xi32>
        %2 = stablehlo.pad %1, %b, low = [-2, 3], high = [-3, -3], interior = [2, 2]
          : (tensor<5x6xi32>, tensor<i32>) -> tensor<8x16xi32>
        %3 = sdy.sharding_constraint %2 <@mesh, [{"x":(1)2, ?}, {?}]> : tensor<8x16xi32>
        return %3 : tensor<8x16xi32>""",
    ),
    "a constant without elements": _main(
        '"x"=2',
        "",
        "tensor<0x3xi32>",
        """
        %0 = stablehlo.constant dense<> : tensor<0x3xi32>
        %1 = sdy.sharding_constraint %0 <@mesh, [{}, {"x"}]> : tensor<0x3xi32>
        return %1 : tensor<0x3xi32>""",
    ),
}
