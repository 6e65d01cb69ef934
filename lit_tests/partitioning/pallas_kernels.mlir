// RUN: python %S/../../examples/pallas_kernels.py | filecheck %s

// Heads and experts are sharded like their parameters, and no kernel gets a replicated array that can be split.

// CHECK:      {{^attention: data model - -, data model - -, data model - - -> data model - -$}}
// CHECK-NEXT: grouped_matmul: model data -, model - - -> model data -
// CHECK-NEXT: grouped_matmul: model data -, model - - -> model data -
// CHECK-NEXT: gradient(grouped_matmul): model data -, model - -, model data - -> model data -, model - -
// CHECK-NEXT: gradient(grouped_matmul): model data -, model - -, model data - -> model data -, model - -
// CHECK-NEXT: gradient(attention): data model - -, {{.*}} -> data model - -, data model - -, data model - -
// CHECK:      all_reduce among
// CHECK:      agrees with one device: True
