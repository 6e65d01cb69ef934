"""Chooses a strategy for each node of a graph, so that costs are least and memory suffices at each time.

It knows nothing of programs or shardings. A problem goes through these files, and some of them again with what was
learned from the others:

- `reduction`: nodes that their neighbours decide are merged into these; what is left has the same optimum. Of the ten
  thousands of nodes of a contest's instance some hundreds to thousands are left.
- `tables`: what is left as flat arrays, with the `times` at which memory may not suffice.
- `relaxation`: a price of memory at each time, and `messages` between nodes, which bound costs from below. Strategies
  that would cost more than what is known are forbidden, and the reduction goes on.
- `annealing`: local search by trees of nodes, with memory at those prices.
- `exact`: branch and bound by toulbar2, for what has become small enough.

Of the libraries, toulbar2 proves the optimum of reduced instances of 200 to 700 nodes in seconds, with memory limited
at few times to begin with; 4,000 nodes it does not begin to search within a minute. HiGHS takes 5 s for the 227 nodes
of instance B, where toulbar2 takes 0.2 s; where memory binds hard and there are few strategies its cuts prove more.
"""

from sdy.passes.auto.solver.problem import Problem as Problem
from sdy.passes.auto.solver.solution import Shortage as Shortage
from sdy.passes.auto.solver.solution import Solution as Solution
from sdy.passes.auto.solver.solve import solve as solve
