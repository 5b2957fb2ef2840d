"""The base of the models that tools take and answer."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict

__all__ = ["ToolModel"]


class ToolModel(BaseModel):
    """A model whose validator is built when it is first used: a start needs few of them."""

    model_config = ConfigDict(defer_build=True)

    @classmethod
    def from_attributes(cls, source: object, **given: object) -> Self:
        """Makes a model of the attributes of an object that are named as its fields.

        Args:
            source: The object, such as a value of storage.
            given: The fields that it lacks, or that are to be different.
        """
        taken = {name: getattr(source, name) for name in cls.model_fields if name not in given}
        return cls(**taken, **given)
