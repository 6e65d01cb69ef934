"""Functions of `jax.numpy`, `jax.scipy` and others, in tables by subject."""

from array_functions import of_edge_cases, of_indices, of_models, of_numpy, of_science
from array_functions.array_function import ArrayFunction

FUNCTIONS: dict[str, ArrayFunction] = (
    of_numpy.FUNCTIONS | of_science.FUNCTIONS | of_indices.FUNCTIONS | of_models.FUNCTIONS | of_edge_cases.FUNCTIONS
)
