// RUN: sdy-opt %s -sdy-mark-row-loops | filecheck %s

sdy.mesh @mesh = <["data"=4]>

// CHECK-LABEL: func.func @ended_rows_are_selected
func.func @ended_rows_are_selected(%arg0: tensor<10xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}) -> tensor<10xi32> {
  %limit = stablehlo.constant dense<9> : tensor<10xi32>
  %one = stablehlo.constant dense<1> : tensor<10xi32>
  %false = stablehlo.constant dense<false> : tensor<i1>
  // CHECK: stablehlo.while{{.*}} attributes {sdy.row_loop = "", sdy.sharding
  %0 = stablehlo.while(%x = %arg0) : tensor<10xi32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>]>}
  cond {
    %1 = stablehlo.compare LT, %x, %limit {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>]>} : (tensor<10xi32>, tensor<10xi32>) -> tensor<10xi1>
    %2 = stablehlo.reduce(%1 init: %false) applies stablehlo.or across dimensions = [0] : (tensor<10xi1>, tensor<i1>) -> tensor<i1>
    %3 = sdy.all_reduce max {"data"} %2 out_sharding=<@mesh, []> : tensor<i1>
    stablehlo.return %3 : tensor<i1>
  } do {
    %1 = stablehlo.compare LT, %x, %limit {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>]>} : (tensor<10xi32>, tensor<10xi32>) -> tensor<10xi1>
    %2 = stablehlo.add %x, %one {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>]>} : tensor<10xi32>
    %3 = stablehlo.select %1, %2, %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>]>} : tensor<10xi1>, tensor<10xi32>
    stablehlo.return %3 : tensor<10xi32>
  }
  return %0 : tensor<10xi32>
}

// Where the rows that have ended are those not selected, they change.
// CHECK-LABEL: func.func @ended_rows_change
func.func @ended_rows_change(%arg0: tensor<10xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}) -> tensor<10xi32> {
  %limit = stablehlo.constant dense<9> : tensor<10xi32>
  %one = stablehlo.constant dense<1> : tensor<10xi32>
  %false = stablehlo.constant dense<false> : tensor<i1>
  // CHECK: attributes {sdy.row_loop = "carried value 0, on which the end of the rows depends, changes after it"
  %0 = stablehlo.while(%x = %arg0) : tensor<10xi32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>]>}
  cond {
    %1 = stablehlo.compare LT, %x, %limit {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>]>} : (tensor<10xi32>, tensor<10xi32>) -> tensor<10xi1>
    %2 = stablehlo.reduce(%1 init: %false) applies stablehlo.or across dimensions = [0] : (tensor<10xi1>, tensor<i1>) -> tensor<i1>
    %3 = sdy.all_reduce max {"data"} %2 out_sharding=<@mesh, []> : tensor<i1>
    stablehlo.return %3 : tensor<i1>
  } do {
    %1 = stablehlo.compare LT, %x, %limit {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>]>} : (tensor<10xi32>, tensor<10xi32>) -> tensor<10xi1>
    %2 = stablehlo.add %x, %one {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>]>} : tensor<10xi32>
    %3 = stablehlo.select %1, %x, %2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>]>} : tensor<10xi1>, tensor<10xi32>
    stablehlo.return %3 : tensor<10xi32>
  }
  return %0 : tensor<10xi32>
}

// A flag that stays set, in a loop until all flags are set; the count is not read after the loop.
// CHECK-LABEL: func.func @flags
func.func @flags(%arg0: tensor<10xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}, %arg1: tensor<10xi1> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}) -> (tensor<10xi32>, tensor<10xi1>) {
  %limit = stablehlo.constant dense<9> : tensor<10xi32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %most = stablehlo.constant dense<7> : tensor<i32>
  %true = stablehlo.constant dense<true> : tensor<i1>
  // CHECK: attributes {sdy.row_loop = "", sdy.sharding
  %0:3 = stablehlo.while(%i = %zero, %x = %arg0, %done = %arg1) : tensor<i32>, tensor<10xi32>, tensor<10xi1> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>, <@mesh, [{"data"}]>, <@mesh, [{"data"}]>]>}
  cond {
    %1 = stablehlo.compare LT, %i, %most : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %2 = stablehlo.reduce(%done init: %true) applies stablehlo.and across dimensions = [0] : (tensor<10xi1>, tensor<i1>) -> tensor<i1>
    %3 = sdy.all_reduce min {"data"} %2 out_sharding=<@mesh, []> : tensor<i1>
    %4 = stablehlo.not %3 : tensor<i1>
    %5 = stablehlo.and %1, %4 : tensor<i1>
    stablehlo.return %5 : tensor<i1>
  } do {
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>]>} : (tensor<i32>) -> tensor<10xi32>
    %3 = stablehlo.add %x, %2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>]>} : tensor<10xi32>
    %4 = stablehlo.select %done, %x, %3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>]>} : tensor<10xi1>, tensor<10xi32>
    %5 = stablehlo.compare GT, %4, %limit {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>]>} : (tensor<10xi32>, tensor<10xi32>) -> tensor<10xi1>
    %6 = stablehlo.or %done, %5 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>]>} : tensor<10xi1>
    stablehlo.return %1, %4, %6 : tensor<i32>, tensor<10xi32>, tensor<10xi1>
  }
  return %0#1, %0#2 : tensor<10xi32>, tensor<10xi1>
}

// CHECK-LABEL: func.func @count_is_returned
func.func @count_is_returned(%arg0: tensor<10xi1> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}) -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %false = stablehlo.constant dense<false> : tensor<i1>
  // CHECK: attributes {sdy.row_loop = "carried value 0, which is read after the loop, changes after the end of the rows"
  %0:2 = stablehlo.while(%i = %zero, %x = %arg0) : tensor<i32>, tensor<10xi1> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>, <@mesh, [{"data"}]>]>}
  cond {
    %1 = stablehlo.reduce(%x init: %false) applies stablehlo.or across dimensions = [0] : (tensor<10xi1>, tensor<i1>) -> tensor<i1>
    %2 = sdy.all_reduce max {"data"} %1 out_sharding=<@mesh, []> : tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %1 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %1, %x : tensor<i32>, tensor<10xi1>
  }
  return %0#0 : tensor<i32>
}

// A loop until a sum is small is not of rows.
// CHECK-LABEL: func.func @until_a_sum_is_small
func.func @until_a_sum_is_small(%arg0: tensor<8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}) -> tensor<8xi32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  // CHECK-NOT: sdy.row_loop
  %0 = stablehlo.while(%x = %arg0) : tensor<8xi32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>]>}
  cond {
    %1 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8xi32>, tensor<i32>) -> tensor<i32>
    %2 = sdy.all_reduce {"data"} %1 out_sharding=<@mesh, []> : tensor<i32>
    %3 = stablehlo.compare GT, %2, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  } do {
    stablehlo.return %x : tensor<8xi32>
  }
  return %0 : tensor<8xi32>
}

// A carried boolean is false in rows that have ended, if it begins as the condition and is tested with it.
// CHECK-LABEL: func.func @carried_activity
func.func @carried_activity(%arg0: tensor<10xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}) -> tensor<10xi32> {
  %limit = stablehlo.constant dense<9> : tensor<10xi32>
  %one = stablehlo.constant dense<1> : tensor<10xi32>
  %false = stablehlo.constant dense<false> : tensor<i1>
  %active = stablehlo.compare LT, %arg0, %limit {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>]>} : (tensor<10xi32>, tensor<10xi32>) -> tensor<10xi1>
  // CHECK: attributes {sdy.row_loop = "", sdy.sharding
  %0:2 = stablehlo.while(%x = %arg0, %a = %active) : tensor<10xi32>, tensor<10xi1> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>, <@mesh, [{"data"}]>]>}
  cond {
    %1 = stablehlo.compare LT, %x, %limit {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>]>} : (tensor<10xi32>, tensor<10xi32>) -> tensor<10xi1>
    %2 = stablehlo.reduce(%1 init: %false) applies stablehlo.or across dimensions = [0] : (tensor<10xi1>, tensor<i1>) -> tensor<i1>
    %3 = sdy.all_reduce max {"data"} %2 out_sharding=<@mesh, []> : tensor<i1>
    stablehlo.return %3 : tensor<i1>
  } do {
    %1 = stablehlo.add %x, %one {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>]>} : tensor<10xi32>
    %2 = stablehlo.select %a, %1, %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>]>} : tensor<10xi1>, tensor<10xi32>
    %3 = stablehlo.compare LT, %1, %limit {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>]>} : (tensor<10xi32>, tensor<10xi32>) -> tensor<10xi1>
    %4 = stablehlo.and %a, %3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>]>} : tensor<10xi1>
    stablehlo.return %2, %4 : tensor<10xi32>, tensor<10xi1>
  }
  return %0#0 : tensor<10xi32>
}

// It is not if it begins otherwise.
// CHECK-LABEL: func.func @given_activity
func.func @given_activity(%arg0: tensor<10xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}, %arg1: tensor<10xi1> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}) -> tensor<10xi32> {
  %limit = stablehlo.constant dense<9> : tensor<10xi32>
  %one = stablehlo.constant dense<1> : tensor<10xi32>
  %false = stablehlo.constant dense<false> : tensor<i1>
  // CHECK: attributes {sdy.row_loop = "carried value 0, on which the end of the rows depends, changes after it"
  %0:2 = stablehlo.while(%x = %arg0, %a = %arg1) : tensor<10xi32>, tensor<10xi1> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>, <@mesh, [{"data"}]>]>}
  cond {
    %1 = stablehlo.compare LT, %x, %limit {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>]>} : (tensor<10xi32>, tensor<10xi32>) -> tensor<10xi1>
    %2 = stablehlo.reduce(%1 init: %false) applies stablehlo.or across dimensions = [0] : (tensor<10xi1>, tensor<i1>) -> tensor<i1>
    %3 = sdy.all_reduce max {"data"} %2 out_sharding=<@mesh, []> : tensor<i1>
    stablehlo.return %3 : tensor<i1>
  } do {
    %1 = stablehlo.add %x, %one {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>]>} : tensor<10xi32>
    %2 = stablehlo.select %a, %1, %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>]>} : tensor<10xi1>, tensor<10xi32>
    %3 = stablehlo.compare LT, %1, %limit {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>]>} : (tensor<10xi32>, tensor<10xi32>) -> tensor<10xi1>
    %4 = stablehlo.and %a, %3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>]>} : tensor<10xi1>
    stablehlo.return %2, %4 : tensor<10xi32>, tensor<10xi1>
  }
  return %0#0 : tensor<10xi32>
}
