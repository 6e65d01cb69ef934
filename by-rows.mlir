module @jit_step attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=4, "model"=2]> {stablehlo.mesh = {axes = [{name = "data", size = 4 : i64}, {name = "model", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg1: tensor<256x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}, %arg2: tensor<64x4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg3: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg4: tensor<4x16x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}, {}]>}, %arg5: tensor<64x4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg6: tensor<64x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}, %arg7: tensor<64x4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg8: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg9: tensor<256x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}, %arg10: tensor<64x4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg11: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg12: tensor<4x16x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}, {}]>}, %arg13: tensor<64x4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg14: tensor<64x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}, %arg15: tensor<64x4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg16: tensor<256x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg17: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg18: tensor<64x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}, %arg19: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg20: tensor<256x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}, %arg21: tensor<64x4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg22: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg23: tensor<4x16x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}, {}]>}, %arg24: tensor<64x4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg25: tensor<64x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}, %arg26: tensor<64x4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg27: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg28: tensor<256x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}, %arg29: tensor<64x4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg30: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg31: tensor<4x16x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}, {}]>}, %arg32: tensor<64x4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg33: tensor<64x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}, %arg34: tensor<64x4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg35: tensor<256x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg36: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg37: tensor<64x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}, %arg38: tensor<16x32xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, %arg39: tensor<16x32xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> (tensor<64xf32> {jax.result_info = "result[0]['blocks'][0]['attention_norm']"}, tensor<256x64xf32> {jax.result_info = "result[0]['blocks'][0]['down']"}, tensor<64x4x16xf32> {jax.result_info = "result[0]['blocks'][0]['key']"}, tensor<64xf32> {jax.result_info = "result[0]['blocks'][0]['mlp_norm']"}, tensor<4x16x64xf32> {jax.result_info = "result[0]['blocks'][0]['output']"}, tensor<64x4x16xf32> {jax.result_info = "result[0]['blocks'][0]['query']"}, tensor<64x256xf32> {jax.result_info = "result[0]['blocks'][0]['up']"}, tensor<64x4x16xf32> {jax.result_info = "result[0]['blocks'][0]['value']"}, tensor<64xf32> {jax.result_info = "result[0]['blocks'][1]['attention_norm']"}, tensor<256x64xf32> {jax.result_info = "result[0]['blocks'][1]['down']"}, tensor<64x4x16xf32> {jax.result_info = "result[0]['blocks'][1]['key']"}, tensor<64xf32> {jax.result_info = "result[0]['blocks'][1]['mlp_norm']"}, tensor<4x16x64xf32> {jax.result_info = "result[0]['blocks'][1]['output']"}, tensor<64x4x16xf32> {jax.result_info = "result[0]['blocks'][1]['query']"}, tensor<64x256xf32> {jax.result_info = "result[0]['blocks'][1]['up']"}, tensor<64x4x16xf32> {jax.result_info = "result[0]['blocks'][1]['value']"}, tensor<256x64xf32> {jax.result_info = "result[0]['embedding']"}, tensor<64xf32> {jax.result_info = "result[0]['final_norm']"}, tensor<64x256xf32> {jax.result_info = "result[0]['unembedding']"}, tensor<64xf32> {jax.result_info = "result[1]['blocks'][0]['attention_norm']"}, tensor<256x64xf32> {jax.result_info = "result[1]['blocks'][0]['down']"}, tensor<64x4x16xf32> {jax.result_info = "result[1]['blocks'][0]['key']"}, tensor<64xf32> {jax.result_info = "result[1]['blocks'][0]['mlp_norm']"}, tensor<4x16x64xf32> {jax.result_info = "result[1]['blocks'][0]['output']"}, tensor<64x4x16xf32> {jax.result_info = "result[1]['blocks'][0]['query']"}, tensor<64x256xf32> {jax.result_info = "result[1]['blocks'][0]['up']"}, tensor<64x4x16xf32> {jax.result_info = "result[1]['blocks'][0]['value']"}, tensor<64xf32> {jax.result_info = "result[1]['blocks'][1]['attention_norm']"}, tensor<256x64xf32> {jax.result_info = "result[1]['blocks'][1]['down']"}, tensor<64x4x16xf32> {jax.result_info = "result[1]['blocks'][1]['key']"}, tensor<64xf32> {jax.result_info = "result[1]['blocks'][1]['mlp_norm']"}, tensor<4x16x64xf32> {jax.result_info = "result[1]['blocks'][1]['output']"}, tensor<64x4x16xf32> {jax.result_info = "result[1]['blocks'][1]['query']"}, tensor<64x256xf32> {jax.result_info = "result[1]['blocks'][1]['up']"}, tensor<64x4x16xf32> {jax.result_info = "result[1]['blocks'][1]['value']"}, tensor<256x64xf32> {jax.result_info = "result[1]['embedding']"}, tensor<64xf32> {jax.result_info = "result[1]['final_norm']"}, tensor<64x256xf32> {jax.result_info = "result[1]['unembedding']"}, tensor<f32> {jax.result_info = "result[2]"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<16x32xi32>
    %1 = stablehlo.compare LT, %arg38, %0, SIGNED : (tensor<16x32xi32>, tensor<16x32xi32>) -> tensor<16x32xi1>
    %c_0 = stablehlo.constant dense<256> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<16x32xi32>
    %3 = stablehlo.add %arg38, %2 : tensor<16x32xi32>
    %4 = stablehlo.select %1, %3, %arg38 : tensor<16x32xi1>, tensor<16x32xi32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<16x32xi32>) -> tensor<16x32x1xi32>
    %6 = "stablehlo.gather"(%arg16, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 64>}> : (tensor<256x64xf32>, tensor<16x32x1xi32>) -> tensor<16x32x64xf32>
    %7 = stablehlo.multiply %6, %6 : tensor<16x32x64xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %8 = stablehlo.reduce(%7 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1] : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
    %cst_1 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
    %11 = stablehlo.divide %9, %10 : tensor<16x32x1xf32>
    %cst_2 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
    %13 = stablehlo.add %11, %12 : tensor<16x32x1xf32>
    %14 = stablehlo.rsqrt %13 : tensor<16x32x1xf32>
    %15 = stablehlo.divide %14, %13 : tensor<16x32x1xf32>
    %cst_3 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
    %17 = stablehlo.multiply %16, %15 : tensor<16x32x1xf32>
    %18 = stablehlo.broadcast_in_dim %14, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
    %19 = stablehlo.multiply %6, %18 : tensor<16x32x64xf32>
    %20 = stablehlo.broadcast_in_dim %arg0, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %21 = stablehlo.broadcast_in_dim %20, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
    %22 = stablehlo.multiply %19, %21 : tensor<16x32x64xf32>
    %23 = stablehlo.dot_general %22, %arg5, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x32x64xf32>, tensor<64x4x16xf32>) -> tensor<16x32x4x16xf32>
    %24 = stablehlo.dot_general %22, %arg2, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x32x64xf32>, tensor<64x4x16xf32>) -> tensor<16x32x4x16xf32>
    %25 = stablehlo.dot_general %22, %arg7, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x32x64xf32>, tensor<64x4x16xf32>) -> tensor<16x32x4x16xf32>
    %26 = stablehlo.dot_general %23, %24, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<16x32x4x16xf32>, tensor<16x32x4x16xf32>) -> tensor<16x4x32x32xf32>
    %cst_4 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %27 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<16x4x32x32xf32>
    %28 = stablehlo.divide %26, %27 : tensor<16x4x32x32xf32>
    %c_5 = stablehlo.constant dense<true> : tensor<i1>
    %29 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i1>) -> tensor<32x32xi1>
    %30 = call @tril(%29) : (tensor<32x32xi1>) -> tensor<32x32xi1>
    %cst_6 = stablehlo.constant dense<-1.000000e+09> : tensor<f32>
    %31:2 = call @_where(%30, %28, %cst_6) : (tensor<32x32xi1>, tensor<16x4x32x32xf32>, tensor<f32>) -> (tensor<16x4x32x32xf32>, tensor<16x4x32x32xi1>)
    %cst_7 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %32 = stablehlo.reduce(%31#0 init: %cst_7) applies stablehlo.maximum across dimensions = [3] : (tensor<16x4x32x32xf32>, tensor<f32>) -> tensor<16x4x32xf32>
    %cst_8 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %33 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<16x4x32xf32>
    %34 = stablehlo.maximum %33, %32 : tensor<16x4x32xf32>
    %35 = stablehlo.broadcast_in_dim %34, dims = [0, 1, 2] : (tensor<16x4x32xf32>) -> tensor<16x4x32x1xf32>
    %36 = stablehlo.broadcast_in_dim %35, dims = [0, 1, 2, 3] : (tensor<16x4x32x1xf32>) -> tensor<16x4x32x32xf32>
    %37 = stablehlo.subtract %31#0, %36 : tensor<16x4x32x32xf32>
    %38 = stablehlo.exponential %37 : tensor<16x4x32x32xf32>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %39 = stablehlo.reduce(%38 init: %cst_9) applies stablehlo.add across dimensions = [3] : (tensor<16x4x32x32xf32>, tensor<f32>) -> tensor<16x4x32xf32>
    %40 = stablehlo.broadcast_in_dim %39, dims = [0, 1, 2] : (tensor<16x4x32xf32>) -> tensor<16x4x32x1xf32>
    %41 = stablehlo.broadcast_in_dim %40, dims = [0, 1, 2, 3] : (tensor<16x4x32x1xf32>) -> tensor<16x4x32x32xf32>
    %42 = stablehlo.divide %38, %41 : tensor<16x4x32x32xf32>
    %43 = stablehlo.multiply %40, %40 : tensor<16x4x32x1xf32>
    %cst_10 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %44 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<16x4x32x1xf32>
    %45 = stablehlo.divide %44, %43 : tensor<16x4x32x1xf32>
    %46 = stablehlo.dot_general %25, %42, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<16x32x4x16xf32>, tensor<16x4x32x32xf32>) -> tensor<16x4x16x32xf32>
    %47 = stablehlo.transpose %46, dims = [0, 3, 1, 2] : (tensor<16x4x16x32xf32>) -> tensor<16x32x4x16xf32>
    %48 = stablehlo.dot_general %47, %arg4, contracting_dims = [3, 2] x [1, 0], precision = [DEFAULT, DEFAULT] : (tensor<16x32x4x16xf32>, tensor<4x16x64xf32>) -> tensor<16x32x64xf32>
    %49 = stablehlo.add %6, %48 : tensor<16x32x64xf32>
    %50 = stablehlo.multiply %49, %49 : tensor<16x32x64xf32>
    %cst_11 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %51 = stablehlo.reduce(%50 init: %cst_11) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
    %52 = stablehlo.broadcast_in_dim %51, dims = [0, 1] : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
    %cst_12 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %53 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
    %54 = stablehlo.divide %52, %53 : tensor<16x32x1xf32>
    %cst_13 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
    %55 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
    %56 = stablehlo.add %54, %55 : tensor<16x32x1xf32>
    %57 = stablehlo.rsqrt %56 : tensor<16x32x1xf32>
    %58 = stablehlo.divide %57, %56 : tensor<16x32x1xf32>
    %cst_14 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
    %59 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
    %60 = stablehlo.multiply %59, %58 : tensor<16x32x1xf32>
    %61 = stablehlo.broadcast_in_dim %57, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
    %62 = stablehlo.multiply %49, %61 : tensor<16x32x64xf32>
    %63 = stablehlo.broadcast_in_dim %arg3, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %64 = stablehlo.broadcast_in_dim %63, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
    %65 = stablehlo.multiply %62, %64 : tensor<16x32x64xf32>
    %66 = stablehlo.dot_general %65, %arg6, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x32x64xf32>, tensor<64x256xf32>) -> tensor<16x32x256xf32>
    %67 = stablehlo.multiply %66, %66 : tensor<16x32x256xf32>
    %68 = stablehlo.multiply %67, %66 : tensor<16x32x256xf32>
    %69 = stablehlo.multiply %66, %66 : tensor<16x32x256xf32>
    %cst_15 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %70 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<16x32x256xf32>
    %71 = stablehlo.multiply %70, %69 : tensor<16x32x256xf32>
    %cst_16 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %72 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<16x32x256xf32>
    %73 = stablehlo.multiply %72, %68 : tensor<16x32x256xf32>
    %74 = stablehlo.add %66, %73 : tensor<16x32x256xf32>
    %cst_17 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %75 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<16x32x256xf32>
    %76 = stablehlo.multiply %75, %74 : tensor<16x32x256xf32>
    %77 = stablehlo.tanh %76 : tensor<16x32x256xf32>
    %cst_18 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %78 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<16x32x256xf32>
    %79 = stablehlo.subtract %78, %77 : tensor<16x32x256xf32>
    %cst_19 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %80 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<16x32x256xf32>
    %81 = stablehlo.add %80, %77 : tensor<16x32x256xf32>
    %cst_20 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %82 = stablehlo.broadcast_in_dim %cst_20, dims = [] : (tensor<f32>) -> tensor<16x32x256xf32>
    %83 = stablehlo.multiply %82, %81 : tensor<16x32x256xf32>
    %84 = stablehlo.multiply %66, %83 : tensor<16x32x256xf32>
    %85 = stablehlo.dot_general %84, %arg1, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x32x256xf32>, tensor<256x64xf32>) -> tensor<16x32x64xf32>
    %86 = stablehlo.add %49, %85 : tensor<16x32x64xf32>
    %87 = stablehlo.multiply %86, %86 : tensor<16x32x64xf32>
    %cst_21 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %88 = stablehlo.reduce(%87 init: %cst_21) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
    %89 = stablehlo.broadcast_in_dim %88, dims = [0, 1] : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
    %cst_22 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %90 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
    %91 = stablehlo.divide %89, %90 : tensor<16x32x1xf32>
    %cst_23 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
    %92 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
    %93 = stablehlo.add %91, %92 : tensor<16x32x1xf32>
    %94 = stablehlo.rsqrt %93 : tensor<16x32x1xf32>
    %95 = stablehlo.divide %94, %93 : tensor<16x32x1xf32>
    %cst_24 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
    %96 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
    %97 = stablehlo.multiply %96, %95 : tensor<16x32x1xf32>
    %98 = stablehlo.broadcast_in_dim %94, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
    %99 = stablehlo.multiply %86, %98 : tensor<16x32x64xf32>
    %100 = stablehlo.broadcast_in_dim %arg8, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %101 = stablehlo.broadcast_in_dim %100, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
    %102 = stablehlo.multiply %99, %101 : tensor<16x32x64xf32>
    %103 = stablehlo.dot_general %102, %arg13, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x32x64xf32>, tensor<64x4x16xf32>) -> tensor<16x32x4x16xf32>
    %104 = stablehlo.dot_general %102, %arg10, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x32x64xf32>, tensor<64x4x16xf32>) -> tensor<16x32x4x16xf32>
    %105 = stablehlo.dot_general %102, %arg15, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x32x64xf32>, tensor<64x4x16xf32>) -> tensor<16x32x4x16xf32>
    %106 = stablehlo.dot_general %103, %104, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<16x32x4x16xf32>, tensor<16x32x4x16xf32>) -> tensor<16x4x32x32xf32>
    %cst_25 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %107 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<16x4x32x32xf32>
    %108 = stablehlo.divide %106, %107 : tensor<16x4x32x32xf32>
    %c_26 = stablehlo.constant dense<true> : tensor<i1>
    %109 = stablehlo.broadcast_in_dim %c_26, dims = [] : (tensor<i1>) -> tensor<32x32xi1>
    %110 = call @tril(%109) : (tensor<32x32xi1>) -> tensor<32x32xi1>
    %cst_27 = stablehlo.constant dense<-1.000000e+09> : tensor<f32>
    %111:2 = call @_where(%110, %108, %cst_27) : (tensor<32x32xi1>, tensor<16x4x32x32xf32>, tensor<f32>) -> (tensor<16x4x32x32xf32>, tensor<16x4x32x32xi1>)
    %cst_28 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %112 = stablehlo.reduce(%111#0 init: %cst_28) applies stablehlo.maximum across dimensions = [3] : (tensor<16x4x32x32xf32>, tensor<f32>) -> tensor<16x4x32xf32>
    %cst_29 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %113 = stablehlo.broadcast_in_dim %cst_29, dims = [] : (tensor<f32>) -> tensor<16x4x32xf32>
    %114 = stablehlo.maximum %113, %112 : tensor<16x4x32xf32>
    %115 = stablehlo.broadcast_in_dim %114, dims = [0, 1, 2] : (tensor<16x4x32xf32>) -> tensor<16x4x32x1xf32>
    %116 = stablehlo.broadcast_in_dim %115, dims = [0, 1, 2, 3] : (tensor<16x4x32x1xf32>) -> tensor<16x4x32x32xf32>
    %117 = stablehlo.subtract %111#0, %116 : tensor<16x4x32x32xf32>
    %118 = stablehlo.exponential %117 : tensor<16x4x32x32xf32>
    %cst_30 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %119 = stablehlo.reduce(%118 init: %cst_30) applies stablehlo.add across dimensions = [3] : (tensor<16x4x32x32xf32>, tensor<f32>) -> tensor<16x4x32xf32>
    %120 = stablehlo.broadcast_in_dim %119, dims = [0, 1, 2] : (tensor<16x4x32xf32>) -> tensor<16x4x32x1xf32>
    %121 = stablehlo.broadcast_in_dim %120, dims = [0, 1, 2, 3] : (tensor<16x4x32x1xf32>) -> tensor<16x4x32x32xf32>
    %122 = stablehlo.divide %118, %121 : tensor<16x4x32x32xf32>
    %123 = stablehlo.multiply %120, %120 : tensor<16x4x32x1xf32>
    %cst_31 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %124 = stablehlo.broadcast_in_dim %cst_31, dims = [] : (tensor<f32>) -> tensor<16x4x32x1xf32>
    %125 = stablehlo.divide %124, %123 : tensor<16x4x32x1xf32>
    %126 = stablehlo.dot_general %105, %122, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<16x32x4x16xf32>, tensor<16x4x32x32xf32>) -> tensor<16x4x16x32xf32>
    %127 = stablehlo.transpose %126, dims = [0, 3, 1, 2] : (tensor<16x4x16x32xf32>) -> tensor<16x32x4x16xf32>
    %128 = stablehlo.dot_general %127, %arg12, contracting_dims = [3, 2] x [1, 0], precision = [DEFAULT, DEFAULT] : (tensor<16x32x4x16xf32>, tensor<4x16x64xf32>) -> tensor<16x32x64xf32>
    %129 = stablehlo.add %86, %128 : tensor<16x32x64xf32>
    %130 = stablehlo.multiply %129, %129 : tensor<16x32x64xf32>
    %cst_32 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %131 = stablehlo.reduce(%130 init: %cst_32) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
    %132 = stablehlo.broadcast_in_dim %131, dims = [0, 1] : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
    %cst_33 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %133 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
    %134 = stablehlo.divide %132, %133 : tensor<16x32x1xf32>
    %cst_34 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
    %135 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
    %136 = stablehlo.add %134, %135 : tensor<16x32x1xf32>
    %137 = stablehlo.rsqrt %136 : tensor<16x32x1xf32>
    %138 = stablehlo.divide %137, %136 : tensor<16x32x1xf32>
    %cst_35 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
    %139 = stablehlo.broadcast_in_dim %cst_35, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
    %140 = stablehlo.multiply %139, %138 : tensor<16x32x1xf32>
    %141 = stablehlo.broadcast_in_dim %137, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
    %142 = stablehlo.multiply %129, %141 : tensor<16x32x64xf32>
    %143 = stablehlo.broadcast_in_dim %arg11, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %144 = stablehlo.broadcast_in_dim %143, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
    %145 = stablehlo.multiply %142, %144 : tensor<16x32x64xf32>
    %146 = stablehlo.dot_general %145, %arg14, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x32x64xf32>, tensor<64x256xf32>) -> tensor<16x32x256xf32>
    %147 = stablehlo.multiply %146, %146 : tensor<16x32x256xf32>
    %148 = stablehlo.multiply %147, %146 : tensor<16x32x256xf32>
    %149 = stablehlo.multiply %146, %146 : tensor<16x32x256xf32>
    %cst_36 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %150 = stablehlo.broadcast_in_dim %cst_36, dims = [] : (tensor<f32>) -> tensor<16x32x256xf32>
    %151 = stablehlo.multiply %150, %149 : tensor<16x32x256xf32>
    %cst_37 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %152 = stablehlo.broadcast_in_dim %cst_37, dims = [] : (tensor<f32>) -> tensor<16x32x256xf32>
    %153 = stablehlo.multiply %152, %148 : tensor<16x32x256xf32>
    %154 = stablehlo.add %146, %153 : tensor<16x32x256xf32>
    %cst_38 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %155 = stablehlo.broadcast_in_dim %cst_38, dims = [] : (tensor<f32>) -> tensor<16x32x256xf32>
    %156 = stablehlo.multiply %155, %154 : tensor<16x32x256xf32>
    %157 = stablehlo.tanh %156 : tensor<16x32x256xf32>
    %cst_39 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %158 = stablehlo.broadcast_in_dim %cst_39, dims = [] : (tensor<f32>) -> tensor<16x32x256xf32>
    %159 = stablehlo.subtract %158, %157 : tensor<16x32x256xf32>
    %cst_40 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %160 = stablehlo.broadcast_in_dim %cst_40, dims = [] : (tensor<f32>) -> tensor<16x32x256xf32>
    %161 = stablehlo.add %160, %157 : tensor<16x32x256xf32>
    %cst_41 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %162 = stablehlo.broadcast_in_dim %cst_41, dims = [] : (tensor<f32>) -> tensor<16x32x256xf32>
    %163 = stablehlo.multiply %162, %161 : tensor<16x32x256xf32>
    %164 = stablehlo.multiply %146, %163 : tensor<16x32x256xf32>
    %165 = stablehlo.dot_general %164, %arg9, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x32x256xf32>, tensor<256x64xf32>) -> tensor<16x32x64xf32>
    %166 = stablehlo.add %129, %165 : tensor<16x32x64xf32>
    %167 = stablehlo.multiply %166, %166 : tensor<16x32x64xf32>
    %cst_42 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %168 = stablehlo.reduce(%167 init: %cst_42) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
    %169 = stablehlo.broadcast_in_dim %168, dims = [0, 1] : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
    %cst_43 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %170 = stablehlo.broadcast_in_dim %cst_43, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
    %171 = stablehlo.divide %169, %170 : tensor<16x32x1xf32>
    %cst_44 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
    %172 = stablehlo.broadcast_in_dim %cst_44, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
    %173 = stablehlo.add %171, %172 : tensor<16x32x1xf32>
    %174 = stablehlo.rsqrt %173 : tensor<16x32x1xf32>
    %175 = stablehlo.divide %174, %173 : tensor<16x32x1xf32>
    %cst_45 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
    %176 = stablehlo.broadcast_in_dim %cst_45, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
    %177 = stablehlo.multiply %176, %175 : tensor<16x32x1xf32>
    %178 = stablehlo.broadcast_in_dim %174, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
    %179 = stablehlo.multiply %166, %178 : tensor<16x32x64xf32>
    %180 = stablehlo.broadcast_in_dim %arg17, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %181 = stablehlo.broadcast_in_dim %180, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
    %182 = stablehlo.multiply %179, %181 : tensor<16x32x64xf32>
    %183 = stablehlo.dot_general %182, %arg18, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x32x64xf32>, tensor<64x256xf32>) -> tensor<16x32x256xf32>
    %184:3 = call @log_softmax(%183) : (tensor<16x32x256xf32>) -> (tensor<16x32x256xf32>, tensor<16x32x256xf32>, tensor<16x32x1xf32>)
    %185 = call @_one_hot(%arg39) : (tensor<16x32xi32>) -> tensor<16x32x256xf32>
    %186 = stablehlo.multiply %184#0, %185 : tensor<16x32x256xf32>
    %cst_46 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %187 = stablehlo.reduce(%186 init: %cst_46) applies stablehlo.add across dimensions = [2] : (tensor<16x32x256xf32>, tensor<f32>) -> tensor<16x32xf32>
    %cst_47 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %188 = stablehlo.reduce(%187 init: %cst_47) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x32xf32>, tensor<f32>) -> tensor<f32>
    %cst_48 = stablehlo.constant dense<5.120000e+02> : tensor<f32>
    %189 = stablehlo.divide %188, %cst_48 : tensor<f32>
    %190 = stablehlo.negate %189 : tensor<f32>
    %cst_49 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %191 = stablehlo.negate %cst_49 : tensor<f32>
    %cst_50 = stablehlo.constant dense<5.120000e+02> : tensor<f32>
    %192 = stablehlo.divide %191, %cst_50 : tensor<f32>
    %193 = stablehlo.broadcast_in_dim %192, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %194 = stablehlo.broadcast_in_dim %193, dims = [0, 1] : (tensor<16x32xf32>) -> tensor<16x32x256xf32>
    %195 = stablehlo.multiply %194, %185 : tensor<16x32x256xf32>
    %196 = call @log_softmax_0(%184#1, %184#2, %195) : (tensor<16x32x256xf32>, tensor<16x32x1xf32>, tensor<16x32x256xf32>) -> tensor<16x32x256xf32>
    %197 = stablehlo.dot_general %196, %182, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<16x32x256xf32>, tensor<16x32x64xf32>) -> tensor<256x64xf32>
    %198 = stablehlo.transpose %197, dims = [1, 0] : (tensor<256x64xf32>) -> tensor<64x256xf32>
    %199 = stablehlo.dot_general %196, %arg18, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x32x256xf32>, tensor<64x256xf32>) -> tensor<16x32x64xf32>
    %200 = stablehlo.multiply %179, %199 : tensor<16x32x64xf32>
    %cst_51 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %201 = stablehlo.reduce(%200 init: %cst_51) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<64xf32>
    %202 = stablehlo.reshape %201 : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %203 = stablehlo.broadcast_in_dim %180, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
    %204 = stablehlo.multiply %199, %203 : tensor<16x32x64xf32>
    %cst_52 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %205 = stablehlo.reduce(%202 init: %cst_52) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x64xf32>, tensor<f32>) -> tensor<64xf32>
    %206 = stablehlo.multiply %166, %204 : tensor<16x32x64xf32>
    %cst_53 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %207 = stablehlo.reduce(%206 init: %cst_53) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
    %208 = stablehlo.reshape %207 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
    %209 = stablehlo.broadcast_in_dim %174, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
    %210 = stablehlo.multiply %204, %209 : tensor<16x32x64xf32>
    %211 = stablehlo.multiply %208, %177 : tensor<16x32x1xf32>
    %cst_54 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %212 = stablehlo.broadcast_in_dim %cst_54, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
    %213 = stablehlo.divide %211, %212 : tensor<16x32x1xf32>
    %cst_55 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %214 = stablehlo.reduce(%213 init: %cst_55) applies stablehlo.add across dimensions = [2] : (tensor<16x32x1xf32>, tensor<f32>) -> tensor<16x32xf32>
    %215 = stablehlo.broadcast_in_dim %214, dims = [0, 1] : (tensor<16x32xf32>) -> tensor<16x32x64xf32>
    %216 = stablehlo.multiply %166, %215 : tensor<16x32x64xf32>
    %217 = stablehlo.add %210, %216 : tensor<16x32x64xf32>
    %218 = stablehlo.multiply %215, %166 : tensor<16x32x64xf32>
    %219 = stablehlo.add %217, %218 : tensor<16x32x64xf32>
    %220 = stablehlo.dot_general %219, %164, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<16x32x64xf32>, tensor<16x32x256xf32>) -> tensor<64x256xf32>
    %221 = stablehlo.transpose %220, dims = [1, 0] : (tensor<64x256xf32>) -> tensor<256x64xf32>
    %222 = stablehlo.dot_general %219, %arg9, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x32x64xf32>, tensor<256x64xf32>) -> tensor<16x32x256xf32>
    %223 = stablehlo.multiply %146, %222 : tensor<16x32x256xf32>
    %224 = stablehlo.multiply %222, %163 : tensor<16x32x256xf32>
    %cst_56 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %225 = stablehlo.broadcast_in_dim %cst_56, dims = [] : (tensor<f32>) -> tensor<16x32x256xf32>
    %226 = stablehlo.multiply %225, %223 : tensor<16x32x256xf32>
    %227 = stablehlo.multiply %226, %159 : tensor<16x32x256xf32>
    %228 = stablehlo.multiply %227, %157 : tensor<16x32x256xf32>
    %229 = stablehlo.add %227, %228 : tensor<16x32x256xf32>
    %cst_57 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %230 = stablehlo.broadcast_in_dim %cst_57, dims = [] : (tensor<f32>) -> tensor<16x32x256xf32>
    %231 = stablehlo.multiply %230, %229 : tensor<16x32x256xf32>
    %232 = stablehlo.add %224, %231 : tensor<16x32x256xf32>
    %cst_58 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %233 = stablehlo.broadcast_in_dim %cst_58, dims = [] : (tensor<f32>) -> tensor<16x32x256xf32>
    %234 = stablehlo.multiply %233, %231 : tensor<16x32x256xf32>
    %235 = stablehlo.multiply %234, %151 : tensor<16x32x256xf32>
    %236 = stablehlo.add %232, %235 : tensor<16x32x256xf32>
    %237 = stablehlo.dot_general %236, %145, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<16x32x256xf32>, tensor<16x32x64xf32>) -> tensor<256x64xf32>
    %238 = stablehlo.transpose %237, dims = [1, 0] : (tensor<256x64xf32>) -> tensor<64x256xf32>
    %239 = stablehlo.dot_general %236, %arg14, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x32x256xf32>, tensor<64x256xf32>) -> tensor<16x32x64xf32>
    %240 = stablehlo.multiply %142, %239 : tensor<16x32x64xf32>
    %cst_59 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %241 = stablehlo.reduce(%240 init: %cst_59) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<64xf32>
    %242 = stablehlo.reshape %241 : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %243 = stablehlo.broadcast_in_dim %143, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
    %244 = stablehlo.multiply %239, %243 : tensor<16x32x64xf32>
    %cst_60 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %245 = stablehlo.reduce(%242 init: %cst_60) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x64xf32>, tensor<f32>) -> tensor<64xf32>
    %246 = stablehlo.multiply %129, %244 : tensor<16x32x64xf32>
    %cst_61 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %247 = stablehlo.reduce(%246 init: %cst_61) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
    %248 = stablehlo.reshape %247 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
    %249 = stablehlo.broadcast_in_dim %137, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
    %250 = stablehlo.multiply %244, %249 : tensor<16x32x64xf32>
    %251 = stablehlo.add %219, %250 : tensor<16x32x64xf32>
    %252 = stablehlo.multiply %248, %140 : tensor<16x32x1xf32>
    %cst_62 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %253 = stablehlo.broadcast_in_dim %cst_62, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
    %254 = stablehlo.divide %252, %253 : tensor<16x32x1xf32>
    %cst_63 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %255 = stablehlo.reduce(%254 init: %cst_63) applies stablehlo.add across dimensions = [2] : (tensor<16x32x1xf32>, tensor<f32>) -> tensor<16x32xf32>
    %256 = stablehlo.broadcast_in_dim %255, dims = [0, 1] : (tensor<16x32xf32>) -> tensor<16x32x64xf32>
    %257 = stablehlo.multiply %129, %256 : tensor<16x32x64xf32>
    %258 = stablehlo.add %251, %257 : tensor<16x32x64xf32>
    %259 = stablehlo.multiply %256, %129 : tensor<16x32x64xf32>
    %260 = stablehlo.add %258, %259 : tensor<16x32x64xf32>
    %261 = stablehlo.dot_general %260, %127, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<16x32x64xf32>, tensor<16x32x4x16xf32>) -> tensor<64x4x16xf32>
    %262 = stablehlo.transpose %261, dims = [1, 2, 0] : (tensor<64x4x16xf32>) -> tensor<4x16x64xf32>
    %263 = stablehlo.dot_general %260, %arg12, contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<16x32x64xf32>, tensor<4x16x64xf32>) -> tensor<16x32x4x16xf32>
    %264 = stablehlo.transpose %263, dims = [0, 2, 3, 1] : (tensor<16x32x4x16xf32>) -> tensor<16x4x16x32xf32>
    %265 = stablehlo.dot_general %264, %105, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<16x4x16x32xf32>, tensor<16x32x4x16xf32>) -> tensor<16x4x32x32xf32>
    %266 = stablehlo.dot_general %264, %122, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<16x4x16x32xf32>, tensor<16x4x32x32xf32>) -> tensor<16x4x16x32xf32>
    %267 = stablehlo.transpose %266, dims = [0, 3, 1, 2] : (tensor<16x4x16x32xf32>) -> tensor<16x32x4x16xf32>
    %268 = stablehlo.broadcast_in_dim %125, dims = [0, 1, 2, 3] : (tensor<16x4x32x1xf32>) -> tensor<16x4x32x32xf32>
    %269 = stablehlo.multiply %265, %268 : tensor<16x4x32x32xf32>
    %270 = stablehlo.multiply %269, %118 : tensor<16x4x32x32xf32>
    %cst_64 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %271 = stablehlo.reduce(%270 init: %cst_64) applies stablehlo.add across dimensions = [3] : (tensor<16x4x32x32xf32>, tensor<f32>) -> tensor<16x4x32xf32>
    %272 = stablehlo.reshape %271 : (tensor<16x4x32xf32>) -> tensor<16x4x32x1xf32>
    %273 = stablehlo.negate %272 : tensor<16x4x32x1xf32>
    %274 = stablehlo.broadcast_in_dim %120, dims = [0, 1, 2, 3] : (tensor<16x4x32x1xf32>) -> tensor<16x4x32x32xf32>
    %275 = stablehlo.divide %265, %274 : tensor<16x4x32x32xf32>
    %cst_65 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %276 = stablehlo.reduce(%273 init: %cst_65) applies stablehlo.add across dimensions = [3] : (tensor<16x4x32x1xf32>, tensor<f32>) -> tensor<16x4x32xf32>
    %277 = stablehlo.broadcast_in_dim %276, dims = [0, 1, 2] : (tensor<16x4x32xf32>) -> tensor<16x4x32x32xf32>
    %278 = stablehlo.add %275, %277 : tensor<16x4x32x32xf32>
    %279 = stablehlo.multiply %278, %118 : tensor<16x4x32x32xf32>
    %280 = call @_where_1(%111#1, %279) : (tensor<16x4x32x32xi1>, tensor<16x4x32x32xf32>) -> tensor<16x4x32x32xf32>
    %cst_66 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %281 = stablehlo.broadcast_in_dim %cst_66, dims = [] : (tensor<f32>) -> tensor<16x4x32x32xf32>
    %282 = stablehlo.divide %280, %281 : tensor<16x4x32x32xf32>
    %283 = stablehlo.dot_general %282, %103, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x4x32x32xf32>, tensor<16x32x4x16xf32>) -> tensor<16x4x32x16xf32>
    %284 = stablehlo.transpose %283, dims = [0, 2, 1, 3] : (tensor<16x4x32x16xf32>) -> tensor<16x32x4x16xf32>
    %285 = stablehlo.dot_general %282, %104, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x4x32x32xf32>, tensor<16x32x4x16xf32>) -> tensor<16x4x32x16xf32>
    %286 = stablehlo.transpose %285, dims = [0, 2, 1, 3] : (tensor<16x4x32x16xf32>) -> tensor<16x32x4x16xf32>
    %287 = stablehlo.dot_general %267, %102, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<16x32x4x16xf32>, tensor<16x32x64xf32>) -> tensor<4x16x64xf32>
    %288 = stablehlo.transpose %287, dims = [2, 0, 1] : (tensor<4x16x64xf32>) -> tensor<64x4x16xf32>
    %289 = stablehlo.dot_general %267, %arg15, contracting_dims = [2, 3] x [1, 2], precision = [DEFAULT, DEFAULT] : (tensor<16x32x4x16xf32>, tensor<64x4x16xf32>) -> tensor<16x32x64xf32>
    %290 = stablehlo.dot_general %284, %102, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<16x32x4x16xf32>, tensor<16x32x64xf32>) -> tensor<4x16x64xf32>
    %291 = stablehlo.transpose %290, dims = [2, 0, 1] : (tensor<4x16x64xf32>) -> tensor<64x4x16xf32>
    %292 = stablehlo.dot_general %284, %arg10, contracting_dims = [2, 3] x [1, 2], precision = [DEFAULT, DEFAULT] : (tensor<16x32x4x16xf32>, tensor<64x4x16xf32>) -> tensor<16x32x64xf32>
    %293 = stablehlo.add %289, %292 : tensor<16x32x64xf32>
    %294 = stablehlo.dot_general %286, %102, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<16x32x4x16xf32>, tensor<16x32x64xf32>) -> tensor<4x16x64xf32>
    %295 = stablehlo.transpose %294, dims = [2, 0, 1] : (tensor<4x16x64xf32>) -> tensor<64x4x16xf32>
    %296 = stablehlo.dot_general %286, %arg13, contracting_dims = [2, 3] x [1, 2], precision = [DEFAULT, DEFAULT] : (tensor<16x32x4x16xf32>, tensor<64x4x16xf32>) -> tensor<16x32x64xf32>
    %297 = stablehlo.add %293, %296 : tensor<16x32x64xf32>
    %298 = stablehlo.multiply %99, %297 : tensor<16x32x64xf32>
    %cst_67 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %299 = stablehlo.reduce(%298 init: %cst_67) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<64xf32>
    %300 = stablehlo.reshape %299 : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %301 = stablehlo.broadcast_in_dim %100, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
    %302 = stablehlo.multiply %297, %301 : tensor<16x32x64xf32>
    %cst_68 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %303 = stablehlo.reduce(%300 init: %cst_68) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x64xf32>, tensor<f32>) -> tensor<64xf32>
    %304 = stablehlo.multiply %86, %302 : tensor<16x32x64xf32>
    %cst_69 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %305 = stablehlo.reduce(%304 init: %cst_69) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
    %306 = stablehlo.reshape %305 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
    %307 = stablehlo.broadcast_in_dim %94, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
    %308 = stablehlo.multiply %302, %307 : tensor<16x32x64xf32>
    %309 = stablehlo.add %260, %308 : tensor<16x32x64xf32>
    %310 = stablehlo.multiply %306, %97 : tensor<16x32x1xf32>
    %cst_70 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %311 = stablehlo.broadcast_in_dim %cst_70, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
    %312 = stablehlo.divide %310, %311 : tensor<16x32x1xf32>
    %cst_71 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %313 = stablehlo.reduce(%312 init: %cst_71) applies stablehlo.add across dimensions = [2] : (tensor<16x32x1xf32>, tensor<f32>) -> tensor<16x32xf32>
    %314 = stablehlo.broadcast_in_dim %313, dims = [0, 1] : (tensor<16x32xf32>) -> tensor<16x32x64xf32>
    %315 = stablehlo.multiply %86, %314 : tensor<16x32x64xf32>
    %316 = stablehlo.add %309, %315 : tensor<16x32x64xf32>
    %317 = stablehlo.multiply %314, %86 : tensor<16x32x64xf32>
    %318 = stablehlo.add %316, %317 : tensor<16x32x64xf32>
    %319 = stablehlo.dot_general %318, %84, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<16x32x64xf32>, tensor<16x32x256xf32>) -> tensor<64x256xf32>
    %320 = stablehlo.transpose %319, dims = [1, 0] : (tensor<64x256xf32>) -> tensor<256x64xf32>
    %321 = stablehlo.dot_general %318, %arg1, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x32x64xf32>, tensor<256x64xf32>) -> tensor<16x32x256xf32>
    %322 = stablehlo.multiply %66, %321 : tensor<16x32x256xf32>
    %323 = stablehlo.multiply %321, %83 : tensor<16x32x256xf32>
    %cst_72 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %324 = stablehlo.broadcast_in_dim %cst_72, dims = [] : (tensor<f32>) -> tensor<16x32x256xf32>
    %325 = stablehlo.multiply %324, %322 : tensor<16x32x256xf32>
    %326 = stablehlo.multiply %325, %79 : tensor<16x32x256xf32>
    %327 = stablehlo.multiply %326, %77 : tensor<16x32x256xf32>
    %328 = stablehlo.add %326, %327 : tensor<16x32x256xf32>
    %cst_73 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %329 = stablehlo.broadcast_in_dim %cst_73, dims = [] : (tensor<f32>) -> tensor<16x32x256xf32>
    %330 = stablehlo.multiply %329, %328 : tensor<16x32x256xf32>
    %331 = stablehlo.add %323, %330 : tensor<16x32x256xf32>
    %cst_74 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %332 = stablehlo.broadcast_in_dim %cst_74, dims = [] : (tensor<f32>) -> tensor<16x32x256xf32>
    %333 = stablehlo.multiply %332, %330 : tensor<16x32x256xf32>
    %334 = stablehlo.multiply %333, %71 : tensor<16x32x256xf32>
    %335 = stablehlo.add %331, %334 : tensor<16x32x256xf32>
    %336 = stablehlo.dot_general %335, %65, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<16x32x256xf32>, tensor<16x32x64xf32>) -> tensor<256x64xf32>
    %337 = stablehlo.transpose %336, dims = [1, 0] : (tensor<256x64xf32>) -> tensor<64x256xf32>
    %338 = stablehlo.dot_general %335, %arg6, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x32x256xf32>, tensor<64x256xf32>) -> tensor<16x32x64xf32>
    %339 = stablehlo.multiply %62, %338 : tensor<16x32x64xf32>
    %cst_75 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %340 = stablehlo.reduce(%339 init: %cst_75) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<64xf32>
    %341 = stablehlo.reshape %340 : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %342 = stablehlo.broadcast_in_dim %63, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
    %343 = stablehlo.multiply %338, %342 : tensor<16x32x64xf32>
    %cst_76 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %344 = stablehlo.reduce(%341 init: %cst_76) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x64xf32>, tensor<f32>) -> tensor<64xf32>
    %345 = stablehlo.multiply %49, %343 : tensor<16x32x64xf32>
    %cst_77 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %346 = stablehlo.reduce(%345 init: %cst_77) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
    %347 = stablehlo.reshape %346 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
    %348 = stablehlo.broadcast_in_dim %57, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
    %349 = stablehlo.multiply %343, %348 : tensor<16x32x64xf32>
    %350 = stablehlo.add %318, %349 : tensor<16x32x64xf32>
    %351 = stablehlo.multiply %347, %60 : tensor<16x32x1xf32>
    %cst_78 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %352 = stablehlo.broadcast_in_dim %cst_78, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
    %353 = stablehlo.divide %351, %352 : tensor<16x32x1xf32>
    %cst_79 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %354 = stablehlo.reduce(%353 init: %cst_79) applies stablehlo.add across dimensions = [2] : (tensor<16x32x1xf32>, tensor<f32>) -> tensor<16x32xf32>
    %355 = stablehlo.broadcast_in_dim %354, dims = [0, 1] : (tensor<16x32xf32>) -> tensor<16x32x64xf32>
    %356 = stablehlo.multiply %49, %355 : tensor<16x32x64xf32>
    %357 = stablehlo.add %350, %356 : tensor<16x32x64xf32>
    %358 = stablehlo.multiply %355, %49 : tensor<16x32x64xf32>
    %359 = stablehlo.add %357, %358 : tensor<16x32x64xf32>
    %360 = stablehlo.dot_general %359, %47, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<16x32x64xf32>, tensor<16x32x4x16xf32>) -> tensor<64x4x16xf32>
    %361 = stablehlo.transpose %360, dims = [1, 2, 0] : (tensor<64x4x16xf32>) -> tensor<4x16x64xf32>
    %362 = stablehlo.dot_general %359, %arg4, contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<16x32x64xf32>, tensor<4x16x64xf32>) -> tensor<16x32x4x16xf32>
    %363 = stablehlo.transpose %362, dims = [0, 2, 3, 1] : (tensor<16x32x4x16xf32>) -> tensor<16x4x16x32xf32>
    %364 = stablehlo.dot_general %363, %25, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<16x4x16x32xf32>, tensor<16x32x4x16xf32>) -> tensor<16x4x32x32xf32>
    %365 = stablehlo.dot_general %363, %42, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<16x4x16x32xf32>, tensor<16x4x32x32xf32>) -> tensor<16x4x16x32xf32>
    %366 = stablehlo.transpose %365, dims = [0, 3, 1, 2] : (tensor<16x4x16x32xf32>) -> tensor<16x32x4x16xf32>
    %367 = stablehlo.broadcast_in_dim %45, dims = [0, 1, 2, 3] : (tensor<16x4x32x1xf32>) -> tensor<16x4x32x32xf32>
    %368 = stablehlo.multiply %364, %367 : tensor<16x4x32x32xf32>
    %369 = stablehlo.multiply %368, %38 : tensor<16x4x32x32xf32>
    %cst_80 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %370 = stablehlo.reduce(%369 init: %cst_80) applies stablehlo.add across dimensions = [3] : (tensor<16x4x32x32xf32>, tensor<f32>) -> tensor<16x4x32xf32>
    %371 = stablehlo.reshape %370 : (tensor<16x4x32xf32>) -> tensor<16x4x32x1xf32>
    %372 = stablehlo.negate %371 : tensor<16x4x32x1xf32>
    %373 = stablehlo.broadcast_in_dim %40, dims = [0, 1, 2, 3] : (tensor<16x4x32x1xf32>) -> tensor<16x4x32x32xf32>
    %374 = stablehlo.divide %364, %373 : tensor<16x4x32x32xf32>
    %cst_81 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %375 = stablehlo.reduce(%372 init: %cst_81) applies stablehlo.add across dimensions = [3] : (tensor<16x4x32x1xf32>, tensor<f32>) -> tensor<16x4x32xf32>
    %376 = stablehlo.broadcast_in_dim %375, dims = [0, 1, 2] : (tensor<16x4x32xf32>) -> tensor<16x4x32x32xf32>
    %377 = stablehlo.add %374, %376 : tensor<16x4x32x32xf32>
    %378 = stablehlo.multiply %377, %38 : tensor<16x4x32x32xf32>
    %379 = call @_where_1(%31#1, %378) : (tensor<16x4x32x32xi1>, tensor<16x4x32x32xf32>) -> tensor<16x4x32x32xf32>
    %cst_82 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %380 = stablehlo.broadcast_in_dim %cst_82, dims = [] : (tensor<f32>) -> tensor<16x4x32x32xf32>
    %381 = stablehlo.divide %379, %380 : tensor<16x4x32x32xf32>
    %382 = stablehlo.dot_general %381, %23, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x4x32x32xf32>, tensor<16x32x4x16xf32>) -> tensor<16x4x32x16xf32>
    %383 = stablehlo.transpose %382, dims = [0, 2, 1, 3] : (tensor<16x4x32x16xf32>) -> tensor<16x32x4x16xf32>
    %384 = stablehlo.dot_general %381, %24, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x4x32x32xf32>, tensor<16x32x4x16xf32>) -> tensor<16x4x32x16xf32>
    %385 = stablehlo.transpose %384, dims = [0, 2, 1, 3] : (tensor<16x4x32x16xf32>) -> tensor<16x32x4x16xf32>
    %386 = stablehlo.dot_general %366, %22, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<16x32x4x16xf32>, tensor<16x32x64xf32>) -> tensor<4x16x64xf32>
    %387 = stablehlo.transpose %386, dims = [2, 0, 1] : (tensor<4x16x64xf32>) -> tensor<64x4x16xf32>
    %388 = stablehlo.dot_general %366, %arg7, contracting_dims = [2, 3] x [1, 2], precision = [DEFAULT, DEFAULT] : (tensor<16x32x4x16xf32>, tensor<64x4x16xf32>) -> tensor<16x32x64xf32>
    %389 = stablehlo.dot_general %383, %22, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<16x32x4x16xf32>, tensor<16x32x64xf32>) -> tensor<4x16x64xf32>
    %390 = stablehlo.transpose %389, dims = [2, 0, 1] : (tensor<4x16x64xf32>) -> tensor<64x4x16xf32>
    %391 = stablehlo.dot_general %383, %arg2, contracting_dims = [2, 3] x [1, 2], precision = [DEFAULT, DEFAULT] : (tensor<16x32x4x16xf32>, tensor<64x4x16xf32>) -> tensor<16x32x64xf32>
    %392 = stablehlo.add %388, %391 : tensor<16x32x64xf32>
    %393 = stablehlo.dot_general %385, %22, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<16x32x4x16xf32>, tensor<16x32x64xf32>) -> tensor<4x16x64xf32>
    %394 = stablehlo.transpose %393, dims = [2, 0, 1] : (tensor<4x16x64xf32>) -> tensor<64x4x16xf32>
    %395 = stablehlo.dot_general %385, %arg5, contracting_dims = [2, 3] x [1, 2], precision = [DEFAULT, DEFAULT] : (tensor<16x32x4x16xf32>, tensor<64x4x16xf32>) -> tensor<16x32x64xf32>
    %396 = stablehlo.add %392, %395 : tensor<16x32x64xf32>
    %397 = stablehlo.multiply %19, %396 : tensor<16x32x64xf32>
    %cst_83 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %398 = stablehlo.reduce(%397 init: %cst_83) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<64xf32>
    %399 = stablehlo.reshape %398 : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %400 = stablehlo.broadcast_in_dim %20, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
    %401 = stablehlo.multiply %396, %400 : tensor<16x32x64xf32>
    %cst_84 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %402 = stablehlo.reduce(%399 init: %cst_84) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x64xf32>, tensor<f32>) -> tensor<64xf32>
    %403 = stablehlo.multiply %6, %401 : tensor<16x32x64xf32>
    %cst_85 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %404 = stablehlo.reduce(%403 init: %cst_85) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
    %405 = stablehlo.reshape %404 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
    %406 = stablehlo.broadcast_in_dim %14, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
    %407 = stablehlo.multiply %401, %406 : tensor<16x32x64xf32>
    %408 = stablehlo.add %359, %407 : tensor<16x32x64xf32>
    %409 = stablehlo.multiply %405, %17 : tensor<16x32x1xf32>
    %cst_86 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %410 = stablehlo.broadcast_in_dim %cst_86, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
    %411 = stablehlo.divide %409, %410 : tensor<16x32x1xf32>
    %cst_87 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %412 = stablehlo.reduce(%411 init: %cst_87) applies stablehlo.add across dimensions = [2] : (tensor<16x32x1xf32>, tensor<f32>) -> tensor<16x32xf32>
    %413 = stablehlo.broadcast_in_dim %412, dims = [0, 1] : (tensor<16x32xf32>) -> tensor<16x32x64xf32>
    %414 = stablehlo.multiply %6, %413 : tensor<16x32x64xf32>
    %415 = stablehlo.add %408, %414 : tensor<16x32x64xf32>
    %416 = stablehlo.multiply %413, %6 : tensor<16x32x64xf32>
    %417 = stablehlo.add %415, %416 : tensor<16x32x64xf32>
    %cst_88 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %418 = stablehlo.broadcast_in_dim %cst_88, dims = [] : (tensor<f32>) -> tensor<256x64xf32>
    %419 = "stablehlo.scatter"(%418, %5, %417) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg40: tensor<f32>, %arg41: tensor<f32>):
      %534 = stablehlo.add %arg40, %arg41 : tensor<f32>
      stablehlo.return %534 : tensor<f32>
    }) : (tensor<256x64xf32>, tensor<16x32x1xi32>, tensor<16x32x64xf32>) -> tensor<256x64xf32>
    %cst_89 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %420 = stablehlo.broadcast_in_dim %cst_89, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %421 = stablehlo.multiply %420, %arg19 : tensor<64xf32>
    %422 = stablehlo.add %421, %402 : tensor<64xf32>
    %cst_90 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %423 = stablehlo.broadcast_in_dim %cst_90, dims = [] : (tensor<f32>) -> tensor<256x64xf32>
    %424 = stablehlo.multiply %423, %arg20 : tensor<256x64xf32>
    %425 = stablehlo.add %424, %320 : tensor<256x64xf32>
    %cst_91 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %426 = stablehlo.broadcast_in_dim %cst_91, dims = [] : (tensor<f32>) -> tensor<64x4x16xf32>
    %427 = stablehlo.multiply %426, %arg21 : tensor<64x4x16xf32>
    %428 = stablehlo.add %427, %390 : tensor<64x4x16xf32>
    %cst_92 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %429 = stablehlo.broadcast_in_dim %cst_92, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %430 = stablehlo.multiply %429, %arg22 : tensor<64xf32>
    %431 = stablehlo.add %430, %344 : tensor<64xf32>
    %cst_93 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %432 = stablehlo.broadcast_in_dim %cst_93, dims = [] : (tensor<f32>) -> tensor<4x16x64xf32>
    %433 = stablehlo.multiply %432, %arg23 : tensor<4x16x64xf32>
    %434 = stablehlo.add %433, %361 : tensor<4x16x64xf32>
    %cst_94 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %435 = stablehlo.broadcast_in_dim %cst_94, dims = [] : (tensor<f32>) -> tensor<64x4x16xf32>
    %436 = stablehlo.multiply %435, %arg24 : tensor<64x4x16xf32>
    %437 = stablehlo.add %436, %394 : tensor<64x4x16xf32>
    %cst_95 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %438 = stablehlo.broadcast_in_dim %cst_95, dims = [] : (tensor<f32>) -> tensor<64x256xf32>
    %439 = stablehlo.multiply %438, %arg25 : tensor<64x256xf32>
    %440 = stablehlo.add %439, %337 : tensor<64x256xf32>
    %cst_96 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %441 = stablehlo.broadcast_in_dim %cst_96, dims = [] : (tensor<f32>) -> tensor<64x4x16xf32>
    %442 = stablehlo.multiply %441, %arg26 : tensor<64x4x16xf32>
    %443 = stablehlo.add %442, %387 : tensor<64x4x16xf32>
    %cst_97 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %444 = stablehlo.broadcast_in_dim %cst_97, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %445 = stablehlo.multiply %444, %arg27 : tensor<64xf32>
    %446 = stablehlo.add %445, %303 : tensor<64xf32>
    %cst_98 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %447 = stablehlo.broadcast_in_dim %cst_98, dims = [] : (tensor<f32>) -> tensor<256x64xf32>
    %448 = stablehlo.multiply %447, %arg28 : tensor<256x64xf32>
    %449 = stablehlo.add %448, %221 : tensor<256x64xf32>
    %cst_99 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %450 = stablehlo.broadcast_in_dim %cst_99, dims = [] : (tensor<f32>) -> tensor<64x4x16xf32>
    %451 = stablehlo.multiply %450, %arg29 : tensor<64x4x16xf32>
    %452 = stablehlo.add %451, %291 : tensor<64x4x16xf32>
    %cst_100 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %453 = stablehlo.broadcast_in_dim %cst_100, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %454 = stablehlo.multiply %453, %arg30 : tensor<64xf32>
    %455 = stablehlo.add %454, %245 : tensor<64xf32>
    %cst_101 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %456 = stablehlo.broadcast_in_dim %cst_101, dims = [] : (tensor<f32>) -> tensor<4x16x64xf32>
    %457 = stablehlo.multiply %456, %arg31 : tensor<4x16x64xf32>
    %458 = stablehlo.add %457, %262 : tensor<4x16x64xf32>
    %cst_102 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %459 = stablehlo.broadcast_in_dim %cst_102, dims = [] : (tensor<f32>) -> tensor<64x4x16xf32>
    %460 = stablehlo.multiply %459, %arg32 : tensor<64x4x16xf32>
    %461 = stablehlo.add %460, %295 : tensor<64x4x16xf32>
    %cst_103 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %462 = stablehlo.broadcast_in_dim %cst_103, dims = [] : (tensor<f32>) -> tensor<64x256xf32>
    %463 = stablehlo.multiply %462, %arg33 : tensor<64x256xf32>
    %464 = stablehlo.add %463, %238 : tensor<64x256xf32>
    %cst_104 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %465 = stablehlo.broadcast_in_dim %cst_104, dims = [] : (tensor<f32>) -> tensor<64x4x16xf32>
    %466 = stablehlo.multiply %465, %arg34 : tensor<64x4x16xf32>
    %467 = stablehlo.add %466, %288 : tensor<64x4x16xf32>
    %cst_105 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %468 = stablehlo.broadcast_in_dim %cst_105, dims = [] : (tensor<f32>) -> tensor<256x64xf32>
    %469 = stablehlo.multiply %468, %arg35 : tensor<256x64xf32>
    %470 = stablehlo.add %469, %419 : tensor<256x64xf32>
    %cst_106 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %471 = stablehlo.broadcast_in_dim %cst_106, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %472 = stablehlo.multiply %471, %arg36 : tensor<64xf32>
    %473 = stablehlo.add %472, %205 : tensor<64xf32>
    %cst_107 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %474 = stablehlo.broadcast_in_dim %cst_107, dims = [] : (tensor<f32>) -> tensor<64x256xf32>
    %475 = stablehlo.multiply %474, %arg37 : tensor<64x256xf32>
    %476 = stablehlo.add %475, %198 : tensor<64x256xf32>
    %cst_108 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %477 = stablehlo.broadcast_in_dim %cst_108, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %478 = stablehlo.multiply %477, %422 : tensor<64xf32>
    %479 = stablehlo.subtract %arg0, %478 : tensor<64xf32>
    %cst_109 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %480 = stablehlo.broadcast_in_dim %cst_109, dims = [] : (tensor<f32>) -> tensor<256x64xf32>
    %481 = stablehlo.multiply %480, %425 : tensor<256x64xf32>
    %482 = stablehlo.subtract %arg1, %481 : tensor<256x64xf32>
    %cst_110 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %483 = stablehlo.broadcast_in_dim %cst_110, dims = [] : (tensor<f32>) -> tensor<64x4x16xf32>
    %484 = stablehlo.multiply %483, %428 : tensor<64x4x16xf32>
    %485 = stablehlo.subtract %arg2, %484 : tensor<64x4x16xf32>
    %cst_111 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %486 = stablehlo.broadcast_in_dim %cst_111, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %487 = stablehlo.multiply %486, %431 : tensor<64xf32>
    %488 = stablehlo.subtract %arg3, %487 : tensor<64xf32>
    %cst_112 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %489 = stablehlo.broadcast_in_dim %cst_112, dims = [] : (tensor<f32>) -> tensor<4x16x64xf32>
    %490 = stablehlo.multiply %489, %434 : tensor<4x16x64xf32>
    %491 = stablehlo.subtract %arg4, %490 : tensor<4x16x64xf32>
    %cst_113 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %492 = stablehlo.broadcast_in_dim %cst_113, dims = [] : (tensor<f32>) -> tensor<64x4x16xf32>
    %493 = stablehlo.multiply %492, %437 : tensor<64x4x16xf32>
    %494 = stablehlo.subtract %arg5, %493 : tensor<64x4x16xf32>
    %cst_114 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %495 = stablehlo.broadcast_in_dim %cst_114, dims = [] : (tensor<f32>) -> tensor<64x256xf32>
    %496 = stablehlo.multiply %495, %440 : tensor<64x256xf32>
    %497 = stablehlo.subtract %arg6, %496 : tensor<64x256xf32>
    %cst_115 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %498 = stablehlo.broadcast_in_dim %cst_115, dims = [] : (tensor<f32>) -> tensor<64x4x16xf32>
    %499 = stablehlo.multiply %498, %443 : tensor<64x4x16xf32>
    %500 = stablehlo.subtract %arg7, %499 : tensor<64x4x16xf32>
    %cst_116 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %501 = stablehlo.broadcast_in_dim %cst_116, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %502 = stablehlo.multiply %501, %446 : tensor<64xf32>
    %503 = stablehlo.subtract %arg8, %502 : tensor<64xf32>
    %cst_117 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %504 = stablehlo.broadcast_in_dim %cst_117, dims = [] : (tensor<f32>) -> tensor<256x64xf32>
    %505 = stablehlo.multiply %504, %449 : tensor<256x64xf32>
    %506 = stablehlo.subtract %arg9, %505 : tensor<256x64xf32>
    %cst_118 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %507 = stablehlo.broadcast_in_dim %cst_118, dims = [] : (tensor<f32>) -> tensor<64x4x16xf32>
    %508 = stablehlo.multiply %507, %452 : tensor<64x4x16xf32>
    %509 = stablehlo.subtract %arg10, %508 : tensor<64x4x16xf32>
    %cst_119 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %510 = stablehlo.broadcast_in_dim %cst_119, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %511 = stablehlo.multiply %510, %455 : tensor<64xf32>
    %512 = stablehlo.subtract %arg11, %511 : tensor<64xf32>
    %cst_120 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %513 = stablehlo.broadcast_in_dim %cst_120, dims = [] : (tensor<f32>) -> tensor<4x16x64xf32>
    %514 = stablehlo.multiply %513, %458 : tensor<4x16x64xf32>
    %515 = stablehlo.subtract %arg12, %514 : tensor<4x16x64xf32>
    %cst_121 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %516 = stablehlo.broadcast_in_dim %cst_121, dims = [] : (tensor<f32>) -> tensor<64x4x16xf32>
    %517 = stablehlo.multiply %516, %461 : tensor<64x4x16xf32>
    %518 = stablehlo.subtract %arg13, %517 : tensor<64x4x16xf32>
    %cst_122 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %519 = stablehlo.broadcast_in_dim %cst_122, dims = [] : (tensor<f32>) -> tensor<64x256xf32>
    %520 = stablehlo.multiply %519, %464 : tensor<64x256xf32>
    %521 = stablehlo.subtract %arg14, %520 : tensor<64x256xf32>
    %cst_123 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %522 = stablehlo.broadcast_in_dim %cst_123, dims = [] : (tensor<f32>) -> tensor<64x4x16xf32>
    %523 = stablehlo.multiply %522, %467 : tensor<64x4x16xf32>
    %524 = stablehlo.subtract %arg15, %523 : tensor<64x4x16xf32>
    %cst_124 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %525 = stablehlo.broadcast_in_dim %cst_124, dims = [] : (tensor<f32>) -> tensor<256x64xf32>
    %526 = stablehlo.multiply %525, %470 : tensor<256x64xf32>
    %527 = stablehlo.subtract %arg16, %526 : tensor<256x64xf32>
    %cst_125 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %528 = stablehlo.broadcast_in_dim %cst_125, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %529 = stablehlo.multiply %528, %473 : tensor<64xf32>
    %530 = stablehlo.subtract %arg17, %529 : tensor<64xf32>
    %cst_126 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %531 = stablehlo.broadcast_in_dim %cst_126, dims = [] : (tensor<f32>) -> tensor<64x256xf32>
    %532 = stablehlo.multiply %531, %476 : tensor<64x256xf32>
    %533 = stablehlo.subtract %arg18, %532 : tensor<64x256xf32>
    return %479, %482, %485, %488, %491, %494, %497, %500, %503, %506, %509, %512, %515, %518, %521, %524, %527, %530, %533, %422, %425, %428, %431, %434, %437, %440, %443, %446, %449, %452, %455, %458, %461, %464, %467, %470, %473, %476, %190 : tensor<64xf32>, tensor<256x64xf32>, tensor<64x4x16xf32>, tensor<64xf32>, tensor<4x16x64xf32>, tensor<64x4x16xf32>, tensor<64x256xf32>, tensor<64x4x16xf32>, tensor<64xf32>, tensor<256x64xf32>, tensor<64x4x16xf32>, tensor<64xf32>, tensor<4x16x64xf32>, tensor<64x4x16xf32>, tensor<64x256xf32>, tensor<64x4x16xf32>, tensor<256x64xf32>, tensor<64xf32>, tensor<64x256xf32>, tensor<64xf32>, tensor<256x64xf32>, tensor<64x4x16xf32>, tensor<64xf32>, tensor<4x16x64xf32>, tensor<64x4x16xf32>, tensor<64x256xf32>, tensor<64x4x16xf32>, tensor<64xf32>, tensor<256x64xf32>, tensor<64x4x16xf32>, tensor<64xf32>, tensor<4x16x64xf32>, tensor<64x4x16xf32>, tensor<64x256xf32>, tensor<64x4x16xf32>, tensor<256x64xf32>, tensor<64xf32>, tensor<64x256xf32>, tensor<f32>
  }
  func.func private @tril(%arg0: tensor<32x32xi1>) -> tensor<32x32xi1> {
    %0 = stablehlo.iota dim = 0 : tensor<32x32xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<32x32xi32>
    %2 = stablehlo.add %0, %1 : tensor<32x32xi32>
    %3 = stablehlo.iota dim = 1 : tensor<32x32xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<32x32xi32>, tensor<32x32xi32>) -> tensor<32x32xi1>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<32x32xi1>
    %6 = stablehlo.select %4, %arg0, %5 : tensor<32x32xi1>, tensor<32x32xi1>
    return %6 : tensor<32x32xi1>
  }
  func.func private @_where(%arg0: tensor<32x32xi1>, %arg1: tensor<16x4x32x32xf32>, %arg2: tensor<f32>) -> (tensor<16x4x32x32xf32>, tensor<16x4x32x32xi1>) {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [2, 3] : (tensor<32x32xi1>) -> tensor<16x4x32x32xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<16x4x32x32xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<16x4x32x32xi1>, tensor<16x4x32x32xf32>
    return %3, %1 : tensor<16x4x32x32xf32>, tensor<16x4x32x32xi1>
  }
  func.func private @log_softmax(%arg0: tensor<16x32x256xf32>) -> (tensor<16x32x256xf32>, tensor<16x32x256xf32>, tensor<16x32x1xf32>) {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [2] : (tensor<16x32x256xf32>, tensor<f32>) -> tensor<16x32xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %2 = stablehlo.maximum %1, %0 : tensor<16x32xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x256xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<16x32x256xf32>
    %6 = stablehlo.exponential %5 : tensor<16x32x256xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<16x32x256xf32>, tensor<f32>) -> tensor<16x32xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
    %9 = stablehlo.log %8 : tensor<16x32x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x256xf32>
    %11 = stablehlo.subtract %5, %10 : tensor<16x32x256xf32>
    return %11, %6, %8 : tensor<16x32x256xf32>, tensor<16x32x256xf32>, tensor<16x32x1xf32>
  }
  func.func private @_one_hot(%arg0: tensor<16x32xi32>) -> tensor<16x32x256xf32> {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<16x32xi32>) -> tensor<16x32x1xi32>
    %1 = stablehlo.iota dim = 2 : tensor<1x1x256xi32>
    %2 = stablehlo.broadcast_in_dim %0, dims = [0, 1, 2] : (tensor<16x32x1xi32>) -> tensor<16x32x256xi32>
    %3 = stablehlo.broadcast_in_dim %1, dims = [0, 1, 2] : (tensor<1x1x256xi32>) -> tensor<16x32x256xi32>
    %4 = stablehlo.compare EQ, %2, %3, SIGNED : (tensor<16x32x256xi32>, tensor<16x32x256xi32>) -> tensor<16x32x256xi1>
    %5 = stablehlo.convert %4 : (tensor<16x32x256xi1>) -> tensor<16x32x256xf32>
    return %5 : tensor<16x32x256xf32>
  }
  func.func private @log_softmax_0(%arg0: tensor<16x32x256xf32>, %arg1: tensor<16x32x1xf32>, %arg2: tensor<16x32x256xf32>) -> tensor<16x32x256xf32> {
    %0 = stablehlo.negate %arg2 : tensor<16x32x256xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<16x32x256xf32>, tensor<f32>) -> tensor<16x32xf32>
    %2 = stablehlo.reshape %1 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
    %3 = stablehlo.divide %2, %arg1 : tensor<16x32x1xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.reduce(%3 init: %cst_0) applies stablehlo.add across dimensions = [2] : (tensor<16x32x1xf32>, tensor<f32>) -> tensor<16x32xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<16x32xf32>) -> tensor<16x32x256xf32>
    %6 = stablehlo.multiply %5, %arg0 : tensor<16x32x256xf32>
    %7 = stablehlo.add %arg2, %6 : tensor<16x32x256xf32>
    return %7 : tensor<16x32x256xf32>
  }
  func.func private @_where_1(%arg0: tensor<16x4x32x32xi1>, %arg1: tensor<16x4x32x32xf32>) -> tensor<16x4x32x32xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x4x32x32xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<16x4x32x32xi1>, tensor<16x4x32x32xf32>
    return %1 : tensor<16x4x32x32xf32>
  }
}
