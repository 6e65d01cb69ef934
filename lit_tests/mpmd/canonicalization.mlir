// RUN: sdy-opt %s -canonicalize | filecheck %s

!tensor = tensor<4x8xf32>
!whole = !mpmd.mesh_tensor<"first", tensor<4x8xf32>>
!split = !mpmd.mesh_tensor<"first", tensor<4x8xf32>, sharding=<@mesh, [{"x"}, {}]>>
!second = !mpmd.mesh_tensor<"second", tensor<4x8xf32>>
#topology = #mpmd.topology<<"first" : <["x"=2]>>, <"second" : <["x"=2]>>>

// CHECK-LABEL: func.func @transfers
func.func @transfers(%arg0: !whole) -> (!whole, !split, !second) attributes {topology = #topology} {
  // CHECK-NEXT: %[[SPLIT:.*]] = mpmd.transfer %arg0 : {{.*}} -> !mpmd.mesh_tensor<"first", tensor<4x8xf32>, sharding=<@mesh, [{"x"}, {}]>>
  // CHECK-NEXT: %[[SECOND:.*]] = mpmd.transfer %[[SPLIT]] : {{.*}} -> !mpmd.mesh_tensor<"second", tensor<4x8xf32>>
  // CHECK-NEXT: return %arg0, %[[SPLIT]], %[[SECOND]]
  %0 = mpmd.transfer %arg0 : (!whole) -> !whole
  %1 = mpmd.transfer %0 : (!whole) -> !split
  %2 = mpmd.transfer %1 : (!split) -> !whole
  %3 = mpmd.transfer %1 : (!split) -> !second
  return %2, %1, %3 : !whole, !split, !second
}

// CHECK-LABEL: func.func @broadcasts
func.func @broadcasts(%arg0: !tensor) -> !tensor {
  // CHECK-NEXT: %[[ONCE:.*]] = mpmd.broadcast %arg0
  // CHECK-NEXT: return %[[ONCE]]
  %0 = mpmd.broadcast %arg0 : !tensor
  %1 = mpmd.broadcast %0 : !tensor
  return %1 : !tensor
}

// CHECK-LABEL: func.func @reductions
func.func @reductions(%arg0: !tensor) -> (!tensor, !tensor) {
  // CHECK-NEXT: %[[SUM:.*]] = mpmd.reduce<add> %arg0, %arg0
  // CHECK-NEXT: %[[MAX:.*]] = mpmd.reduce<max> %[[SUM]]
  // CHECK-NEXT: return %[[SUM]], %[[MAX]]
  %0 = mpmd.reduce<add> %arg0, %arg0 : (!tensor, !tensor) -> !tensor
  %1 = mpmd.reduce<add> %0 : (!tensor) -> !tensor
  %2 = mpmd.reduce<none> %1 : (!tensor) -> !tensor
  %3 = mpmd.reduce<max> %2 : (!tensor) -> !tensor
  return %2, %3 : !tensor, !tensor
}

// The second result has another type than the operand.
// CHECK-LABEL: func.func @returned_argument
func.func @returned_argument(%arg0: !whole) -> (!whole, !split) attributes {topology = #topology} {
  // CHECK-NEXT: %[[FRAGMENT:.*]]:2 = mpmd.fragment
  // CHECK: return %arg0, %[[FRAGMENT]]#1
  %0:2 = mpmd.fragment<mesh="first", origin=["f"]> (%arg0) (%arg1: !tensor) {
    mpmd.return %arg1, %arg1 : !tensor, !tensor
  } : (!whole) -> (!whole, !split)
  return %0#0, %0#1 : !whole, !split
}
