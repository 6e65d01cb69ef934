from typing import Any

from jax._src.mesh import AbstractMesh as AbstractMesh
from jax._src.mesh import AxisType as AxisType
from jax._src.mesh import Mesh as Mesh
from jax._src.mesh import get_abstract_mesh as get_abstract_mesh
from jax._src.mesh import use_abstract_mesh as use_abstract_mesh
from jax._src.named_sharding import NamedSharding as NamedSharding
from jax._src.partition_spec import PartitionSpec as PartitionSpec
from jax._src.sharding import Sharding as Sharding
from jax._src.sharding_impls import SingleDeviceSharding as SingleDeviceSharding

def reshard(xs: Any, out_shardings: Any) -> Any: ...
