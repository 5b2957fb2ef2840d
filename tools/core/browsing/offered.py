"""Collects the offered resources by address and prompts by name."""

from __future__ import annotations

from collections.abc import Callable

from tools.core.browsing.prompt import PromptSpec
from tools.core.browsing.resource import ResourceSpec

Spec = ResourceSpec | PromptSpec
"""A resource or prompt that a function offers."""


def _object_to_nothing(_spec: Spec) -> str:
    return ""


class Offered:
    """The resources and prompts of functions.

    Args:
        objection: Returns why a spec cannot be offered, or "".

    Attributes:
        resources: By address or template, in the order of addition.
        prompts: By name, in the same order.
    """

    def __init__(self, objection: Callable[[Spec], str] = _object_to_nothing) -> None:
        self.resources: dict[str, ResourceSpec] = {}
        self.prompts: dict[str, PromptSpec] = {}
        self._objection = objection

    def add(self, spec: Spec) -> None:
        """Adds a resource or prompt.

        Raises:
            ValueError: If its address or name is taken, or cannot be offered.
        """
        if objection := self._objection(spec):
            raise ValueError(objection)
        if isinstance(spec, ResourceSpec):
            self._check_free("address", spec.uri, self.resources.get(spec.uri), spec)
            self.resources[spec.uri] = spec
        else:
            self._check_free("prompt", spec.name, self.prompts.get(spec.name), spec)
            self.prompts[spec.name] = spec

    def holds(self, spec: Spec) -> bool:
        """Returns whether the address or name belongs to exactly this spec."""
        if isinstance(spec, ResourceSpec):
            return self.resources.get(spec.uri) is spec
        return self.prompts.get(spec.name) is spec

    def remove_source(self, source: str) -> None:
        """Removes everything from one source."""
        for kept in (self.resources, self.prompts):
            for key in [key for key, spec in kept.items() if spec.source == source]:
                del kept[key]

    @staticmethod
    def _check_free(kind: str, key: str, owner: Spec | None, spec: Spec) -> None:
        if owner is not None:
            raise ValueError(
                f"The {kind} {key!r} is claimed by {spec.name} ({spec.source}), but it belongs to "
                f"{owner.name} ({owner.source}) already. Change one of them."
            )
