"""Solver for strategy selection: minimum-cost assignment on a graph under a memory limit over time.

Each node selects one strategy. Nodes and edges have costs, as in a pairwise Markov random field or weighted constraint
satisfaction problem, and live nodes take memory. The solver is independent of programs and shardings. Its parts run
alternately:

- `reduction`: exact variable elimination. Nodes that their neighbors determine are merged into these. Some hundreds to
  thousands of the ten thousands of nodes of an instance of the IOPDDL contest remain.
- `cost_tables`: the reduced problem as flat arrays for Numba, with the binding times at which memory may be exceeded.
- `relaxation`: Lagrangian relaxation of the memory limit, with lower bounds by message passing (`trws`). Strategies
  whose lower bound exceeds the best known cost are pruned, and the reduction continues.
- `annealing`: local search over trees of nodes, with memory at the Lagrangian prices.
- `exact`: branch and bound by toulbar2, once the problem is small enough.

toulbar2 proves the optimum of reduced instances of 200 to 700 nodes in seconds, with the memory limit at few times
initially; of 4,000 nodes, it does not start to search within a minute. HiGHS takes 5 s for the 227 nodes of instance B,
where toulbar2 takes 0.2 s. If memory binds at many times and there are few strategies, the cuts of HiGHS prove more.
"""

from sdy.passes.auto.solver.problem import Problem as Problem
from sdy.passes.auto.solver.solution import Shortage as Shortage
from sdy.passes.auto.solver.solution import Solution as Solution
from sdy.passes.auto.solver.solve import solve as solve
