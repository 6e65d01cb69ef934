// RUN: sdy-opt %s -split-input-file -verify-diagnostics -allow-unregistered-dialect | filecheck %s

// CHECK: a = !quant.uniform<i8:f32, 5.000000e-01:3>
// CHECK-SAME: b = !quant.uniform<u8<1:255>:f32:1, {2.000000e+00,3.000000e+00:4}>
// CHECK-SAME: c = !quant.uniform<i8:f32:{0:2, 1:1}, {{[{][{]}}1.000000e+00:1, 2.000000e+00}, {3.000000e+00:3, 4.000000e+00}}>
// CHECK-SAME: d = !quant.any<i8<-8:7>:f16>, e = !quant.any<u4>
// CHECK-SAME: f = !quant.calibrated<f32<-1.500000e+00:2.500000e-01>>
// CHECK-SAME: g = !quant.uniform<si8:f32, 1.000000e-01>, h = !quant.uniform<ui8:f32, 1.000000e-01:-30>
"some.op"() {
  a = !quant.uniform<i8<-128:127>:f32, 0.5:3>,
  b = !quant.uniform<u8<1:255>:f32:1, {2.0, 3.0:4}>,
  c = !quant.uniform<i8:f32:{0:2, 1:1}, {{1.0:1, 2.0}, {3.0:3, 4.0}}>,
  d = !quant.any<i8<-8:7>:f16>,
  e = !quant.any<u4>,
  f = !quant.calibrated<f32<-1.5:0.25>>,
  g = !quant.uniform<si8:f32, 0.1>,
  h = !quant.uniform<ui8:f32, 0.1:-30>
} : () -> ()

// -----

// expected-error@+1 {{illegal quantized storage type alias}}
"some.op"() {a = !quant.uniform<f8:f32, 1.0>} : () -> ()

// -----

// expected-error@+1 {{illegal storage type size: 33}}
"some.op"() {a = !quant.uniform<i33:f32, 1.0>} : () -> ()

// -----

// expected-error@+1 {{illegal storage type minimum: -129}}
"some.op"() {a = !quant.uniform<i8<-129:3>:f32, 1.0>} : () -> ()

// -----

// expected-error@+1 {{illegal storage min and storage max: (3:3)}}
"some.op"() {a = !quant.uniform<i8<3:3>:f32, 1.0>} : () -> ()

// -----

// expected-error@+1 {{invalid kind of type specified}}
"some.op"() {a = !quant.uniform<i8:i32, 1.0>} : () -> ()

// -----

// expected-error@+1 {{expected floating point literal}}
"some.op"() {a = !quant.uniform<i8:f32, 1>} : () -> ()

// -----

// expected-error@+1 {{scale 7.000000e+04 out of expressed type range [5.960464e-08, 6.550400e+04]}}
"some.op"() {a = !quant.uniform<i8:f16, 70000.0>} : () -> ()

// -----

// expected-error@+1 {{illegal quantized dimension: -1}}
"some.op"() {a = !quant.uniform<i8:f32:-1, {1.0}>} : () -> ()

// -----

// expected-error@+1 {{illegal block size: 0}}
"some.op"() {a = !quant.uniform<i8:f32:{0:0}, {1.0}>} : () -> ()

// -----

// expected-error@+1 {{tensor literal is invalid; ranks are not consistent between elements}}
"some.op"() {a = !quant.uniform<i8:f32:{0:2}, {{1.0}, 2.0}>} : () -> ()
