"""A call as rules see it: its tool, and what it is about."""

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
    """A call.

    Attributes:
        spec: Its tool.
        arguments: Its arguments, as validation made them.
        roots: The root, absolute, in each of its spellings.
    """

    spec: ToolSpec
    arguments: Mapping[str, Any]
    roots: tuple[str, ...]

    @property
    def kind(self) -> SubjectKind | None:
        """How rules compare what it is about."""
        return self.spec.subject.kind if self.spec.subject else None

    def argument(self, name: str) -> Any:  # noqa: ANN401  # any JSON value
        """Returns an argument as it is given, else its default, else None."""
        if name in self.arguments:
            return self.arguments[name]
        return self.spec.input_schema.get("properties", {}).get(name, {}).get("default")

    @cached_property
    def subject(self) -> str | None:
        """What it is about, as it is given; None where it is about nothing."""
        about = self.spec.subject
        if about is None:
            return None
        given = self.argument(about.parameter)
        if given is None and about.read is not None:
            given = about.read(self.arguments)
        return None if given is None else str(given)

    @cached_property
    def path(self) -> str | None:
        """The path it is about, relative to the root; None where it is about none.

        A tool that works beneath the root is about the whole of it where no path is given.
        """
        if self.kind is not SubjectKind.PATH:
            return None
        given = self.subject
        if given is None:
            return "." if self.spec.scope is ToolScope.SANDBOXED else None
        return relative_path(given, self.roots)

    @cached_property
    def address(self) -> Address | None:
        """The URL that it is about; None where programs might not agree on what it means."""
        try:
            return Address.parse(self.subject or "")
        except ValueError:
            return None

    @property
    def keys(self) -> tuple[str, ...] | None:
        """By what rules that could mean it are found (`Form.key`); None where any could."""
        match self.kind:
            case SubjectKind.PATH:
                return () if self.path is None else first_component(self.path)
            case SubjectKind.URL:
                return None if self.address is None else (self.address.host,)
            case _:
                return ()

    @property
    def secret_parameter(self) -> str:
        """The parameter that names a secret; empty where the tool has none."""
        return self.spec.subject.secret if self.spec.subject else ""

    @property
    def secret(self) -> str | None:
        """The name of the secret that it uses; None where it uses none."""
        given = self.arguments.get(self.secret_parameter)
        return None if given is None else str(given)

    @property
    def method(self) -> str:
        """The method of its request."""
        fixed = self.spec.subject.method if self.spec.subject else ""
        return fixed or str(self.argument("method") or "GET").upper()


def reads_files(spec: ToolSpec) -> bool:
    """Whether a tool about a path reads what is there."""
    return Effect.READ in spec.effects or not writes_files(spec)


def writes_files(spec: ToolSpec) -> bool:
    """Whether a tool about a path changes what is there.

    Of the scope context only the store is changed, except by functions of the user's.
    """
    only_stores = spec.scope is ToolScope.CONTEXT and not spec.is_function
    return Effect.WRITE in spec.effects and not only_stores
