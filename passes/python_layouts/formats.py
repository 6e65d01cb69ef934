"""The formats of the file of a layout."""

from collections.abc import Callable, Mapping

from sdy.passes.python_layouts.for_equinox import equinox_file
from sdy.passes.python_layouts.for_flax import FLAX, MAXTEXT
from sdy.passes.python_layouts.for_jax import jax_file
from sdy.passes.python_layouts.for_torch import torch_file
from sdy.passes.python_layouts.layout_specs import LayoutSpecs

FORMATS: Mapping[str, Callable[[LayoutSpecs], str]] = {
    "jax": jax_file,
    "flax": FLAX.file,
    "maxtext": MAXTEXT.file,
    "equinox": equinox_file,
    "torch": torch_file,
}
"""The function that prints each format."""
