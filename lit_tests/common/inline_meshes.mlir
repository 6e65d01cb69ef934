// RUN: sdy-opt %s -sdy-inline-meshes | filecheck %s

// CHECK-NOT: sdy.mesh
sdy.mesh @mesh = <["x"=2]>

// CHECK: func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=2]>, [{"x"}]>})
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  // CHECK: sdy.reshard %arg0 <mesh<["x"=2]>, [{}]>
  %0 = sdy.reshard %arg0 <@mesh, [{}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}
