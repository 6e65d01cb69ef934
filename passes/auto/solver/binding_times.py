"""Times at which the memory limit can be exceeded; the limit at other times is redundant."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sdy.passes.auto.solver.reduction import Item


def binding_times(items: Sequence[Item], capacity: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the times at which `items` can exceed `capacity`, without redundant ones.

    A time is redundant if all items that are live then are also live at another time with at most the same capacity.
    """
    change = np.zeros(capacity.size + 1, np.int64)
    begins = np.zeros(capacity.size + 1, np.int64)
    stops = np.zeros(capacity.size + 1, np.int64)
    for item in items:
        most = int(item.memory.max())
        change[item.start] += most
        change[item.end] -= most
        begins[item.start] += 1
        stops[item.end] += 1
    begun, stopped = np.cumsum(begins), np.cumsum(stops)
    times: list[int] = []
    for time in np.flatnonzero(np.cumsum(change)[:-1] > capacity).tolist():
        while times and stopped[time] == stopped[times[-1]] and capacity[time] <= capacity[times[-1]]:
            times.pop()
        if not times or begun[time] != begun[times[-1]] or capacity[time] < capacity[times[-1]]:
            times.append(time)
    return np.array(times, np.int64)
