"""At which times memory may bind: other times need not be looked at."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sdy.passes.auto.solver.reduction import Item


def binding_times(items: Sequence[Item], capacity: NDArray[np.int64]) -> NDArray[np.int64]:
    """The times at which `items` may take more than `capacity`, unless they then would at another of these times too.

    Between two times at which the same items live, the one with less capacity says it all; so it does if at the other
    some of these items no longer, or not yet, live.
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
