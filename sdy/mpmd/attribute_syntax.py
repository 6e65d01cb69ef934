"""Values of the MPMD attributes, and their syntax.

A topology names the meshes that a program uses, `<<"m1" : <["x"=2]>>, <"m2" : <["x"=2]>>>`. A user origin names the
computation that an operation stems from, and says how often automatic differentiation has transposed it, `"f"(1)`.
"""

from typing import Literal, NamedTuple, get_args

from xdsl.parser import AttrParser

from sdy.axes import quoted
from sdy.dialect.axis_syntax import parse_axis_name as parse_string
from sdy.dialect.axis_syntax import parse_int
from sdy.dialect.field import Field, parse_close, parse_elements
from sdy.dialect.mesh_syntax import mesh_text, parse_mesh
from sdy.mesh import Mesh
from sdy.parse_errors import parse_error

ReductionType = Literal["none", "add", "max", "min", "mul", "or", "and"]
"""Reductions across meshes; "none" is the identity of one operand."""

REDUCTION_TYPES: tuple[ReductionType, ...] = get_args(ReductionType)


class NamedMesh(NamedTuple):
    """A mesh of a topology and its name."""

    name: str
    mesh: Mesh


class UserOrigin(NamedTuple):
    """The name of a user's computation, and how often differentiation has transposed it."""

    name: str
    transpose_count: int = 0


class MeshWithOrigins(NamedTuple):
    """A mesh, and the names of the computations that assign a value to it."""

    mesh: str
    origins: tuple[str, ...] = ()


_MESH_NAME = Field("NamedMesh", "name", "::llvm::StringRef", parse_string, dialect="Mpmd")
_MESH = Field("NamedMesh", "mesh", "sdy::MeshAttr", parse_mesh, "sdy.mesh", dialect="Mpmd")


def parse_named_mesh(parser: AttrParser) -> NamedMesh:
    """Parse `<"m1" : <["x"=2]>>`."""
    parser.parse_punctuation("<")
    name = _MESH_NAME.read(parser)
    parser.parse_punctuation(":")
    mesh = _MESH.read(parser)
    parser.parse_punctuation(">")
    return NamedMesh(name, mesh)


def named_mesh_text(named: NamedMesh) -> str:
    """Format `<"m1" : <["x"=2]>>`."""
    return f"<{quoted(named.name)} : {mesh_text(named.mesh)}>"


_MESHES = Field(
    "Topology", "meshes", "::llvm::ArrayRef<NamedMeshAttr>", parse_named_mesh, "mpmd.named_mesh", dialect="Mpmd"
)


def parse_topology(parser: AttrParser) -> tuple[NamedMesh, ...]:
    """Parse the meshes of a topology, in angle brackets."""
    parser.parse_punctuation("<")
    meshes = _MESHES.read_several(parser)
    parser.parse_punctuation(">")
    return meshes


def topology_text(meshes: tuple[NamedMesh, ...]) -> str:
    """Format the meshes of a topology, in angle brackets."""
    return f"<{', '.join(map(named_mesh_text, meshes))}>"


def parse_short_origin(parser: AttrParser) -> UserOrigin:
    """Parse `"f"(1)` as operations have it; a count of zero is omitted."""
    name = parse_string(parser)
    if parser.parse_optional_punctuation("(") is None:
        return UserOrigin(name)
    count = parse_int(parser)
    parse_close(parser, ")")
    return UserOrigin(name, count)


def short_origin_text(origin: UserOrigin) -> str:
    """Format `"f"(1)`."""
    return quoted(origin.name) + (f"({origin.transpose_count})" if origin.transpose_count > 0 else "")


def parse_origin_list(parser: AttrParser) -> tuple[UserOrigin, ...]:
    """Parse `["f"(1), "g"]`."""
    parser.parse_punctuation("[")
    if parser.parse_optional_punctuation("]"):
        return ()
    origins = parse_elements(parser, parse_short_origin)
    parse_close(parser, "]")
    return origins


def parse_user_origin(parser: AttrParser) -> UserOrigin:
    """Parse `<"f"(1)>`."""
    parser.parse_punctuation("<")
    origin = parse_short_origin(parser)
    parser.parse_punctuation(">")
    return origin


def user_origin_text(origin: UserOrigin) -> str:
    """Format `<"f"(1)>`."""
    return f"<{short_origin_text(origin)}>"


_ORIGINS = Field(
    "MeshWithOrigins", "origins", "::llvm::ArrayRef<OriginAttr>", parse_string, "mpmd.origin", dialect="Mpmd"
)


def parse_mesh_with_origins(parser: AttrParser) -> MeshWithOrigins:
    """Parse `"m1"["f", "g"]`; the brackets of no origins are omitted."""
    mesh = parse_string(parser)
    if parser.parse_optional_punctuation("[") is None:
        return MeshWithOrigins(mesh)
    origins = _ORIGINS.read_several(parser)
    parse_close(parser, "]")
    return MeshWithOrigins(mesh, origins)


def mesh_with_origins_text(entry: MeshWithOrigins) -> str:
    """Format `"m1"["f", "g"]`."""
    return quoted(entry.mesh) + (f"[{', '.join(map(quoted, entry.origins))}]" if entry.origins else "")


_ENTRIES = Field(
    "MeshesWithOrigins",
    "value",
    "::llvm::ArrayRef<MeshWithOriginsAttr>",
    parse_mesh_with_origins,
    "mpmd.mesh_with_origins",
    dialect="Mpmd",
)


def parse_meshes_with_origins(parser: AttrParser) -> tuple[MeshWithOrigins, ...]:
    """Parse `<"m1"["f"], "m2">`."""
    parser.parse_punctuation("<")
    return _ENTRIES.read_until(parser, ">")


def meshes_with_origins_text(entries: tuple[MeshWithOrigins, ...]) -> str:
    """Format `<"m1"["f"], "m2">`."""
    return f"<{', '.join(map(mesh_with_origins_text, entries))}>"


def _parse_reduction_type(parser: AttrParser) -> ReductionType:
    start = parser.pos
    word = parser.parse_optional_identifier()
    for reduction in REDUCTION_TYPES:
        if word == reduction:
            return reduction
    if word is None:
        raise parse_error(parser, "expected valid keyword")
    expected = ", ".join(REDUCTION_TYPES)
    raise parse_error(parser, f"expected ::mlir::mpmd::ReductionType to be one of: {expected}", start)


_REDUCTION = Field("Reduction", "reduction_type", "::mlir::mpmd::ReductionType", _parse_reduction_type, dialect="Mpmd")


def parse_reduction(parser: AttrParser) -> ReductionType:
    """Parse `<add>`."""
    parser.parse_punctuation("<")
    reduction = _REDUCTION.read(parser)
    parser.parse_punctuation(">")
    return reduction


def reduction_text(reduction: ReductionType) -> str:
    """Format `<add>`."""
    return f"<{reduction}>"
