"""All operations and attributes of StableHLO, by the names of their MLIR classes.

Code that uses only a few imports them from the files of their families, which avoids loading the rest.
"""

# ruff: noqa: F403

from sdy.stablehlo.asynchronous import *
from sdy.stablehlo.attributes.conv_dimensions import *
from sdy.stablehlo.attributes.dot_algorithm import *
from sdy.stablehlo.attributes.enums import *
from sdy.stablehlo.attributes.operation_attributes import *
from sdy.stablehlo.attributes.replica_groups import *
from sdy.stablehlo.batch_norm import *
from sdy.stablehlo.broadcast import *
from sdy.stablehlo.collectives import *
from sdy.stablehlo.composite import *
from sdy.stablehlo.constants import *
from sdy.stablehlo.control_flow import *
from sdy.stablehlo.convolution import *
from sdy.stablehlo.custom_call import *
from sdy.stablehlo.dot import *
from sdy.stablehlo.dynamic_shape import *
from sdy.stablehlo.elementwise import *
from sdy.stablehlo.gather import *
from sdy.stablehlo.linear_algebra import *
from sdy.stablehlo.mapping import *
from sdy.stablehlo.mixed_elementwise import *
from sdy.stablehlo.padding import *
from sdy.stablehlo.random import *
from sdy.stablehlo.reducing_collectives import *
from sdy.stablehlo.reduction import *
from sdy.stablehlo.scatter import *
from sdy.stablehlo.shape import *
from sdy.stablehlo.slicing import *
from sdy.stablehlo.sort import *
from sdy.stablehlo.tokens import *
from sdy.stablehlo.tuples import *
from sdy.stablehlo.types.special import *
from sdy.stablehlo.windows import *
