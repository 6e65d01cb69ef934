// RUN: sdy-opt %s -sdy-nest-input-output-sub-axes | filecheck %s

sdy.mesh @mesh = <["x"=6, "y"=8]>

// The first argument splits "x" into 2 x 3; all sub-axes of "y" are compatible with 2 x 2 x 2.
// CHECK:      func.func @main(%arg0: tensor<24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}]>},
// CHECK-SAME:   %arg1: tensor<24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y":(4)2}]>})
// CHECK-SAME:   -> (tensor<24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(2)3}]>},
// CHECK-SAME:       tensor<24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y":(1)2}]>},
// CHECK-SAME:       tensor<24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
func.func @main(%arg0: tensor<24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}]>},
                %arg1: tensor<24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y":(4)2, "x":(1)3}]>})
    -> (tensor<24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(2)3}]>},
        tensor<24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y":(1)2}]>},
        tensor<24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  return %arg0, %arg1, %arg1 : tensor<24xf32>, tensor<24xf32>, tensor<24xf32>
}
