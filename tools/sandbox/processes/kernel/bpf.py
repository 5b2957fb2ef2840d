"""Classic Berkeley Packet Filter programs that decide on system calls (seccomp(2)).

A block is a list of instructions that always returns. Blocks are built from smaller ones, so every
jump goes forward, over blocks of known length.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

Instruction = tuple[int, int, int, int]
"""Code, jump if true, jump if false, operand: struct sock_filter of linux/filter.h."""

Block = Sequence[Instruction]

# Offsets of the fields of struct seccomp_data (linux/seccomp.h).
NUMBER, ARCHITECTURE = 0, 4

_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_AND = 0x54  # BPF_ALU | BPF_AND | BPF_K
_JUMP = 0x05  # BPF_JMP | BPF_JA
_IF_EQUAL, _IF_GREATER, _IF_AT_LEAST, _IF_ANY_BIT = 0x15, 0x25, 0x35, 0x45
_RETURN = 0x06  # BPF_RET | BPF_K

_FARTHEST = 255
"""Maximum number of instructions that a condition can jump over."""


def argument(index: int, *, high: bool = False) -> int:
    """Returns the offset of the lower or the higher half of an argument, little-endian."""
    return 16 + 8 * index + (4 if high else 0)


def answer(action: int) -> Block:
    """Returns from the program with an action."""
    return [(_RETURN, 0, 0, action)]


def if_one_of(offset: int, values: Sequence[int], then: Block, otherwise: Block) -> Block:
    """Branches on whether the word at an offset is one of some values."""
    block: list[Instruction] = [(_LOAD, 0, 0, offset)]
    for after, value in zip(range(len(values) - 1, -1, -1), values, strict=True):
        over = after + len(otherwise)
        block.append((_IF_EQUAL, _near(over), 0, value & 0xFFFFFFFF))
    return [*block, *otherwise, *then]


def if_any_bit(offset: int, mask: int, then: Block, otherwise: Block) -> Block:
    """Branches on whether the word at an offset has any bit of a mask."""
    jump = (_IF_ANY_BIT, _near(len(otherwise)), 0, mask)
    return [(_LOAD, 0, 0, offset), jump, *otherwise, *then]


def if_field(offset: int, mask: int, value: int, then: Block, otherwise: Block) -> Block:
    """Branches on whether the bits of a mask, in the word at an offset, have a value."""
    jump = (_IF_EQUAL, _near(len(otherwise)), 0, value)
    return [(_LOAD, 0, 0, offset), (_AND, 0, 0, mask), jump, *otherwise, *then]


def skip(block: Block) -> Block:
    """Jumps over a block, to the instructions that follow it."""
    return [(_JUMP, 0, 0, len(block))]


def unless_above(last: int, then: Block, above: Block) -> Block:
    """Branches on whether the number of the system call is at most the last known one."""
    jump = (_IF_GREATER, 0, _near(len(above)), last)
    return [(_LOAD, 0, 0, NUMBER), jump, *above, *then]


def dispatch(blocks: Mapping[int, Block], otherwise: Block) -> Block:
    """Branches on the number of the system call, by a binary search."""
    starts: list[tuple[int, Block]] = [(0, otherwise)]
    for number, block in sorted(blocks.items()):
        if starts[-1][0] == number:
            starts.pop()
        if not starts or starts[-1][1] != block:
            starts.append((number, block))
        starts.append((number + 1, otherwise))
    return [(_LOAD, 0, 0, NUMBER), *_search(starts)]


def _search(starts: Sequence[tuple[int, Block]]) -> Block:
    """Finds the interval of the number; each ends at the start of the next."""
    if len(starts) == 1:
        return starts[0][1]
    middle = len(starts) // 2
    left, right = _search(starts[:middle]), _search(starts[middle:])
    pivot = starts[middle][0]
    if len(left) <= _FARTHEST:
        return [(_IF_AT_LEAST, len(left), 0, pivot), *left, *right]
    return [(_IF_AT_LEAST, 0, 1, pivot), (_JUMP, 0, 0, len(left)), *left, *right]


def assembled(block: Block) -> bytes:
    """Encodes a program for the kernel."""
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in block)


def _near(distance: int) -> int:
    if distance > _FARTHEST:
        raise ValueError(f"a condition cannot jump over {distance} instructions")
    return distance
