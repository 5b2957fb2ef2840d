"""Programs of the classic Berkeley Packet Filter that decide on system calls (seccomp(2)).

A block is a list of instructions that always returns; blocks are put together from smaller ones,
so that every jump goes forward, over blocks whose length is known.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

__all__ = [
    "ARCHITECTURE",
    "NUMBER",
    "Block",
    "Instruction",
    "answer",
    "argument",
    "assembled",
    "dispatch",
    "if_any_bit",
    "if_field",
    "if_one_of",
    "skip",
    "unless_above",
]

Instruction = tuple[int, int, int, int]
"""Code, jump if true, jump if false, operand: struct sock_filter of linux/filter.h."""

Block = Sequence[Instruction]

# Where the fields of struct seccomp_data (linux/seccomp.h) are.
NUMBER, ARCHITECTURE = 0, 4

_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_AND = 0x54  # BPF_ALU | BPF_AND | BPF_K
_JUMP = 0x05  # BPF_JMP | BPF_JA
_IF_EQUAL, _IF_GREATER, _IF_AT_LEAST, _IF_ANY_BIT = 0x15, 0x25, 0x35, 0x45
_RETURN = 0x06  # BPF_RET | BPF_K

_FARTHEST = 255
"""Instructions that a condition can jump over."""


def argument(index: int, *, high: bool = False) -> int:
    """Where the lower or the higher half of an argument is, little-endian."""
    return 16 + 8 * index + (4 if high else 0)


def answer(action: int) -> Block:
    """Decides."""
    return [(_RETURN, 0, 0, action)]


def if_one_of(where: int, values: Sequence[int], then: Block, otherwise: Block) -> Block:
    """Whether the word at a place is one of some."""
    block: list[Instruction] = [(_LOAD, 0, 0, where)]
    for after, value in zip(range(len(values) - 1, -1, -1), values, strict=True):
        over = after + len(otherwise)
        block.append((_IF_EQUAL, _near(over), 0, value & 0xFFFFFFFF))
    return [*block, *otherwise, *then]


def if_any_bit(where: int, mask: int, then: Block, otherwise: Block) -> Block:
    """Whether the word at a place has any bit of a mask."""
    jump = (_IF_ANY_BIT, _near(len(otherwise)), 0, mask)
    return [(_LOAD, 0, 0, where), jump, *otherwise, *then]


def if_field(where: int, mask: int, value: int, then: Block, otherwise: Block) -> Block:
    """Whether the bits of a mask, in the word at a place, have a value."""
    jump = (_IF_EQUAL, _near(len(otherwise)), 0, value)
    return [(_LOAD, 0, 0, where), (_AND, 0, 0, mask), jump, *otherwise, *then]


def skip(block: Block) -> Block:
    """Goes on behind a block: what a decision that leaves the rest to others ends with."""
    return [(_JUMP, 0, 0, len(block))]


def unless_above(last: int, then: Block, above: Block) -> Block:
    """Whether the number of the system call is at most the last known one."""
    jump = (_IF_GREATER, 0, _near(len(above)), last)
    return [(_LOAD, 0, 0, NUMBER), jump, *above, *then]


def dispatch(blocks: Mapping[int, Block], otherwise: Block) -> Block:
    """Decides by the number of the system call, in as many steps as a binary search takes.

    Args:
        blocks: What decides on a number.
        otherwise: What decides on all others.
    """
    starts: list[tuple[int, Block]] = [(0, otherwise)]
    for number, block in sorted(blocks.items()):
        if starts[-1][0] == number:
            starts.pop()
        if not starts or starts[-1][1] != block:
            starts.append((number, block))
        starts.append((number + 1, otherwise))
    return [(_LOAD, 0, 0, NUMBER), *_search(starts)]


def _search(starts: Sequence[tuple[int, Block]]) -> Block:
    """Looks up in which interval the number is; each reaches up to where the next one starts."""
    if len(starts) == 1:
        return starts[0][1]
    middle = len(starts) // 2
    left, right = _search(starts[:middle]), _search(starts[middle:])
    pivot = starts[middle][0]
    if len(left) <= _FARTHEST:
        return [(_IF_AT_LEAST, len(left), 0, pivot), *left, *right]
    return [(_IF_AT_LEAST, 0, 1, pivot), (_JUMP, 0, 0, len(left)), *left, *right]


def assembled(block: Block) -> bytes:
    """The program as the kernel takes it."""
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in block)


def _near(distance: int) -> int:
    if distance > _FARTHEST:
        raise ValueError(f"a condition cannot jump over {distance} instructions")
    return distance
