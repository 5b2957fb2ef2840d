"""Variants: in which form a client is given lists and results, by what is known of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # servers of one's own have no settings
    from server.settings.gateway import Results

READ_JSON = (
    "claude-code",  # github.com/anthropics/claude-code/issues/79944, with a schema or without
    "codex-mcp-client",  # openai/codex: codex-rs/protocol/src/models.rs, From<&CallToolResult>
    "opencode",  # github.com/anomalyco/opencode/pull/32074
    "Visual Studio Code*",  # microsoft/vscode: mcpLanguageModelToolContribution.ts, invoke
)
"""Clients that give their model the structured content of a result in place of its text."""

REFUSE_NULLS = (
    "cursor*",  # github.com/cursor/cursor/issues/3540 and 3778: refuses each value of such a union
    "gemini-cli*",  # github.com/google-gemini/gemini-cli/issues/21094: loses all tools by one
)
"""Clients that refuse parameters which may be null besides something else."""


@dataclass(frozen=True, slots=True)
class Variant:
    """What differs between the lists and results of clients that may call the same tools.

    Attributes:
        results: What calls answer with; auto leaves it to how the tool is listed.
        nulls: Whether the list says which parameters may be null besides something else.
    """

    results: Results = "auto"
    nulls: bool = True


def variant_of(client: str, results: Results) -> Variant:
    """The variant for a client.

    Args:
        client: Its name, as it says it.
        results: What the settings want calls to answer with.
    """
    if results == "auto" and is_one_of(client, READ_JSON):
        results = "text"
    return Variant(results, nulls=not is_one_of(client, REFUSE_NULLS))


def is_one_of(client: str, names: Iterable[str]) -> bool:
    """Whether a client has one of some names, in any case of letters; * and ? are wildcards."""
    return any(fnmatchcase(client.casefold(), name.casefold()) for name in names)
