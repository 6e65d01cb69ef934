// RUN: sdy-opt %s -split-input-file -verify-diagnostics

func.func @gathered_size(%arg0: tensor<8x2xf32>) {
  // expected-error @+1 {{result gather dimension has size 7, expected to be a multiple of operand gather dimension size 2}}
  %0 = "stablehlo.all_gather"(%arg0) {all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<8x2xf32>) -> tensor<8x7xf32>
  return
}

// -----

func.func @other_dimension(%arg0: tensor<8x2xf32>) {
  // expected-error @+1 {{operand and result should have the same shape except for the dimension size at 'all_gather_dim'}}
  %0 = "stablehlo.all_gather"(%arg0) {all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<8x2xf32>) -> tensor<9x4xf32>
  return
}

// -----

func.func @negative_dimension(%arg0: tensor<8x2xf32>) {
  // expected-error @+1 {{'stablehlo.all_gather' op attribute 'all_gather_dim' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  %0 = "stablehlo.all_gather"(%arg0) {all_gather_dim = -1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<8x2xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @device_in_two_groups(%arg0: tensor<8x2xf32>) {
  // expected-error @+1 {{replica id #1 seen more than once}}
  %0 = "stablehlo.all_gather"(%arg0) {all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>} : (tensor<8x2xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @device_in_no_group(%arg0: tensor<8x2xf32>) {
  // expected-error @+1 {{replica id #2 not seen in replica groups}}
  %0 = "stablehlo.all_gather"(%arg0) {all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1], [3, 4]]> : tensor<2x2xi64>} : (tensor<8x2xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @groups_without_channel(%arg0: tensor<4xf32>) {
  // expected-error @+1 {{channel_id must be positive when useGlobalDeviceIds is set but got: 0}}
  %0 = "stablehlo.all_reduce"(%arg0) ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %1 = stablehlo.add %arg1, %arg2 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @reducer_of_one(%arg0: tensor<4xf32>) {
  // expected-error @+1 {{Reduction-region must take 2 parameters, but takes 1 parameter(s)}}
  %0 = "stablehlo.all_reduce"(%arg0) ({
  ^bb0(%arg1: tensor<f32>):
    stablehlo.return %arg1 : tensor<f32>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @reduced_to_another_shape(%arg0: tensor<4xf32>) {
  // expected-error @+2 {{'stablehlo.all_reduce' op inferred type(s) 'tensor<4xf32>' are incompatible with return type(s) of operation 'tensor<5xf32>'}}
  // expected-error @+1 {{'stablehlo.all_reduce' op failed to infer returned types}}
  %0 = "stablehlo.all_reduce"(%arg0) ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %1 = stablehlo.add %arg1, %arg2 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @scattered_size(%arg0: tensor<4x16xf32>) {
  // expected-error @+1 {{operand scatter dimension has size 16, expected to be a multiple of result scatter dimension size 5}}
  %0 = "stablehlo.reduce_scatter"(%arg0) ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %1 = stablehlo.add %arg1, %arg2 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {scatter_dimension = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4x16xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @uneven_split(%arg0: tensor<4x16xf32>) {
  // expected-error @+2 {{split dimension has size 16, expected to be a multiple of split_count 5}}
  // expected-error @+1 {{'stablehlo.all_to_all' op failed to infer returned types}}
  %0 = "stablehlo.all_to_all"(%arg0) {split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 5 : i64, replica_groups = dense<[[0, 1, 2, 3, 4]]> : tensor<1x5xi64>} : (tensor<4x16xf32>) -> tensor<20x4xf32>
  return
}

// -----

func.func @groups_of_another_size(%arg0: tensor<4x16xf32>) {
  // expected-error @+2 {{group size of replica_groups must be 4}}
  // expected-error @+1 {{'stablehlo.all_to_all' op failed to infer returned types}}
  %0 = "stablehlo.all_to_all"(%arg0) {split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 4 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4x16xf32>) -> tensor<16x4xf32>
  return
}

// -----

func.func @two_to_one(%arg0: tensor<4xf32>) {
  // expected-error @+1 {{duplicate targets not allowed.}}
  %0 = "stablehlo.collective_permute"(%arg0) {source_target_pairs = dense<[[0, 1], [2, 1]]> : tensor<2x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @to_nowhere(%arg0: tensor<4xf32>) {
  // expected-error @+1 {{expect source_target_pairs attribute of shape (N, 2), but got (2, 1)}}
  %0 = "stablehlo.collective_permute"(%arg0) {source_target_pairs = dense<[[0], [1]]> : tensor<2x1xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @negative_replica(%arg0: tensor<4xf32>) {
  // expected-error @+1 {{replica_groups values must be positive, but was given -1}}
  %0 = "stablehlo.collective_broadcast"(%arg0) {replica_groups = dense<[[0, -1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}
