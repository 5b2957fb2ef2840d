"""Check of the secrets in the settings: reads each, shows none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from server.cli.checks.findings import Finding, run_check
from server.composition.safety import make_secrets
from tools.core.errors import UnavailableError

if TYPE_CHECKING:
    from server.settings import Settings
    from tools.sandbox.secrets.secrets import Secret, Secrets


def check_secrets(settings: Settings) -> Iterator[Finding]:
    """Checks that each secret can be read.

    Args:
        settings: The settings with the secrets.
    """
    secrets = make_secrets(settings, os.environ)
    for name, each in settings.secrets.items():
        yield run_check(f"Secret {name}", partial(_read, secrets, each.to_secret(name)))


def _read(secrets: Secrets, secret: Secret) -> str:
    try:
        secrets.read(secret)
    except UnavailableError as error:
        raise ValueError(" ".join([error.message, *error.next_actions])) from error
    told = [f"for requests to {', '.join(map(str, secret.hosts))}"] if secret.hosts else []
    if secret.programs:
        commands = ", ".join(each.text for each in secret.programs)
        told.append(f"for {commands}, as {secret.variable}")
    return "; ".join(told)
