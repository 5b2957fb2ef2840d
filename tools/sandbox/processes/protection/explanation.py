"""What a program's errors mean where it met a repository that mounts hold in place."""

from __future__ import annotations

import re

_BUSY = r"(?:Device or resource busy|Read-only file system)"
_SETTINGS = re.compile(
    rf"could not (?:write|lock) config file [^\n]{{1,4096}}: {_BUSY}"
    r"(?!\nwarning: Update of config-file failed)"  # a branch that is deleted leaves its settings
)
_REMOVAL = re.compile(rf"cannot remove '([^'\n]{{0,4096}}/)?\.git(?:/[^'\n]{{0,4096}})?': {_BUSY}")

_ALONE = "in a call of its own, with literal words, while nothing runs in the background"


def explain_errors(errors: str) -> tuple[str, ...]:
    """Returns what to do instead, a sentence for each kind of error.

    Args:
        errors: What the program wrote as errors.
    """
    notes = []
    if _SETTINGS.search(errors):
        notes.append(
            "The settings of a repository are closed while other programs run, since they name what"
            f" git runs. Run the command that changes them {_ALONE}: git config (of what runs"
            " nothing), remote, branch, checkout, switch, or push -u."
        )
    if _REMOVAL.search(errors):
        notes.append(
            f"Repositories are held in place while other programs run. Run rm -rf {_ALONE}."
        )
    return tuple(notes)
