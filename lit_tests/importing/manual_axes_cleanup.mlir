// RUN: sdy-opt %s -sdy-manual-axes-cleanup | filecheck %s

sdy.mesh @mesh = <["a"=2, "b"=2]>
sdy.mesh @empty_mesh = <[]>

func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK:      sdy.manual_computation(%arg0, %arg1)
  // CHECK-SAME:   in_shardings=[<@mesh, [{"b"}], replicated={"a"}>, <@mesh, [{}], replicated={"a", "b"}>]
  // CHECK-SAME:   out_shardings=[<@mesh, [{"a"}], replicated={"b"}>] manual_axes={"a", "b"}
  %0 = sdy.manual_computation(%arg0, %arg1)
      in_shardings=[<@mesh, [{"b"}]>, <@empty_mesh, [{}]>] out_shardings=[<@mesh, [{"a"}]>]
      manual_axes={"b", "a"} (%arg2: tensor<4xf32>, %arg3: tensor<8xf32>) {
    sdy.return %arg2 : tensor<4xf32>
  } : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
