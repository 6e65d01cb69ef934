// RUN: sdy-opt %s -split-input-file -verify-diagnostics | filecheck %s

// Both spellings are one type, and the newer one is printed.
// CHECK: @spellings(%arg0: tensor<?x4xf32, #stablehlo.bounds<3, ?>>) -> tensor<?x4xf32, #stablehlo.bounds<3, ?>>
func.func @spellings(%arg0: tensor<?x4xf32, #stablehlo.type_extensions<bounds = [3, ?]>>) -> tensor<?x4xf32, #stablehlo.bounds<3, ?>> {
  return %arg0 : tensor<?x4xf32, #stablehlo.bounds<3, ?>>
}

// -----

// expected-error@+1 {{Bounds length is 1, expected to be equal to rank(2) of the tensor 'tensor<?x4xf32>'}}
func.func private @rank(tensor<?x4xf32, #stablehlo.bounds<3>>)

// -----

// expected-error@+1 {{Static dimension 1 cannot have a bound, use ShapedType::kDynamic to indicate a missing bound in tensor 'tensor<?x4xf32>'}}
func.func private @static(tensor<?x4xf32, #stablehlo.bounds<3, 4>>)
