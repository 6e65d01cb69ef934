from typing import Any

from torch import Tensor

class Optimizer:
    param_groups: list[dict[str, Any]]
    state: dict[Tensor, dict[str, Any]]
    def state_dict(self) -> dict[str, Any]: ...
    def step(self) -> None: ...
