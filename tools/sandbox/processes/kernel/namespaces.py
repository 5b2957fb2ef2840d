"""Namespaces of others that this process joins; zygotes load this module."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tools.sandbox.processes.kernel.syscalls import NUMBERS, syscall


def join(namespaces: Sequence[int]) -> None:
    """Joins namespaces in their order: a user namespace gives the right to join those in it.

    Raises:
        OSError: The kernel refuses.
    """
    for namespace in namespaces:
        # Python has os.setns() from 3.12 on.
        syscall(NUMBERS[os.uname().machine]["setns"], namespace, 0)
