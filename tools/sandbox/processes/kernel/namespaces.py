"""Joins existing namespaces; loaded by zygotes."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tools.sandbox.processes.kernel.syscalls import NUMBERS, syscall


def join(namespaces: Sequence[int]) -> None:
    """Joins namespaces in order: a user namespace grants the right to join those in it."""
    for namespace in namespaces:
        # Python has os.setns() since 3.12.
        syscall(NUMBERS[os.uname().machine]["setns"], namespace, 0)
