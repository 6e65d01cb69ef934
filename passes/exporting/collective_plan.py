"""Planning a reshard: the short sequence of collectives that turns one sharding of a tensor into another.

A dimension is split over a list of axes, major to minor. While the plan is made, each dimension has three lists:

    placed     axes that stand where the target has them: the beginning that both shardings share
    misplaced  the axes that follow in the current sharding
    wanted     the axes that follow in the target

so that `placed + misplaced` is the current sharding, `placed + wanted` the target, and the plan is complete when
nothing is misplaced or wanted. Four collectives bring that about, and are tried in the order of what they cost:

    all-slice           adds axes at the end of dimensions; each device keeps a part of what it has: nothing is sent
    collective-permute  replaces axes by as many others; each device sends what it has to one other device
    all-to-all          moves axes from the end of one dimension to the end of another; each device sends to several
    all-gather          drops axes from the end of dimensions; each device receives the parts of others

For example, over axes of size 2, `[{"x", "y"}, {}]` becomes `[{"y"}, {"z"}]` by

    [{"x", "y"}, {}]  --all-slice "z" on 1-->  [{"x", "y"}, {"z"}]  --permute-->  [{"y", "x"}, {"z"}]
                      --all-gather "x" on 0-->  [{"y"}, {"z"}]

where the permute stands for swapping two axes, which no other collective can do.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, takewhile

from sdy.axes import AxisRef, merge_sub_axes, total_size
from sdy.mesh import Mesh

Axes = tuple[AxisRef, ...]
AxesPerDim = tuple[Axes, ...]


@dataclass(frozen=True, slots=True)
class AllSlice:
    """Split each dimension further over its `axes`, which gives `after`."""

    axes: AxesPerDim
    after: AxesPerDim


@dataclass(frozen=True, slots=True)
class CollectivePermute:
    """Exchange whole shards between devices, which gives `after`: each dimension is split as many times as before."""

    after: AxesPerDim


@dataclass(frozen=True, slots=True)
class AllToAll:
    """Move `axes` from the end of dimension `source` to the end of dimension `target`, which gives `after`."""

    axes: Axes
    source: int
    target: int
    after: AxesPerDim


@dataclass(frozen=True, slots=True)
class AllGather:
    """Gather each dimension over its `axes`, the last ones that split it, which gives `after`."""

    axes: AxesPerDim
    after: AxesPerDim


Step = AllSlice | CollectivePermute | AllToAll | AllGather


def plan_collectives(
    source: AxesPerDim, target: AxesPerDim, shape: Sequence[int], mesh: Mesh, reorder_devices: bool = False
) -> tuple[Step, ...]:
    """The steps from the sharding with axes `source` to the one with axes `target`, in order; () if they are the same.

    `shape` is that of the whole tensor, in elements. `reorder_devices` asks for a permute in any case, as is needed
    when the target's mesh lists the same devices in another order. A plan from one sharding to another of the same
    tensor always exists: in the worst case everything misplaced is gathered and everything wanted is sliced.
    """
    plan = _Plan(source, target, shape, mesh, reorder_devices)
    # One round is enough where all sizes are powers of two. Steps that find nothing to do add nothing.
    for _ in range(2):
        plan.all_slice()
        plan.collective_permute()
        plan.all_to_alls(only_into_place=True)
        plan.all_to_alls(only_into_place=False)
        plan.all_gather(keep_wanted=True)
    plan.all_gather(keep_wanted=False)
    plan.all_slice()
    return tuple(plan.steps)


@dataclass(slots=True)
class _Dim:
    placed: list[AxisRef]
    misplaced: list[AxisRef]
    wanted: list[AxisRef]

    def copy(self) -> "_Dim":
        return _Dim(self.placed.copy(), self.misplaced.copy(), self.wanted.copy())

    def settle(self) -> None:
        """Count as placed what both lists begin with."""
        while self.misplaced and self.wanted and self.misplaced[0] == self.wanted[0]:
            self.placed.append(self.misplaced.pop(0))
            self.wanted.pop(0)


@dataclass(slots=True)
class _Plan:
    source: AxesPerDim
    target: AxesPerDim
    shape: Sequence[int]
    mesh: Mesh
    reorder_devices: bool
    dims: list[_Dim] = field(init=False)
    steps: list[Step] = field(init=False, default_factory=list[Step])

    def __post_init__(self) -> None:
        # Axes are cut until any two that overlap are equal, so that they can be looked up as if they were whole.
        self.dims = [
            _Dim([], _cut(here, chain(*self.target), self.mesh), _cut(there, chain(*self.source), self.mesh))
            for here, there in zip(self.source, self.target, strict=True)
        ]
        for dim in self.dims:
            dim.settle()

    def size(self, axes: Iterable[AxisRef]) -> int:
        return total_size(axes, self.mesh)

    def current(self) -> AxesPerDim:
        """The sharding reached so far."""
        return tuple(merge_sub_axes((*dim.placed, *dim.misplaced), self.mesh) for dim in self.dims)

    def merged(self, axes_per_dim: Iterable[Iterable[AxisRef]]) -> AxesPerDim:
        return tuple(merge_sub_axes(axes, self.mesh) for axes in axes_per_dim)

    def destinations(self) -> dict[AxisRef, tuple[int, int]]:
        """Where each wanted axis goes: its dimension, and its index among what that dimension wants."""
        return {axis: (d, i) for d, dim in enumerate(self.dims) for i, axis in enumerate(dim.wanted)}

    def is_free(self, axis: AxisRef) -> bool:
        """Whether no dimension is split over any part of `axis`, which could thus be sliced."""
        return not any(axis.overlaps(held) for dim in self.dims for held in dim.misplaced)

    def take(self, available: list[AxisRef], room: int, in_order: bool = False) -> list[AxisRef]:
        """Remove from `available` axes that together split a dimension `room` times, or as near as they come.

        An axis larger than the room left is cut, and what remains of it becomes the first one available. Where an
        axis neither divides the room nor is divided by it, `in_order` stops there, otherwise it is passed over.
        """
        taken: list[AxisRef] = []
        for axis in tuple(available):
            size = axis.size_in(self.mesh)
            if room <= 1 or (in_order and not _divide(size, room)):
                break
            if not _divide(size, room):
                continue
            available.remove(axis)
            if size > room:
                axis, rest = axis.split(room, self.mesh)
                available.insert(0, rest)
            room //= axis.size_in(self.mesh)
            taken.append(axis)
        return taken

    def spread(self, available: list[AxisRef], rooms: list[int]) -> list[list[AxisRef]]:
        """Take from `available` for one dimension after the other as `rooms` allow, which shrink by what is taken."""
        taken_per_dim: list[list[AxisRef]] = []
        for d, room in enumerate(rooms):
            taken = self.take(available, room)
            rooms[d] //= self.size(taken)
            taken_per_dim.append(taken)
        self.align_wanted(chain(*taken_per_dim))
        return taken_per_dim

    def align_wanted(self, pieces: Iterable[AxisRef]) -> None:
        """Cut what is wanted where the `pieces`, some of which may have just been cut, begin and end."""
        pieces = tuple(pieces)
        for dim in self.dims:
            dim.wanted = _cut(dim.wanted, pieces, self.mesh)

    def all_slice(self) -> None:
        """Slice along free axes that are wanted, where they are wanted or else anywhere there is room for them.

        A dimension has room for as many further splits as the target splits it more. More would have to be undone by
        another collective. An axis sliced elsewhere than it is wanted makes the all-to-alls that follow smaller.
        """
        rooms: list[int] = []
        for dim in self.dims:
            splits = self.size(dim.wanted)
            rooms.append(splits // math.gcd(self.size(dim.misplaced), splits))
        sliced: list[list[AxisRef]] = [[] for _ in self.dims]

        for d, axes in enumerate(self.slices_before_all_to_all(rooms)):
            sliced[d] += axes

        spare: list[AxisRef] = []
        for d, dim in enumerate(self.dims):
            for axis in tuple(dim.wanted):
                if not self.is_free(axis):
                    continue
                pieces = [axis]
                if taken := self.take(pieces, rooms[d]):
                    at = dim.wanted.index(axis)
                    dim.wanted[at : at + 1] = taken + pieces
                    dim.misplaced += taken
                    dim.settle()
                    sliced[d] += taken
                    rooms[d] //= self.size(taken)
                spare += pieces

        for d, axes in enumerate(self.spread(spare, rooms)):
            self.dims[d].misplaced += axes
            sliced[d] += axes
        if any(sliced):
            self.steps.append(AllSlice(self.merged(sliced), self.current()))

    def slices_before_all_to_all(self, rooms: list[int]) -> list[list[AxisRef]]:
        """Slice where an all-to-all will start, for axes that are wanted right behind those it is going to move.

        Moving "x" from dimension 0 to dimension 1, which wants {"x", "y"}, is best done after slicing "y" behind "x"
        on dimension 0: both then move at once, where slicing "y" on dimension 1 would leave the two in wrong order.
        The room that both take on dimension 1 is thereby used.
        """
        sliced: list[list[AxisRef]] = []
        for d, dim in enumerate(self.dims):
            to, moving = self.extended_move(d)
            free = [axis for axis in moving if axis not in dim.misplaced]
            if free:
                rooms[to] //= self.size(moving)
                dim.misplaced += free
            sliced.append(free)
        return sliced

    def extended_move(self, d: int) -> tuple[int, list[AxisRef]]:
        """A dimension, and the axes that an all-to-all from dimension `d` to it can bring straight into place.

        The first of them stand at the end of `d`, the others are free. There are none unless `d` wants nothing else,
        nothing is misplaced on the other dimension, all that `d` has for it stands at its end, in order, and the
        free axes divide what is left of dimension `d`.
        """
        dim = self.dims[d]
        destinations = self.destinations()
        if not dim.misplaced or dim.wanted or dim.misplaced[-1] not in destinations:
            return d, []
        to, last = destinations[dim.misplaced[-1]]
        wanted = self.dims[to].wanted
        free = list(takewhile(self.is_free, wanted[last + 1 :]))
        held = _common_suffix(dim.misplaced, wanted[: last + 1])
        elsewhere = dim.misplaced[: len(dim.misplaced) - len(held)]
        splits = self.size((*dim.placed, *dim.misplaced, *free))
        if self.dims[to].misplaced or any(axis in wanted for axis in elsewhere) or self.shape[d] % splits:
            return d, []
        return to, held + free

    def collective_permute(self) -> None:
        """Replace what is misplaced by what is wanted, or bring it in an order in which it can be moved on."""
        permuted = self.should_permute() and self.permute()
        if not permuted and not self.reorder_devices:
            return
        self.reorder_devices = False
        self.steps.append(CollectivePermute(self.current()))

    def should_permute(self) -> bool:
        destinations = self.destinations()
        if any(self.has_replacement(dim) or self.is_tangled(d, destinations) for d, dim in enumerate(self.dims)):
            return True
        # An axis to be gathered can make room for one that is still to be sliced.
        incoming = [axis for dim in self.dims for axis in dim.wanted if self.is_free(axis)]
        outgoing = [axis for dim in self.dims for axis in dim.misplaced if axis not in destinations]
        return bool(incoming and outgoing) and _divide(incoming[-1].size_in(self.mesh), outgoing[-1].size_in(self.mesh))

    def has_replacement(self, dim: _Dim) -> bool:
        """Whether the first misplaced axis can be replaced by the first one wanted, or by a part of it."""
        if not dim.misplaced or not dim.wanted:
            return False
        return _divide(dim.misplaced[0].size_in(self.mesh), dim.wanted[0].size_in(self.mesh))

    def is_tangled(self, d: int, destinations: dict[AxisRef, tuple[int, int]]) -> bool:
        """Whether the misplaced axes of dimension `d` cannot leave it from the end, in groups that stay in order."""
        dim = self.dims[d]
        seen: set[int] = set()
        previous: tuple[int, int] | None = None
        for axis in dim.misplaced:
            place = destinations.get(axis)
            if place is None:
                if previous is not None and not dim.wanted:
                    return True
            else:
                to, index = place
                if to == d or (to in seen and previous != (to, index - 1)):
                    return True
                seen.add(to)
            previous = place
        return False

    def permute(self) -> bool:
        """Choose new axes for what is misplaced, each dimension staying as split as it is; False where none do.

        Axes that a dimension wants come first, in place. Axes wanted elsewhere go to the end of any dimension with
        room, from where all-to-alls can move them. Axes to be gathered fill what is left, in front of those, and
        stay where they were as far as possible.
        """
        before = [dim.copy() for dim in self.dims]
        was_wanted = set(chain(*(dim.wanted for dim in self.dims)))
        rooms: list[int] = []
        unwanted: list[list[AxisRef]] = []
        for dim in self.dims:
            splits = self.size(dim.misplaced)
            taken = self.take(dim.wanted, splits, in_order=True)
            dim.placed += taken
            rooms.append(splits // self.size(taken))
            leaving = [axis for axis in dim.misplaced if axis not in was_wanted]
            replaced = self.take(leaving, self.size(taken), in_order=True)
            unwanted.append(leaving + replaced)
            dim.misplaced = []

        for dim, axes in zip(
            self.dims, self.spread(list(chain(*(dim.wanted for dim in self.dims))), rooms), strict=True
        ):
            dim.misplaced = axes
        for d, dim in enumerate(self.dims):
            taken = self.take(unwanted[d], rooms[d])
            dim.misplaced = taken + dim.misplaced
            rooms[d] //= self.size(taken)
        for dim, axes in zip(self.dims, self.spread(list(chain(*unwanted)), rooms), strict=True):
            dim.misplaced = axes + dim.misplaced
            dim.settle()
        if any(room > 1 for room in rooms):
            self.dims = before
            return False
        return True

    def all_to_alls(self, only_into_place: bool) -> None:
        """Move groups of axes from the ends of dimensions to those that want them, or only to where they are wanted."""
        for d, dim in enumerate(self.dims):
            while move := self.movable(d):
                axes, to = move
                target = self.dims[to]
                if only_into_place and target.wanted[: len(axes)] != axes:
                    break
                del dim.misplaced[-len(axes) :]
                target.misplaced += axes
                target.settle()
                self.steps.append(AllToAll(merge_sub_axes(axes, self.mesh), d, to, self.current()))

    def movable(self, d: int) -> tuple[list[AxisRef], int] | None:
        """The longest group at the end of dimension `d` that goes to one other dimension, and that dimension."""
        misplaced = self.dims[d].misplaced
        destinations = self.destinations()
        if not misplaced or misplaced[-1] not in destinations or destinations[misplaced[-1]][0] == d:
            return None
        to = destinations[misplaced[-1]][0]
        start = len(misplaced) - 1
        while start and destinations.get(misplaced[start - 1], (d, 0))[0] == to:
            start -= 1
        return misplaced[start:], to

    def all_gather(self, keep_wanted: bool) -> None:
        """Gather what is misplaced at the end of dimensions, up to the last axis that some dimension wants."""
        destinations = self.destinations()
        gathered: list[list[AxisRef]] = []
        for dim in self.dims:
            start = len(dim.misplaced)
            while start and not (keep_wanted and dim.misplaced[start - 1] in destinations):
                start -= 1
            gathered.append(dim.misplaced[start:])
            del dim.misplaced[start:]
        if any(gathered):
            self.steps.append(AllGather(self.merged(gathered), self.current()))


def _divide(a: int, b: int) -> bool:
    """Whether one of the two sizes divides the other."""
    return a % b == 0 or b % a == 0


def _common_suffix(first: Sequence[AxisRef], second: Sequence[AxisRef]) -> list[AxisRef]:
    length = 0
    while length < min(len(first), len(second)) and first[-1 - length] == second[-1 - length]:
        length += 1
    return list(first[len(first) - length :])


def _cut(axes: Iterable[AxisRef], others: Iterable[AxisRef], mesh: Mesh) -> list[AxisRef]:
    """`axes`, each cut where any of the `others` that can coexist with it begins or ends."""
    others = tuple(others)
    pieces: list[AxisRef] = []
    for axis in axes:
        bounds = {
            bound
            for other in others
            if axis.overlaps(other) and axis.can_coexist(other)
            for bound in (other.start, other.end_in(mesh))
            if axis.start < bound < axis.end_in(mesh)
        }
        for bound in sorted(bounds):
            head, axis = axis.split(bound // axis.start, mesh)
            pieces.append(head)
        pieces.append(axis)
    return pieces
