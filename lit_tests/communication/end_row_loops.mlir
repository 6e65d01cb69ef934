// RUN: sdy-opt %s -sdy-end-row-loops | filecheck %s

// CHECK-LABEL: func.func @marked
func.func @marked(%arg0: tensor<2xi1>) -> tensor<2xi1> {
  %false = stablehlo.constant dense<false> : tensor<i1>
  // CHECK: attributes {sdy.row_loop = ""}
  %0 = stablehlo.while(%x = %arg0) : tensor<2xi1> attributes {sdy.row_loop = ""}
  cond {
    // CHECK: %[[ANY:.*]] = stablehlo.reduce
    // CHECK-NEXT: stablehlo.return %[[ANY]]
    %1 = stablehlo.reduce(%x init: %false) applies stablehlo.or across dimensions = [0] : (tensor<2xi1>, tensor<i1>) -> tensor<i1>
    %2 = "stablehlo.all_reduce"(%1) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<i1>, %b: tensor<i1>):
      %3 = stablehlo.maximum %a, %b : tensor<i1>
      stablehlo.return %3 : tensor<i1>
    }) : (tensor<i1>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    stablehlo.return %x : tensor<2xi1>
  }
  return %0 : tensor<2xi1>
}

// CHECK-LABEL: func.func @other_collective
func.func @other_collective(%arg0: tensor<2xi1>) -> tensor<2xi1> {
  %false = stablehlo.constant dense<false> : tensor<i1>
  // CHECK: attributes {sdy.row_loop = "'stablehlo.collective_permute' in it takes all devices"}
  %0 = stablehlo.while(%x = %arg0) : tensor<2xi1> attributes {sdy.row_loop = ""}
  cond {
    %1 = stablehlo.reduce(%x init: %false) applies stablehlo.or across dimensions = [0] : (tensor<2xi1>, tensor<i1>) -> tensor<i1>
    // CHECK: stablehlo.all_reduce
    %2 = "stablehlo.all_reduce"(%1) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<i1>, %b: tensor<i1>):
      %3 = stablehlo.maximum %a, %b : tensor<i1>
      stablehlo.return %3 : tensor<i1>
    }) : (tensor<i1>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %1 = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2xi1>) -> tensor<2xi1>
    stablehlo.return %1 : tensor<2xi1>
  }
  return %0 : tensor<2xi1>
}

// CHECK-LABEL: func.func @callback
func.func @callback(%arg0: tensor<2xi1>) -> tensor<2xi1> {
  %false = stablehlo.constant dense<false> : tensor<i1>
  // CHECK: attributes {sdy.row_loop = "'stablehlo.custom_call' in it takes all devices"}
  %0 = stablehlo.while(%x = %arg0) : tensor<2xi1> attributes {sdy.row_loop = ""}
  cond {
    %1 = stablehlo.reduce(%x init: %false) applies stablehlo.or across dimensions = [0] : (tensor<2xi1>, tensor<i1>) -> tensor<i1>
    // CHECK: stablehlo.all_reduce
    %2 = "stablehlo.all_reduce"(%1) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<i1>, %b: tensor<i1>):
      %3 = stablehlo.maximum %a, %b : tensor<i1>
      stablehlo.return %3 : tensor<i1>
    }) : (tensor<i1>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    stablehlo.custom_call @callback() {has_side_effect = true} : () -> ()
    stablehlo.return %x : tensor<2xi1>
  }
  return %0 : tensor<2xi1>
}

// A kernel can signal kernels of other devices.
// CHECK-LABEL: func.func @kernel
func.func @kernel(%arg0: tensor<2xi1>) -> tensor<2xi1> {
  %false = stablehlo.constant dense<false> : tensor<i1>
  // CHECK: attributes {sdy.row_loop = "'stablehlo.custom_call' in it takes all devices"}
  %0 = stablehlo.while(%x = %arg0) : tensor<2xi1> attributes {sdy.row_loop = ""}
  cond {
    %1 = stablehlo.reduce(%x init: %false) applies stablehlo.or across dimensions = [0] : (tensor<2xi1>, tensor<i1>) -> tensor<i1>
    // CHECK: stablehlo.all_reduce
    %2 = "stablehlo.all_reduce"(%1) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<i1>, %b: tensor<i1>):
      %3 = stablehlo.maximum %a, %b : tensor<i1>
      stablehlo.return %3 : tensor<i1>
    }) : (tensor<i1>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %1 = stablehlo.custom_call @tpu_custom_call(%x) : (tensor<2xi1>) -> tensor<2xi1>
    stablehlo.return %x : tensor<2xi1>
  }
  return %0 : tensor<2xi1>
}
