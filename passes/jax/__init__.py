"""Programs of JAX: everything that imports jax.

api/            what a person calls: `sdy.jit`, `sdy.compile`, `sdy.compiler`, shardings of arguments
bindings/       conversion between jaxlib's MLIR and xDSL
callbacks/      Python functions of a program that take part in its propagation
program/        a partitioned program as a function of jax arrays
operators/      annotated operators implemented by functions of jax arrays
stages.py       the stages of a function; compilation.py implements them
jax_internals.py  the one file that follows changes of jax's internals
hlo_received.py   the collectives of a compiled program
"""
