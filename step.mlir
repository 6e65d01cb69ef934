module @jit_step attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4096x4096xf32>, %arg1: tensor<4096x4096xf32>, %arg2: tensor<4096x4096xf32>, %arg3: tensor<4096x4096xf32>, %arg4: tensor<4096x4096xf32>, %arg5: tensor<4096x4096xf32>, %arg6: tensor<4096x4096xf32>, %arg7: tensor<4096x4096xf32>, %arg8: tensor<65536x4096xf32>, %arg9: tensor<65536x4096xf32>) -> (tensor<4096x4096xf32> {jax.result_info = "result[0]"}, tensor<4096x4096xf32> {jax.result_info = "result[1]"}, tensor<4096x4096xf32> {jax.result_info = "result[2]"}, tensor<4096x4096xf32> {jax.result_info = "result[3]"}, tensor<4096x4096xf32> {jax.result_info = "result[4]"}, tensor<4096x4096xf32> {jax.result_info = "result[5]"}, tensor<4096x4096xf32> {jax.result_info = "result[6]"}, tensor<4096x4096xf32> {jax.result_info = "result[7]"}) {
    %0 = stablehlo.dot_general %arg8, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<4096x4096xf32>) -> tensor<65536x4096xf32>
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
    %16 = stablehlo.dot_general %13, %arg4, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<4096x4096xf32>) -> tensor<65536x4096xf32>
    %17 = stablehlo.tanh %16 : tensor<65536x4096xf32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %18 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<65536x4096xf32>
    %19 = stablehlo.subtract %18, %17 : tensor<65536x4096xf32>
    %20 = stablehlo.dot_general %17, %arg5, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<4096x4096xf32>) -> tensor<65536x4096xf32>
    %21 = stablehlo.tanh %20 : tensor<65536x4096xf32>
    %cst_4 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %22 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<65536x4096xf32>
    %23 = stablehlo.subtract %22, %21 : tensor<65536x4096xf32>
    %24 = stablehlo.dot_general %21, %arg6, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<4096x4096xf32>) -> tensor<65536x4096xf32>
    %25 = stablehlo.tanh %24 : tensor<65536x4096xf32>
    %cst_5 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %26 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<65536x4096xf32>
    %27 = stablehlo.subtract %26, %25 : tensor<65536x4096xf32>
    %28 = stablehlo.dot_general %25, %arg7, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<4096x4096xf32>) -> tensor<65536x4096xf32>
    %29 = stablehlo.tanh %28 : tensor<65536x4096xf32>
    %cst_6 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %30 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<65536x4096xf32>
    %31 = stablehlo.subtract %30, %29 : tensor<65536x4096xf32>
    %32 = stablehlo.subtract %29, %arg9 : tensor<65536x4096xf32>
    %cst_7 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %33 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<65536x4096xf32>
    %34 = stablehlo.multiply %33, %32 : tensor<65536x4096xf32>
    %cst_8 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_9 = stablehlo.constant dense<0x4D800000> : tensor<f32>
    %35 = stablehlo.divide %cst_8, %cst_9 : tensor<f32>
    %36 = stablehlo.broadcast_in_dim %35, dims = [] : (tensor<f32>) -> tensor<65536x4096xf32>
    %37 = stablehlo.multiply %36, %34 : tensor<65536x4096xf32>
    %38 = stablehlo.multiply %37, %31 : tensor<65536x4096xf32>
    %39 = stablehlo.multiply %38, %29 : tensor<65536x4096xf32>
    %40 = stablehlo.add %38, %39 : tensor<65536x4096xf32>
    %41 = stablehlo.dot_general %40, %25, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<65536x4096xf32>) -> tensor<4096x4096xf32>
    %42 = stablehlo.transpose %41, dims = [1, 0] : (tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
    %43 = stablehlo.dot_general %40, %arg7, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<4096x4096xf32>) -> tensor<65536x4096xf32>
    %44 = stablehlo.multiply %43, %27 : tensor<65536x4096xf32>
    %45 = stablehlo.multiply %44, %25 : tensor<65536x4096xf32>
    %46 = stablehlo.add %44, %45 : tensor<65536x4096xf32>
    %47 = stablehlo.dot_general %46, %21, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<65536x4096xf32>) -> tensor<4096x4096xf32>
    %48 = stablehlo.transpose %47, dims = [1, 0] : (tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
    %49 = stablehlo.dot_general %46, %arg6, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<4096x4096xf32>) -> tensor<65536x4096xf32>
    %50 = stablehlo.multiply %49, %23 : tensor<65536x4096xf32>
    %51 = stablehlo.multiply %50, %21 : tensor<65536x4096xf32>
    %52 = stablehlo.add %50, %51 : tensor<65536x4096xf32>
    %53 = stablehlo.dot_general %52, %17, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<65536x4096xf32>) -> tensor<4096x4096xf32>
    %54 = stablehlo.transpose %53, dims = [1, 0] : (tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
    %55 = stablehlo.dot_general %52, %arg5, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<4096x4096xf32>) -> tensor<65536x4096xf32>
    %56 = stablehlo.multiply %55, %19 : tensor<65536x4096xf32>
    %57 = stablehlo.multiply %56, %17 : tensor<65536x4096xf32>
    %58 = stablehlo.add %56, %57 : tensor<65536x4096xf32>
    %59 = stablehlo.dot_general %58, %13, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<65536x4096xf32>) -> tensor<4096x4096xf32>
    %60 = stablehlo.transpose %59, dims = [1, 0] : (tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
    %61 = stablehlo.dot_general %58, %arg4, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<4096x4096xf32>) -> tensor<65536x4096xf32>
    %62 = stablehlo.multiply %61, %15 : tensor<65536x4096xf32>
    %63 = stablehlo.multiply %62, %13 : tensor<65536x4096xf32>
    %64 = stablehlo.add %62, %63 : tensor<65536x4096xf32>
    %65 = stablehlo.dot_general %64, %9, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<65536x4096xf32>) -> tensor<4096x4096xf32>
    %66 = stablehlo.transpose %65, dims = [1, 0] : (tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
    %67 = stablehlo.dot_general %64, %arg3, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<4096x4096xf32>) -> tensor<65536x4096xf32>
    %68 = stablehlo.multiply %67, %11 : tensor<65536x4096xf32>
    %69 = stablehlo.multiply %68, %9 : tensor<65536x4096xf32>
    %70 = stablehlo.add %68, %69 : tensor<65536x4096xf32>
    %71 = stablehlo.dot_general %70, %5, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<65536x4096xf32>) -> tensor<4096x4096xf32>
    %72 = stablehlo.transpose %71, dims = [1, 0] : (tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
    %73 = stablehlo.dot_general %70, %arg2, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<4096x4096xf32>) -> tensor<65536x4096xf32>
    %74 = stablehlo.multiply %73, %7 : tensor<65536x4096xf32>
    %75 = stablehlo.multiply %74, %5 : tensor<65536x4096xf32>
    %76 = stablehlo.add %74, %75 : tensor<65536x4096xf32>
    %77 = stablehlo.dot_general %76, %1, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<65536x4096xf32>) -> tensor<4096x4096xf32>
    %78 = stablehlo.transpose %77, dims = [1, 0] : (tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
    %79 = stablehlo.dot_general %76, %arg1, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<4096x4096xf32>) -> tensor<65536x4096xf32>
    %80 = stablehlo.multiply %79, %3 : tensor<65536x4096xf32>
    %81 = stablehlo.multiply %80, %1 : tensor<65536x4096xf32>
    %82 = stablehlo.add %80, %81 : tensor<65536x4096xf32>
    %83 = stablehlo.dot_general %82, %arg8, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<65536x4096xf32>, tensor<65536x4096xf32>) -> tensor<4096x4096xf32>
    %84 = stablehlo.transpose %83, dims = [1, 0] : (tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
    %cst_10 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %85 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<4096x4096xf32>
    %86 = stablehlo.multiply %85, %84 : tensor<4096x4096xf32>
    %87 = stablehlo.subtract %arg0, %86 : tensor<4096x4096xf32>
    %cst_11 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %88 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<4096x4096xf32>
    %89 = stablehlo.multiply %88, %78 : tensor<4096x4096xf32>
    %90 = stablehlo.subtract %arg1, %89 : tensor<4096x4096xf32>
    %cst_12 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %91 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<4096x4096xf32>
    %92 = stablehlo.multiply %91, %72 : tensor<4096x4096xf32>
    %93 = stablehlo.subtract %arg2, %92 : tensor<4096x4096xf32>
    %cst_13 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %94 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<4096x4096xf32>
    %95 = stablehlo.multiply %94, %66 : tensor<4096x4096xf32>
    %96 = stablehlo.subtract %arg3, %95 : tensor<4096x4096xf32>
    %cst_14 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %97 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<4096x4096xf32>
    %98 = stablehlo.multiply %97, %60 : tensor<4096x4096xf32>
    %99 = stablehlo.subtract %arg4, %98 : tensor<4096x4096xf32>
    %cst_15 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %100 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<4096x4096xf32>
    %101 = stablehlo.multiply %100, %54 : tensor<4096x4096xf32>
    %102 = stablehlo.subtract %arg5, %101 : tensor<4096x4096xf32>
    %cst_16 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %103 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<4096x4096xf32>
    %104 = stablehlo.multiply %103, %48 : tensor<4096x4096xf32>
    %105 = stablehlo.subtract %arg6, %104 : tensor<4096x4096xf32>
    %cst_17 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %106 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<4096x4096xf32>
    %107 = stablehlo.multiply %106, %42 : tensor<4096x4096xf32>
    %108 = stablehlo.subtract %arg7, %107 : tensor<4096x4096xf32>
    return %87, %90, %93, %96, %99, %102, %105, %108 : tensor<4096x4096xf32>, tensor<4096x4096xf32>, tensor<4096x4096xf32>, tensor<4096x4096xf32>, tensor<4096x4096xf32>, tensor<4096x4096xf32>, tensor<4096x4096xf32>, tensor<4096x4096xf32>
  }
}
