from typing import Any

import torch

def scaled_dot_product_attention(*args: Any, **kwargs: Any) -> torch.Tensor: ...
