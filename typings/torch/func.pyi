from typing import Any

from torch import Tensor, nn

def functional_call(module: nn.Module, parameter_and_buffer_dicts: dict[str, Tensor], args: tuple[Any, ...]) -> Any: ...
