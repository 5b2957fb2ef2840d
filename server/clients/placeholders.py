"""Translates the placeholders of clients' files, which they fill in when starting a server."""

from __future__ import annotations

import re
from pathlib import Path

_PLACEHOLDER = re.compile(r"\$\{([^{}]*)\}")
_BARE = re.compile(r"\$([A-Za-z_]\w*)")
_VARIABLE = re.compile(r"(?:env:)?([A-Za-z_]\w*)(?::-(.*))?", re.DOTALL)
_ASKED = re.compile(r"(?:input|promptString):(.+)")


class Placeholders:
    """Replaces the placeholders of one server, and collects what the user must fill in.

    Args:
        project: The server's project, if it has one.
        bare_variables: Whether `$NAME` is a variable as well.

    Attributes:
        asked: What the client asks its user for, with the variable that replaces it here.
        unknown: Placeholders that the user must fill in, with their fields.
        defaults: Variables replaced by their defaults, where Toolcrib expands no variables.
    """

    def __init__(self, project: Path | None, *, bare_variables: bool) -> None:
        self._project = project
        self._bare_variables = bare_variables
        self.asked: dict[str, str] = {}
        self.unknown: dict[str, str] = {}
        self.defaults: list[str] = []

    def replaced(self, text: str, field: str, *, variables: bool = True) -> str:
        """Converts a text's placeholders to ours: `${NAME}` and `${NAME:-default}`.

        Args:
            text: The text in the client's format.
            field: Its field, for messages.
            variables: Whether Toolcrib expands variables in this field.
        """
        if self._bare_variables:
            text = _BARE.sub(r"${\1}", text)
        return _PLACEHOLDER.sub(lambda found: self._meaning(found, field, variables), text)

    def _meaning(self, found: re.Match[str], field: str, variables: bool) -> str:
        known = self._known_value(found[1])
        if known is not None:
            return known
        asked = _ASKED.fullmatch(found[1])
        variable = _VARIABLE.fullmatch(found[1])
        if asked and variables:
            name = self.asked[asked[1]] = re.sub(r"\W+", "_", asked[1], flags=re.ASCII).upper()
            return f"${{{name}}}"
        if variable and variables:
            return f"${{{found[1].removeprefix('env:')}}}"
        if variable and variable[2] is not None:
            self.defaults.append(variable[1])
            return variable[2]
        self.unknown[found[0]] = field
        return found[0]

    def _known_value(self, name: str) -> str | None:
        """Returns the value of a placeholder for a known path."""
        if name in {"/", "pathSeparator"}:
            return "/"
        if name == "userHome":
            return str(Path.home())
        if self._project and name in {"workspaceFolder", "workspaceRoot", "CLAUDE_PROJECT_DIR"}:
            return str(self._project)
        if self._project and name == "workspaceFolderBasename":
            return self._project.name
        return None
