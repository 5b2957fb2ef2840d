"""Reads functions marked as resources or prompts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tools.conversion.arguments.arguments import Arguments
from tools.conversion.browsing.completion import Completion
from tools.conversion.callables.callables import title_of, tool_name
from tools.conversion.callables.docstrings import description, documentation
from tools.conversion.callables.signature import read_signature
from tools.conversion.invocation import Answering, AnswerT, Invocation
from tools.core.audit.secret_schema import bears_secret
from tools.core.browsing.prompt import PromptOptions
from tools.core.browsing.resource import ResourceOptions
from tools.core.errors import ToolDefinitionError


class Marked:
    """A function that its author marked as a resource or a prompt.

    Args:
        function: The function.
        options: The author's options.
        source: Where it comes from, as in ToolSpec.

    Attributes:
        name: The name of the resource or prompt.
        returns: The function's return type.
        schema: The JSON Schema of its arguments.

    Raises:
        ToolDefinitionError: If it cannot be converted faithfully; the message says what to change.
    """

    def __init__(
        self, function: Callable[..., Any], options: ResourceOptions | PromptOptions, source: str
    ) -> None:
        self.name = options.get("name") or tool_name(function, None)
        self._function = function
        self._options = options
        self._source = source
        self._signature = read_signature(function)
        self._documentation = documentation(function)
        self._arguments = Arguments(self.name, self._signature, self._documentation.parameters)
        self.returns = self._signature.returns
        self.schema = self._arguments.schema
        self._check_open()

    def specification(self) -> dict[str, Any]:
        """Returns the fields that resource and prompt specifications share."""
        functions = self._options.get("complete", {})
        return {
            "title": title_of(self.name),
            "description": description(self._documentation),
            **self._options,
            "name": self.name,
            "source": self._source,
            "validate": self._arguments.validate,
            "complete": Completion(self.name, self.schema, functions, self._source),
        }

    def answering(self, output: Answering[AnswerT]) -> Invocation[AnswerT]:
        """Returns the function as an invocation whose result is formatted by `output`."""
        is_ours = self._source == "builtin"
        return Invocation(self._function, self._signature, output, abandon=False, is_ours=is_ours)

    def _check_open(self) -> None:
        """Rejects secrets: clients display and store addresses and prompt arguments."""
        for name, part in self.schema["properties"].items():
            if bears_secret(part, self.schema):
                raise ToolDefinitionError(
                    f"{self.name} takes the secret {name}, but clients show the arguments of"
                    " resources and prompts. Make it a tool, or read the secret from the"
                    " environment."
                )
