from typing import Any

import numpy as np
import torch

def j2t(x: Any, use_dlpack: bool = ...) -> torch.Tensor: ...
def t2j_dtype(dtype: torch.dtype) -> np.dtype[Any]: ...
