"""Computes the hashes of `simhash-pybind`, of which PyPI has only the source."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations, pairwise

import numpy as np

_BITS = 64


def unsigned_hash(token: bytes) -> int:
    """Returns the first eight bytes of a token's MD5."""
    return int.from_bytes(hashlib.md5(token, usedforsecurity=False).digest()[:8])


def compute(hashes: Iterable[int]) -> int:
    """Returns the hash whose bits are those that most of the hashes have set."""
    table = np.array(list(hashes), dtype=">u8").view(np.uint8).reshape(-1, 8)
    ones = np.unpackbits(table, axis=1).sum(axis=0, dtype=np.int64)
    return int.from_bytes(np.packbits(2 * ones > len(table)).tobytes())


def num_differing_bits(one: int, other: int) -> int:
    """Returns in how many bits two hashes differ."""
    return (int(one) ^ int(other)).bit_count()


def find_all(
    hashes: Iterable[int], number_of_blocks: int, different_bits: int
) -> set[tuple[int, int]]:
    """Returns the pairs of hashes that differ in few bits.

    Hashes that differ in at most `different_bits` agree in all blocks but as many.
    """
    edges = [_BITS * block // number_of_blocks for block in range(number_of_blocks + 1)]
    blocks = [(1 << end) - (1 << start) for start, end in pairwise(edges)]
    all_hashes = {int(each) for each in hashes}
    found = set()
    for chosen in combinations(blocks, number_of_blocks - different_bits):
        mask = sum(chosen)
        alike: defaultdict[int, list[int]] = defaultdict(list)
        for each in all_hashes:
            alike[each & mask].append(each)
        for group in alike.values():
            for pair in combinations(sorted(group), 2):
                if num_differing_bits(*pair) <= different_bits:
                    found.add(pair)
    return found
