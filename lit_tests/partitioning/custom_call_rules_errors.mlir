// RUN: printf 'scale: i -> i\n  pair: i j, (k -> i\n' > %t.parse
// RUN: not sdy-opt %s -custom-call-rules=%t.parse 2>&1 | filecheck %s --check-prefix=PARSE
// PARSE:      parse:2:17: error: write at least two factors between parentheses, or leave them out
// PARSE-NEXT:   pair: i j, (k -> i
// PARSE-NEXT:                 ^

// RUN: printf 'tpu_custom_call: i j -> i j\n' > %t.kernel
// RUN: not sdy-opt %s -custom-call-rules=%t.kernel 2>&1 | filecheck %s --check-prefix=KERNEL
// KERNEL: kernel:1:1: error: no rule fits all custom calls of @tpu_custom_call, which run arbitrary computations: annotate the function that makes the call with sdy.register_op

// RUN: printf 'scale: i -> i\n' > %t.rank
// RUN: not sdy-opt %s -custom-call-rules=%t.rank -sdy-propagation-pipeline 2>&1 | filecheck %s --check-prefix=RANK
// RANK: custom_call_rules_errors.mlir:{{[0-9]+}}:8: error: the annotation `i -> i` doesn't fit '@scale': operand 0 has 1 dimension(s) in the annotation, but is of rank 2

sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4x6xf32> {
  %0 = stablehlo.custom_call @scale(%a) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
