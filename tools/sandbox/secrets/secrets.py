"""The secrets in the settings, read on each use and never disclosed elsewhere."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

import anyio.to_thread

from tools.conversion.arguments.validation_errors import nearest
from tools.core.errors import InvalidArgumentsError, UnavailableError
from tools.policy.shell.words import Word
from tools.sandbox.processes.models import Level
from tools.sandbox.secrets.redaction import Redaction
from tools.sandbox.secrets.secret import Secret


class Secrets:
    """Knows the secrets, and reads their values on each use."""

    def __init__(
        self,
        secrets: Iterable[Secret] = (),
        *,
        environ: Mapping[str, str] | None = None,
        redaction: Redaction | None = None,
    ) -> None:
        self._secrets = {each.name: each for each in secrets}
        self._environ = environ or {}
        self.redaction = redaction or Redaction()

    def find(self, name: str) -> Secret:
        """Returns the secret with this name that requests may use."""
        usable = {each.name: each for each in self._secrets.values() if each.hosts}
        if name in usable:
            return usable[name]
        meant = nearest(name, usable)
        known = f"there are: {', '.join(usable)}" if usable else "the settings name none"
        raise InvalidArgumentsError(
            f"secret: {name[:64]!r} is unknown; {known}.",
            suggestions=[meant] if meant else [],
            next_actions=["Give an existing name, or leave secret out."],
        )

    def of_line(self, line: str) -> tuple[Secret, ...]:
        """Returns the secrets for a shell line that is a single matching command."""
        if not any(each.programs for each in self._secrets.values()):
            return ()
        words = _only_command(line)
        return tuple(each for each in self._secrets.values() if words and each.is_for(words))

    async def value(self, secret: Secret) -> str:
        """Returns the value of a secret, which is redacted everywhere from now on."""
        # The keyring may wait for the user.
        return await anyio.to_thread.run_sync(self.read, secret, abandon_on_cancel=True)

    def read(self, secret: Secret) -> str:
        """As `value`; blocks."""
        try:
            value = secret.origin.read(self._environ).strip()
        except UnavailableError as error:
            raise UnavailableError(
                f"The secret {secret.name!r} cannot be used: {error.message}.",
                next_actions=error.next_actions,
            ) from error
        secret.check_value(value)
        self.redaction.learn(secret.name, value)
        return value

    async def variables(
        self, secrets: Sequence[Secret], level: Level
    ) -> tuple[dict[str, str], tuple[str, ...]]:
        """Returns the variables of a program that gets secrets, with notes.

        An unconfined program gets none: others could read them from it.
        """
        if level is Level.NONE:
            notes = (
                f"It was not given the secret {each.name}: programs run unconfined here."
                for each in secrets
            )
            return {}, tuple(notes)
        values = {each.variable: await self.value(each) for each in secrets}
        given = (f"It was given the secret {each.name} as {each.variable}." for each in secrets)
        return values, tuple(given)


def _only_command(line: str) -> Sequence[Word]:
    """Returns the words of a line that is a single command; else empty."""
    from tools.policy.shell.shell_command import ShellCommand  # loads the parser

    plain = ShellCommand.parse(line).plain
    if plain is None or len(plain.commands) != 1:
        return ()
    (words,) = plain.commands
    try:
        # No assignments, redirections or expansions.
        is_bare = [word.text for word in words] == shlex.split(line)
    except ValueError:
        return ()
    return words if is_bare and not any(word.is_glob for word in words) else ()
