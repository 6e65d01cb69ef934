from typing import Any

import numpy as np

float0: np.dtype[Any]

def result_type(*args: Any, return_weak_type_flag: bool = ...) -> np.dtype[Any]: ...

class extended(np.generic): ...
class prng_key(extended): ...
