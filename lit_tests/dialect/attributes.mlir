// RUN: sdy-opt %s | filecheck %s
// RUN: sdy-opt %s --mlir-print-op-generic | sdy-opt | filecheck %s

// Each attribute of the dialect, in its long form.

// CHECK:      func.func private @alone() attributes {
// CHECK-SAME:   a = #sdy<axis_ref"x":(2)4>,
// CHECK-SAME:   b = #sdy<axis_ref_list{"x", "y":(1)2}>,
// CHECK-SAME:   c = #sdy<list_of_axis_ref_lists[{"x"}, {}]>,
// CHECK-SAME:   d = #sdy<all_to_all_param_list[{"x"}: 0->1, {"y"}: 2->3]>,
// CHECK-SAME:   e = #sdy<manual_axes{"x", "y"}>,
// CHECK-SAME:   f = #sdy.mesh<["x"=4, "y"=2], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>,
// CHECK-SAME:   g = #sdy<mesh_axis"x"=4>,
// CHECK-SAME:   h = #sdy<sub_axis_info(2)4>,
// CHECK-SAME:   i = #sdy<dimension_sharding{"x", ?}p1>,
// CHECK-SAME:   j = #sdy<tensor_mapping[i, jk]>,
// CHECK-SAME:   k = #sdy.propagation_edges<[{step-0 = [{"x" = operand-1 -> [operand-0, result-0]}]}, {step-2 = [{"y" = result-0 -> [operand-0]}]}]>
func.func private @alone() attributes {
  a = #sdy<axis_ref"x":(2)4>,
  b = #sdy<axis_ref_list{"x", "y":(1)2}>,
  c = #sdy<list_of_axis_ref_lists[{"x"}, {}]>,
  d = #sdy<all_to_all_param_list[{"x"}: 0->1, {"y"}: 2->3]>,
  e = #sdy<manual_axes{"x", "y"}>,
  f = #sdy.mesh<["x"=4, "y"=2], device_ids=[7,6,5,4,3,2,1,0]>,
  g = #sdy<mesh_axis"x"=4>,
  h = #sdy<sub_axis_info(2)4>,
  i = #sdy<dimension_sharding{"x", ?}p1>,
  j = #sdy<tensor_mapping[i, jk]>,
  k = #sdy.propagation_edges<[{step-0 = [{"x" = operand-1 -> [operand-0, result-0]}]}, {step-2 = [{"y" = result-0 -> [operand-0]}]}]>
}
