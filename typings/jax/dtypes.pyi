from typing import Any

import numpy as np

float0: np.dtype[Any]

class prng_key(np.generic): ...
