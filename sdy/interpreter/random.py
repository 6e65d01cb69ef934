"""Random number generators.

StableHLO does not specify the numbers of `rng`: here they are NumPy's, and equal on all devices.

Random bits come from the counter-based generators Threefry and Philox of J. Salmon et al., "Parallel random
numbers: as easy as 1, 2, 3", SC 2011. The state is a 64-bit key, then a counter of 64 bits (Threefry) or of up to 128
bits (Philox), lowest first. StableHLO does not specify the order of the bits in the result, so portable programs do not
use them; here the order is XLA's.
"""

import math
from collections.abc import Sequence

import numpy as np
from xdsl.interpreter import Interpreter, PythonValues
from xdsl.ir import Operation

from sdy import stablehlo
from sdy.interpreter.grid import device_of
from sdy.interpreter.tables import Implementation
from sdy.interpreter.values import Array, dtype_of, of_type, widened
from sdy.ir.shapes import shape_of
from sdy.stablehlo import RngAlgorithm
from sdy.stablehlo.attributes.enums import RngDistribution

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_THREEFRY_PARITY = np.uint32(0x1BD11BDA)
_PHILOX_FACTORS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_PHILOX_STEPS = (np.uint32(0x9E3779B9), np.uint32(0xBB67AE85))
_PHILOX_ROUNDS = 10
_HALF = np.uint64(32)


def _halves(wide: Array) -> list[Array]:
    """Split 64-bit numbers into their lower and upper 32 bits."""
    return [wide.astype(np.uint32), (wide >> _HALF).astype(np.uint32)]


def _joined(low: Array, high: Array) -> Array:
    return low.astype(np.uint64) | (high.astype(np.uint64) << _HALF)


def _threefry(counter: Array, key: Array) -> list[Array]:
    """Generate two 32-bit numbers for each 64-bit counter."""
    x, y = _halves(counter)
    first, second = _halves(key)
    keys = (first, second, first ^ second ^ _THREEFRY_PARITY)
    x, y = x + keys[0], y + keys[1]
    for turn in range(5):
        for distance in _ROTATIONS[turn % 2]:
            x = x + y
            y = x ^ ((y << np.uint32(distance)) | (y >> np.uint32(32 - distance)))
        x, y = x + keys[(turn + 1) % 3], y + keys[(turn + 2) % 3] + np.uint32(turn + 1)
    return [x, y]


def _threefry_bits(state: Array, shape: Sequence[int], wide: bool) -> tuple[Array, Array]:
    """Generate numbers of this shape, and the next counter.

    One counter yields one 64-bit number, or two adjacent 32-bit numbers.
    """
    key, counter = state[0], state[1]
    if wide:
        count = math.prod(shape)
        numbers = _joined(*_threefry(counter + np.arange(count, dtype=np.uint64), key)).reshape(shape)
        return numbers, state[1:2] + np.uint64(count)
    sizes = list(shape) or [1]
    even = [dim for dim, size in enumerate(sizes) if size % 2 == 0]
    # The two numbers are adjacent along the first dimension of even size, or else along the largest one.
    dim = even[0] if even else sizes.index(max(sizes))
    halved = [*sizes[:dim], -(-sizes[dim] // 2), *sizes[dim + 1 :]]
    count = math.prod(halved)
    pair = _threefry(counter + np.arange(count, dtype=np.uint64), key)
    numbers = np.stack([half.reshape(halved) for half in pair], axis=dim + 1)
    numbers = numbers.reshape([*halved[:dim], 2 * halved[dim], *halved[dim + 1 :]])
    numbers = numbers.take(range(sizes[dim]), axis=dim)
    return numbers.reshape(shape), state[1:2] + np.uint64(count)


def _philox(counter: list[Array], key: list[Array]) -> list[Array]:
    """Generate four 32-bit numbers for each 128-bit counter, given as four 32-bit parts."""
    for _ in range(_PHILOX_ROUNDS):
        factors = zip(counter[::2], _PHILOX_FACTORS, strict=True)
        low, high = (_halves(part.astype(np.uint64) * factor) for part, factor in factors)
        counter = [high[1] ^ counter[1] ^ key[0], high[0], low[1] ^ counter[3] ^ key[1], low[0]]
        key = [part + step for part, step in zip(key, _PHILOX_STEPS, strict=True)]
    return counter


def _philox_bits(state: Array, shape: Sequence[int], wide: bool) -> tuple[Array, Array]:
    """Generate numbers of this shape, and the next counter.

    One counter yields two 64-bit numbers or four 32-bit numbers, in order. The upper half of a 64-bit counter is the
    key.
    """
    count = math.prod(shape)
    steps = -(-count // (2 if wide else 4))
    low, high = state[1], state[2 if len(state) > 2 else 0]
    lows = low + np.arange(steps, dtype=np.uint64)
    highs = high + (lows < low).astype(np.uint64)
    parts = _philox([*_halves(lows), *_halves(highs)], _halves(state[0]))
    if wide:
        parts = [_joined(*parts[:2]), _joined(*parts[2:])]
    numbers = np.stack(parts, axis=-1).reshape(-1)[:count].reshape(shape)
    next_low = low + np.uint64(steps)
    return numbers, np.array([next_low, high + np.uint64(next_low < low)])


_GENERATORS = {
    RngAlgorithm.DEFAULT: _philox_bits,
    RngAlgorithm.PHILOX: _philox_bits,
    RngAlgorithm.THREE_FRY: _threefry_bits,
}


def _rng_bit_generator(interpreter: Interpreter, op: stablehlo.RngBitGeneratorOp, args: PythonValues) -> PythonValues:
    state: Array = args[0].astype(np.uint64)
    dtype = dtype_of(op.output)
    generate = _GENERATORS[op.rng_algorithm.data]
    numbers, counter = generate(state, shape_of(op.output), dtype.itemsize == 8)
    bits = numbers.astype(f"u{dtype.itemsize}")
    next_state = np.concatenate([state[:1], counter])[: len(state)]
    return next_state.astype(dtype_of(op.output_state)), bits.view(dtype)


def _rng(interpreter: Interpreter, op: stablehlo.RngOp, args: PythonValues) -> PythonValues:
    """Draw uniformly from `a` to `b`, exclusive, or from the normal distribution of mean `a` and deviation `b`."""
    generator, shape = device_of(interpreter).random, shape_of(op.result)
    a, b = (widened(bound) for bound in args[:2])
    if op.rng_distribution.data is RngDistribution.NORMAL:
        return (of_type(generator.normal(a, b, shape), op.result),)
    if a.dtype.kind in "biu":
        return (of_type(generator.integers(a.astype(int), b.astype(int), shape), op.result),)
    numbers = of_type(generator.uniform(a, b, shape), op.result)
    return (np.where(numbers < args[1], numbers, args[0]),)


RANDOM: dict[type[Operation], Implementation] = {
    stablehlo.RngBitGeneratorOp: _rng_bit_generator,
    stablehlo.RngOp: _rng,
}
