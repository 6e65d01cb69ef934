// RUN: sdy-opt %s -sdy-sharding-constraint-to-reshard | filecheck %s

sdy.mesh @mesh = <["x"=2]>

// CHECK-LABEL: func.func @main
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: %0 = sdy.reshard %arg0 <@mesh, [{"x"}]> {mhlo.tag = "kept"} : tensor<8xf32>
  // CHECK-NEXT: return %0
  %0 = sdy.sharding_constraint %arg0 <@mesh, [{"x"}]> {mhlo.tag = "kept"} : tensor<8xf32>
  return %0 : tensor<8xf32>
}
