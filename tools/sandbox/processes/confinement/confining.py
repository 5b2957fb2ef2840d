"""Landlock and the filter of system calls around this process, made before its order comes.

Making them takes longer than all else between fork and exec, and they are the same for nearly every
program: the filter for all, the rules about what is readable from one program to the next.
"""

from __future__ import annotations

from collections.abc import Sequence

from tools.sandbox.processes.kernel import seccomp
from tools.sandbox.processes.kernel.landlock import PathRules

__all__ = ["Confining"]


class Confining:
    """Filters this process, which is to become a program that Landlock confines.

    What cannot be done is said when the program is started: somebody hears it then.

    Args:
        filter_program: The filter of system calls.
        readable: What the last program could read, as the next one most likely can.

    Attributes:
        listener: Where the filter's questions come in; None where it could not be installed.
    """

    def __init__(self, filter_program: bytes, readable: Sequence[bytes]) -> None:
        self.listener: int | None = None
        self._failure: OSError | None = None
        self._rules: PathRules | None = None
        try:
            self._rules = PathRules(readable)
            # Once ahead: memory that a fork shares is copied when it is used.
            self._rules.are_of(readable)
            self.listener = seccomp.install(filter_program)
        except OSError as error:
            self._failure = error

    def check(self) -> None:
        """Sees that the filter is there.

        Raises:
            OSError: Why it is not.
        """
        if self._failure is not None:
            raise self._failure

    def make_room(self, count: int) -> None:
        """Leaves the lowest descriptors to the program.

        Args:
            count: How many it is given.
        """
        if self._rules is not None:
            self._rules.move_above(count)

    def restrict(self, readable: Sequence[bytes], writable: Sequence[bytes]) -> None:
        """Puts this process under the rules.

        Args:
            readable: Paths that may be read and executed.
            writable: Paths where everything is allowed but making devices.

        Raises:
            OSError: The kernel refuses.
        """
        rules = self._rules
        if rules is None or not rules.are_of(readable):
            rules = PathRules(readable)
        rules.allow_writes(writable)
        rules.enter()
