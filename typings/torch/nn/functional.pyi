from typing import Any

from torch import Tensor

def scaled_dot_product_attention(*args: Any, **kwargs: Any) -> Tensor: ...
