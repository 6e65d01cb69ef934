// RUN: sdy-opt %s -sdy-per-instruction-partitioning='filter=if' -verify-diagnostics
// RUN: not sdy-opt %s -sdy-per-instruction-partitioning='filter=selectLow=x' 2>&1 | filecheck %s

// CHECK: invalid operation filter 'selectLow=x': expected selectLow=N, selectHigh=N or a name

sdy.mesh @mesh = <["x"=2]>

func.func @region(%arg0: tensor<i1>, %arg1: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // expected-warning @+1 {{'stablehlo.if' op cannot be partitioned on its own: its regions capture values}}
  %0 = "stablehlo.if"(%arg0) ({
    stablehlo.return %arg1 : tensor<4xf32>
  }, {
    stablehlo.return %arg1 : tensor<4xf32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<i1>) -> tensor<4xf32>
  return
}
