module @jit_step attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=4, "model"=2]>
  func.func public @main(%arg0: tensor<4096x4096xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data", "model"}p1, {}]>}, %arg1: tensor<4096x4096xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data", "model"}p1, {}]>}, %arg2: tensor<4096x4096xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data", "model"}p1, {}]>}, %arg3: tensor<4096x4096xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data", "model"}p1, {}]>}, %arg4: tensor<65536x4096xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data", "model"}, {}]>}, %arg5: tensor<65536x4096xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data", "model"}, {}]>}) -> (tensor<4096x4096xf32> {jax.result_info = "result[0]", sdy.sharding = #sdy.sharding<@mesh, [{"data", "model"}p1, {}]>}, tensor<4096x4096xf32> {jax.result_info = "result[1]", sdy.sharding = #sdy.sharding<@mesh, [{"data", "model"}p1, {}]>}, tensor<4096x4096xf32> {jax.result_info = "result[2]", sdy.sharding = #sdy.sharding<@mesh, [{"data", "model"}p1, {}]>}, tensor<4096x4096xf32> {jax.result_info = "result[3]", sdy.sharding = #sdy.sharding<@mesh, [{"data", "model"}p1, {}]>}) {
    %0 = stablehlo.dot_general %arg4, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<4096x4096xf32>) -> tensor<65536x4096xf32>
    %1 = stablehlo.tanh %0 : tensor<65536x4096xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<65536x4096xf32>
    %3 = stablehlo.subtract %2, %1 : tensor<65536x4096xf32>
    %4 = stablehlo.dot_general %1, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<4096x4096xf32>) -> tensor<65536x4096xf32>
    %5 = stablehlo.tanh %4 : tensor<65536x4096xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<65536x4096xf32>
    %7 = stablehlo.subtract %6, %5 : tensor<65536x4096xf32>
    %8 = stablehlo.dot_general %5, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<4096x4096xf32>) -> tensor<65536x4096xf32>
    %9 = stablehlo.tanh %8 : tensor<65536x4096xf32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<65536x4096xf32>
    %11 = stablehlo.subtract %10, %9 : tensor<65536x4096xf32>
    %12 = stablehlo.dot_general %9, %arg3, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<4096x4096xf32>) -> tensor<65536x4096xf32>
    %13 = stablehlo.tanh %12 : tensor<65536x4096xf32>
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<65536x4096xf32>
    %15 = stablehlo.subtract %14, %13 : tensor<65536x4096xf32>
    %16 = stablehlo.subtract %13, %arg5 : tensor<65536x4096xf32>
    %cst_3 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %17 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<65536x4096xf32>
    %18 = stablehlo.multiply %17, %16 : tensor<65536x4096xf32>
    %cst_4 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_5 = stablehlo.constant dense<0x4D800000> : tensor<f32>
    %19 = stablehlo.divide %cst_4, %cst_5 : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %19, dims = [] : (tensor<f32>) -> tensor<65536x4096xf32>
    %21 = stablehlo.multiply %20, %18 : tensor<65536x4096xf32>
    %22 = stablehlo.multiply %21, %15 : tensor<65536x4096xf32>
    %23 = stablehlo.multiply %22, %13 : tensor<65536x4096xf32>
    %24 = stablehlo.add %22, %23 : tensor<65536x4096xf32>
    %25 = stablehlo.dot_general %24, %9, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<65536x4096xf32>) -> tensor<4096x4096xf32>
    %26 = stablehlo.transpose %25, dims = [1, 0] : (tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
    %27 = stablehlo.dot_general %24, %arg3, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<4096x4096xf32>) -> tensor<65536x4096xf32>
    %28 = stablehlo.multiply %27, %11 : tensor<65536x4096xf32>
    %29 = stablehlo.multiply %28, %9 : tensor<65536x4096xf32>
    %30 = stablehlo.add %28, %29 : tensor<65536x4096xf32>
    %31 = stablehlo.dot_general %30, %5, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<65536x4096xf32>) -> tensor<4096x4096xf32>
    %32 = stablehlo.transpose %31, dims = [1, 0] : (tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
    %33 = stablehlo.dot_general %30, %arg2, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<4096x4096xf32>) -> tensor<65536x4096xf32>
    %34 = stablehlo.multiply %33, %7 : tensor<65536x4096xf32>
    %35 = stablehlo.multiply %34, %5 : tensor<65536x4096xf32>
    %36 = stablehlo.add %34, %35 : tensor<65536x4096xf32>
    %37 = stablehlo.dot_general %36, %1, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<65536x4096xf32>) -> tensor<4096x4096xf32>
    %38 = stablehlo.transpose %37, dims = [1, 0] : (tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
    %39 = stablehlo.dot_general %36, %arg1, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<4096x4096xf32>) -> tensor<65536x4096xf32>
    %40 = stablehlo.multiply %39, %3 : tensor<65536x4096xf32>
    %41 = stablehlo.multiply %40, %1 : tensor<65536x4096xf32>
    %42 = stablehlo.add %40, %41 : tensor<65536x4096xf32>
    %43 = stablehlo.dot_general %42, %arg4, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<65536x4096xf32>) -> tensor<4096x4096xf32>
    %44 = stablehlo.transpose %43, dims = [1, 0] : (tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
    %cst_6 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %45 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<4096x4096xf32>
    %46 = stablehlo.multiply %45, %44 : tensor<4096x4096xf32>
    %47 = stablehlo.subtract %arg0, %46 : tensor<4096x4096xf32>
    %cst_7 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %48 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<4096x4096xf32>
    %49 = stablehlo.multiply %48, %38 : tensor<4096x4096xf32>
    %50 = stablehlo.subtract %arg1, %49 : tensor<4096x4096xf32>
    %cst_8 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %51 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<4096x4096xf32>
    %52 = stablehlo.multiply %51, %32 : tensor<4096x4096xf32>
    %53 = stablehlo.subtract %arg2, %52 : tensor<4096x4096xf32>
    %cst_9 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %54 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<4096x4096xf32>
    %55 = stablehlo.multiply %54, %26 : tensor<4096x4096xf32>
    %56 = stablehlo.subtract %arg3, %55 : tensor<4096x4096xf32>
    return %47, %50, %53, %56 : tensor<4096x4096xf32>, tensor<4096x4096xf32>, tensor<4096x4096xf32>, tensor<4096x4096xf32>
  }
}
