"""For each operation of both dialects, a program of `jax_programs` that lowers to it.

The programs show that these operations are parsed and printed; files of lit_tests/stablehlo show it of all others.
"""

_TABLE = """
chlo.acos                              special
chlo.acosh                             special
chlo.asinh                             special
chlo.atan                              special
chlo.atanh                             special
chlo.bessel_i1e                        special
chlo.conj                              linear algebra on a TPU
chlo.cosh                              special
chlo.digamma                           special
chlo.erf                               special
chlo.erf_inv                           special
chlo.erfc                              special
chlo.mulhi                             integers
chlo.next_after                        special
chlo.polygamma                         special
chlo.ragged_dot                        ragged dot on a TPU
chlo.sinh                              special
chlo.square                            special
chlo.top_k                             top k
chlo.zeta                              special
stablehlo.abs                          unary
stablehlo.add                          arithmetic
stablehlo.after_all                    tokens
stablehlo.all_gather                   all gather
stablehlo.all_reduce                   psum
stablehlo.all_to_all                   all to all
stablehlo.and                          arithmetic
stablehlo.atan2                        special
stablehlo.bitcast_convert              conversions
stablehlo.broadcast_in_dim             arithmetic
stablehlo.case                         cond
stablehlo.cbrt                         unary
stablehlo.ceil                         unary
stablehlo.cholesky                     linear algebra on a TPU
stablehlo.clamp                        select and clamp
stablehlo.collective_broadcast         broadcast from one device
stablehlo.collective_permute           permute
stablehlo.compare                      arithmetic
stablehlo.complex                      complex numbers
stablehlo.composite                    composite
stablehlo.concatenate                  pad and concatenate
stablehlo.constant                     arithmetic
stablehlo.convert                      comparisons
stablehlo.convolution                  convolution
stablehlo.cosine                       unary
stablehlo.count_leading_zeros          integers
stablehlo.create_token                 send and receive
stablehlo.custom_call                  top k
stablehlo.divide                       arithmetic
stablehlo.dot_general                  dots
stablehlo.dynamic_broadcast_in_dim     symbolic shapes
stablehlo.dynamic_conv                 symbolic convolution
stablehlo.dynamic_gather               symbolic shapes
stablehlo.dynamic_iota                 symbolic shapes
stablehlo.dynamic_pad                  symbolic shapes
stablehlo.dynamic_reshape              symbolic shapes
stablehlo.dynamic_slice                slices
stablehlo.dynamic_update_slice         slices
stablehlo.exponential                  unary
stablehlo.exponential_minus_one        unary
stablehlo.fft                          fft
stablehlo.floor                        unary
stablehlo.gather                       gather
stablehlo.get_dimension_size           symbolic shapes
stablehlo.imag                         complex numbers
stablehlo.iota                         iota
stablehlo.is_finite                    unary
stablehlo.log                          unary
stablehlo.log_plus_one                 unary
stablehlo.maximum                      select and clamp
stablehlo.minimum                      select and clamp
stablehlo.multiply                     arithmetic
stablehlo.negate                       unary
stablehlo.not                          special
stablehlo.optimization_barrier         barrier
stablehlo.or                           special
stablehlo.pad                          pad and concatenate
stablehlo.partition_id                 axis index
stablehlo.popcnt                       integers
stablehlo.power                        arithmetic
stablehlo.real                         complex numbers
stablehlo.real_dynamic_slice           symbolic gather and slice
stablehlo.recv                         send and receive
stablehlo.reduce                       special
stablehlo.reduce_precision             unary
stablehlo.reduce_scatter               reduce scatter
stablehlo.reduce_window                ragged dot
stablehlo.remainder                    arithmetic
stablehlo.reshape                      shapes
stablehlo.return                       special
stablehlo.reverse                      shapes
stablehlo.rng                          uniform
stablehlo.rng_bit_generator            random bits
stablehlo.round_nearest_afz            unary
stablehlo.round_nearest_even           unary
stablehlo.rsqrt                        unary
stablehlo.scatter                      scatter
stablehlo.select                       arithmetic
stablehlo.select_and_scatter           pooling gradient
stablehlo.send                         send and receive
stablehlo.shift_left                   integers
stablehlo.shift_right_arithmetic       integers
stablehlo.shift_right_logical          integers
stablehlo.sign                         unary
stablehlo.sine                         unary
stablehlo.slice                        shapes
stablehlo.sort                         sorting
stablehlo.sqrt                         unary
stablehlo.subtract                     arithmetic
stablehlo.tan                          unary
stablehlo.tanh                         unary
stablehlo.transpose                    shapes
stablehlo.triangular_solve             linear algebra on a TPU
stablehlo.while                        special
stablehlo.xor                          integers
"""

COVERED = {row[0]: row[1] for row in (line.split(maxsplit=1) for line in _TABLE.strip().splitlines())}
"""The name of a program for each of these operations."""

SWITCHED_OFF_IN_JAX = {
    "chlo.asin": "not since jax 0.12, which computes it",
    "chlo.lgamma": "not since jax 0.12, which computes it",
    "stablehlo.logistic": "only where a setting asks for it, since jax 0.11",
    "chlo.scan": "cumulative reductions on GPUs would lower to it, but their rule never says that they may",
    "stablehlo.replica_id": "where programs were mapped over replicas; those of today are mapped over partitions",
}
"""Operations that lowering rules of some JAX version name but no program reaches."""
