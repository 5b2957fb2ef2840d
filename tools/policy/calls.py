"""A tool call as rules see it: the tool, and the subject of the call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tools.core.spec import Effect, SubjectKind, ToolScope, ToolSpec
from tools.policy.paths import first_component, relative_path
from tools.policy.urls import Address


@dataclass(frozen=True)
class Call:
    """A call of a tool."""

    spec: ToolSpec
    arguments: Mapping[str, Any]  # its validated arguments
    roots: tuple[str, ...]  # the absolute root, in each of its spellings

    @property
    def kind(self) -> SubjectKind | None:
        """The kind of its subject, which decides how rules compare it."""
        return self.spec.subject.kind if self.spec.subject else None

    def argument(self, name: str) -> Any:  # noqa: ANN401  # any JSON value
        """Returns an argument as given, else its default, else None."""
        if name in self.arguments:
            return self.arguments[name]
        return self.spec.input_schema.get("properties", {}).get(name, {}).get("default")

    @cached_property
    def subject(self) -> str | None:
        """Its subject as given; None if it has none."""
        about = self.spec.subject
        if about is None:
            return None
        given = self.argument(about.parameter)
        if given is None and about.read is not None:
            given = about.read(self.arguments)
        return None if given is None else str(given)

    @cached_property
    def path(self) -> str | None:
        """The path of its subject, relative to the root; None if it is not about a path.

        For a tool that works inside the root, a missing path means the whole root.
        """
        if self.kind is not SubjectKind.PATH:
            return None
        given = self.subject
        if given is None:
            return "." if self.spec.scope is ToolScope.SANDBOXED else None
        return relative_path(given, self.roots)

    @cached_property
    def address(self) -> Address | None:
        """Its URL; None if programs might parse it differently."""
        try:
            return Address.parse(self.subject or "")
        except ValueError:
            return None

    @property
    def keys(self) -> tuple[str, ...] | None:
        """The keys (`Form.key`) of the rules that could match it; None if any rule could."""
        match self.kind:
            case SubjectKind.PATH:
                return () if self.path is None else first_component(self.path)
            case SubjectKind.URL:
                return None if self.address is None else (self.address.host,)
            case _:
                return ()

    @property
    def secret_parameter(self) -> str:
        """The parameter that names a secret; empty if there is none."""
        return self.spec.subject.secret if self.spec.subject else ""

    @property
    def secret(self) -> str | None:
        """The name of the secret it uses, if any."""
        given = self.arguments.get(self.secret_parameter)
        return None if given is None else str(given)

    @property
    def method(self) -> str:
        """The HTTP method of the request."""
        fixed = self.spec.subject.method if self.spec.subject else ""
        return fixed or str(self.argument("method") or "GET").upper()


def reads_files(spec: ToolSpec) -> bool:
    """Returns whether a tool with a path reads the file."""
    return Effect.READ in spec.effects or not writes_files(spec)


def writes_files(spec: ToolSpec) -> bool:
    """Returns whether a tool with a path changes the file.

    Tools of scope context change only the store, except for the user's functions.
    """
    only_stores = spec.scope is ToolScope.CONTEXT and not spec.is_function
    return Effect.WRITE in spec.effects and not only_stores
