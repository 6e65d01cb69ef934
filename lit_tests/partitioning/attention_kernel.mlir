// RUN: python %S/../../examples/attention_kernel.py | filecheck %s

// The kernel's sharding propagates to all parameters: one all-reduce over the heads, and five over the batch, for the
// loss and the four gradients.

// CHECK:      {{^attention: data model - -, data model - -, data model - - -> data model - -$}}
// CHECK-NEXT: gradient(attention): data model - -, {{.*}} -> data model - -, data model - -, data model - -
// CHECK-NEXT: collectives
// CHECK-NEXT: all_reduce among {{\[\[0, 1\], \[2, 3\], \[4, 5\], \[6, 7\]\]}}
// CHECK-NEXT: all_reduce among {{\[\[0, 2, 4, 6\], \[1, 3, 5, 7\]\]}}
// CHECK-NEXT: all_reduce among {{\[\[0, 2, 4, 6\], \[1, 3, 5, 7\]\]}}
// CHECK-NEXT: all_reduce among {{\[\[0, 2, 4, 6\], \[1, 3, 5, 7\]\]}}
// CHECK-NEXT: all_reduce among {{\[\[0, 2, 4, 6\], \[1, 3, 5, 7\]\]}}
// CHECK-NEXT: all_reduce among {{\[\[0, 2, 4, 6\], \[1, 3, 5, 7\]\]}}
// CHECK-NEXT: loss
// CHECK-NEXT: agrees with one device: True
