// RUN: sdy-opt %s -split-input-file -sdy-propagation-pipeline | filecheck %s
// RUN: sdy-opt %s -split-input-file -sdy-populate-op-sharding-rules | filecheck %s --check-prefix=RULE

sdy.mesh @mesh = <["data"=4, "model"=2]>

// The initial value of a result has the sharding of the result; the scalar that fills it has none.
// CHECK-LABEL: func.func @matmul
// CHECK-SAME:    -> (tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>})
// CHECK:         linalg.fill {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}]>]>}
// CHECK:         linalg.matmul {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}]>]>}
// CHECK:         math.tanh %{{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}]>]>}

// RULE-LABEL: func.func @matmul
// RULE:         linalg.fill {sdy.sharding_rule = #sdy.op_sharding_rule<([], [i, j])->([i, j]) {i=8, j=32}>}
// RULE:         linalg.matmul {sdy.sharding_rule = #sdy.op_sharding_rule<([i, k], [k, j], [i, j])->([i, j]) {i=8, j=32, k=16} reduction={k}>}
// RULE:         math.tanh %{{.*}} {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=32}>}
func.func @matmul(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
                  %w: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}) -> tensor<8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x32xf32>) -> tensor<8x32xf32>
  %y = linalg.matmul ins(%x, %w : tensor<8x16xf32>, tensor<16x32xf32>) outs(%init : tensor<8x32xf32>)
      -> tensor<8x32xf32>
  %z = math.tanh %y : tensor<8x32xf32>
  return %z : tensor<8x32xf32>
}

// -----

sdy.mesh @mesh = <["data"=4, "model"=2]>

// The broadcast maximum or sum of each row has the sharding of the rows.
// CHECK-LABEL: func.func @softmax
// CHECK-SAME:    -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>})
// CHECK:         "linalg.reduce"(%arg0, %{{.*}}) <{dimensions = array<i64: 1>}>
// CHECK:         {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>]>} : (tensor<8x16xf32>, tensor<8xf32>) -> tensor<8xf32>
// CHECK:         "linalg.broadcast"
// CHECK:         {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}]>]>} : (tensor<8xf32>, tensor<8x16xf32>)
// CHECK:         arith.subf {{.*}}<@mesh, [{"data"}, {"model"}]>
// CHECK:         math.exp {{.*}}<@mesh, [{"data"}, {"model"}]>
// CHECK:         "linalg.reduce"
// CHECK:         linalg.generic {{.*}} attrs =  {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}]>]>}

// RULE-LABEL: func.func @softmax
// RULE:         "linalg.reduce"
// RULE:         {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i])->([i]) {i=8, j=16} reduction={j}>}
// RULE:         "linalg.broadcast"
// RULE:         {sdy.sharding_rule = #sdy.op_sharding_rule<([i], [i, j])->([i, j]) {i=8, j=16}>}
// RULE:         linalg.generic
// RULE-SAME:    {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i], [i, j])->([i, j]) {i=8, j=16}>}
func.func @softmax(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>})
    -> tensor<8x16xf32> {
  %lowest = arith.constant dense<0xFF800000> : tensor<8xf32>
  %zeros = arith.constant dense<0.0> : tensor<8xf32>
  %empty = tensor.empty() : tensor<8x16xf32>
  %max = linalg.reduce ins(%x : tensor<8x16xf32>) outs(%lowest : tensor<8xf32>) dimensions = [1]
  (%a: f32, %b: f32) {
    %0 = arith.maximumf %a, %b : f32
    linalg.yield %0 : f32
  }
  %spread = linalg.broadcast ins(%max : tensor<8xf32>) outs(%empty : tensor<8x16xf32>) dimensions = [1]
  %shifted = arith.subf %x, %spread : tensor<8x16xf32>
  %exp = math.exp %shifted : tensor<8x16xf32>
  %sum = linalg.reduce ins(%exp : tensor<8x16xf32>) outs(%zeros : tensor<8xf32>) dimensions = [1]
  (%a: f32, %b: f32) {
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  }
  %out = tensor.empty() : tensor<8x16xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%exp, %sum : tensor<8x16xf32>, tensor<8xf32>) outs(%out : tensor<8x16xf32>) {
  ^bb0(%e: f32, %s: f32, %o: f32):
    %0 = arith.divf %e, %s : f32
    linalg.yield %0 : f32
  } -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// -----

sdy.mesh @mesh = <["data"=4, "model"=2]>

// The result is sharded by windows over the columns, as far as the size allows; the rows, whose index the body reads,
// need replication.
// CHECK-LABEL: func.func @reduction
// CHECK-SAME:    -> (tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}]>})
// CHECK:         linalg.generic {{.*}} attrs =  {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"model"}]>]>}

// RULE-LABEL: func.func @reduction
// RULE:         linalg.generic
// RULE-SAME:    {sdy.sharding_rule = #sdy.op_sharding_rule<([j, i], [k], [i])->([i]) {i=16, j=8, k=1} need_replication={j} permutation={i}>}
func.func @reduction(%x: tensor<8x18xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>},
                     %kernel: tensor<3xf32>) -> tensor<16xf32> {
  %zeros = arith.constant dense<0.0> : tensor<16xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i, j, k) -> (j, i + k)>, affine_map<(i, j, k) -> (k)>, affine_map<(i, j, k) -> (i)>],
    iterator_types = ["parallel", "reduction", "reduction"]
  } ins(%x, %kernel : tensor<8x18xf32>, tensor<3xf32>) outs(%zeros : tensor<16xf32>) {
  ^bb0(%e: f32, %w: f32, %o: f32):
    %row = linalg.index 1 : index
    %number = arith.index_cast %row : index to i32
    %weight = arith.sitofp %number : i32 to f32
    %0 = arith.mulf %e, %w : f32
    %1 = arith.mulf %0, %weight : f32
    %2 = arith.addf %o, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<16xf32>
  return %y : tensor<16xf32>
}
