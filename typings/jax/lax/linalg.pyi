from jax._src.basearray import Array, ArrayLike

def lu(x: ArrayLike) -> tuple[Array, Array, Array]: ...
def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = ...,
    lower: bool = ...,
    transpose_a: bool = ...,
    conjugate_a: bool = ...,
) -> Array: ...
