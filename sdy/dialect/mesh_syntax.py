"""Syntax of meshes: `<["x"=4, "y"=2], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>`."""

import math

from xdsl.parser import AttrParser

from sdy.axes import quoted
from sdy.dialect.axis_syntax import parse_axis_name, parse_int, parse_keyword
from sdy.dialect.field import Field, parse_close
from sdy.mesh import Mesh
from sdy.parse_errors import parse_error

_AXIS_NAME = Field("MeshAxis", "name", "::llvm::StringRef", parse_axis_name)
_AXIS_SIZE = Field("MeshAxis", "size", "int64_t", parse_int)


def parse_mesh_axis(parser: AttrParser) -> tuple[str, int]:
    """Parse an axis of a mesh, `"x"=4`."""
    start = parser.pos
    name = _AXIS_NAME.read(parser)
    parser.parse_punctuation("=")
    size = _AXIS_SIZE.read(parser)
    if size <= 0:
        raise parse_error(parser, f"axis size must be at least 1, got: {size}", start)
    return name, size


def mesh_axis_text(axis: tuple[str, int]) -> str:
    """Format an axis of a mesh, `"x"=4`."""
    return f"{quoted(axis[0])}={axis[1]}"


_AXES = Field("Mesh", "axes", "::llvm::ArrayRef<MeshAxisAttr>", parse_mesh_axis, "sdy.mesh_axis")
_DEVICE_IDS = Field("Mesh", "device_ids", "::llvm::ArrayRef<int64_t>", parse_int)


def parse_mesh(parser: AttrParser) -> Mesh:
    """Parse and verify a mesh."""
    start = parser.pos
    parser.parse_punctuation("<")
    parser.parse_punctuation("[")
    axes = _AXES.read_until(parser, "]")
    device_ids: tuple[int, ...] = ()
    if parser.parse_optional_punctuation(","):
        parse_keyword(parser, "device_ids")
        parser.parse_punctuation("=")
        parser.parse_punctuation("[")
        device_ids = _DEVICE_IDS.read_several(parser)
        parse_close(parser, "]")
    parser.parse_punctuation(">")
    if problem := mesh_problem(axes, device_ids):
        raise parse_error(parser, problem, start)
    return Mesh(axes, device_ids)


def mesh_text(mesh: Mesh) -> str:
    """Format a mesh for `parse_mesh`."""
    device_ids = f", device_ids=[{', '.join(map(str, mesh.device_ids))}]" if mesh.device_ids else ""
    return f"<[{', '.join(map(mesh_axis_text, mesh.axes))}]{device_ids}>"


def mesh_problem(axes: tuple[tuple[str, int], ...], device_ids: tuple[int, ...]) -> str | None:
    """Return the error message of an invalid mesh; None for a valid one."""
    for device_id in device_ids:
        if device_id < 0:
            return f"device id must be non-negative, got: {device_id}"
    if not axes:
        return "axes is empty and device_ids has more than one element" if len(device_ids) > 1 else None
    names: set[str] = set()
    for name, _ in axes:
        if name in names:
            return f'duplicate axis name: "{name}"'
        names.add(name)
    if not device_ids:
        return None
    size = math.prod(size for _, size in axes)
    if size != len(device_ids):
        return f"total product of axis sizes must match total number of device ids, got: {size} != {len(device_ids)}"
    ordered = sorted(device_ids)
    if ordered != list(range(size)):
        return f"sorted device ids must be iota(product(axes)), got: {', '.join(map(str, ordered))}"
    return None
