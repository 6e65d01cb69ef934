"""Attributes of the MPMD dialect; their values and syntax are in `attribute_syntax.py`.

Attributes without angle brackets of their own are written `#mpmd<name...>` where they stand alone.
"""

from xdsl.ir import Attribute, OpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition

from sdy.axes import quoted
from sdy.dialect.attributes import Syntax, ValueAttr
from sdy.dialect.axis_syntax import parse_axis_name as parse_string
from sdy.mpmd import attribute_syntax as syntax
from sdy.mpmd.attribute_syntax import MeshWithOrigins, NamedMesh, ReductionType, UserOrigin

TOPOLOGY = "topology"
"""Attribute of an MPMD function with its meshes."""
MESH_SHAPE = "mesh_shape"
"""Attribute with the mesh of the function of a fragment."""
CALL_COUNTER = "call_counter"
"""Attribute with the number of the microbatch that an `mpmd.call` computes."""
MEMORY_KIND = "mhlo.memory_kind"
"""Attribute with the memory that a value is in, `"device"` or `"pinned_host"`."""


@irdl_attr_definition
class NamedMeshAttr(ValueAttr[NamedMesh]):
    """`#mpmd.named_mesh<"m1" : <["x"=2]>>`: a mesh and its name."""

    name = "mpmd.named_mesh"
    SYNTAX = Syntax(syntax.parse_named_mesh, syntax.named_mesh_text)


@irdl_attr_definition
class TopologyAttr(ValueAttr[tuple[NamedMesh, ...]]):
    """`#mpmd.topology<<"m1" : <["x"=2]>>, <"m2" : <["x"=2]>>>`: the meshes of a program."""

    name = "mpmd.topology"
    SYNTAX = Syntax(syntax.parse_topology, syntax.topology_text)


@irdl_attr_definition
class UserOriginAttr(ValueAttr[UserOrigin]):
    """`#mpmd.user_origin<"f"(1)>`: the computation that an operation stems from."""

    name = "mpmd.user_origin"
    SYNTAX = Syntax(syntax.parse_user_origin, syntax.user_origin_text)


@irdl_attr_definition
class OriginAttr(ValueAttr[str], OpaqueSyntaxAttribute):
    """`#mpmd<origin"f">`: the label of the assignment to a mesh."""

    name = "mpmd.origin"
    SYNTAX = Syntax(parse_string, quoted)


@irdl_attr_definition
class MeshWithOriginsAttr(ValueAttr[MeshWithOrigins], OpaqueSyntaxAttribute):
    """`#mpmd<mesh_with_origins"m1"["f"]>`: a mesh and the origins of the assignments to it."""

    name = "mpmd.mesh_with_origins"
    SYNTAX = Syntax(syntax.parse_mesh_with_origins, syntax.mesh_with_origins_text)


@irdl_attr_definition
class MeshesWithOriginsAttr(ValueAttr[tuple[MeshWithOrigins, ...]]):
    """`#mpmd.meshes_with_origins<"m1"["f"], "m2">`: the meshes that use a value, or from which it can be had."""

    name = "mpmd.meshes_with_origins"
    SYNTAX = Syntax(syntax.parse_meshes_with_origins, syntax.meshes_with_origins_text)


@irdl_attr_definition
class ReductionAttr(ValueAttr[ReductionType]):
    """`#mpmd.reduction<add>`: a reduction across meshes."""

    name = "mpmd.reduction"
    SYNTAX = Syntax(syntax.parse_reduction, syntax.reduction_text)


ATTRIBUTES: list[type[Attribute]] = [
    NamedMeshAttr,
    TopologyAttr,
    UserOriginAttr,
    OriginAttr,
    MeshWithOriginsAttr,
    MeshesWithOriginsAttr,
    ReductionAttr,
]
"""All attributes of the dialect, without its type."""
