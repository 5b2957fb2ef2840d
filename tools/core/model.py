"""The base of the models that tools take and answer."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

__all__ = ["ToolModel"]


class ToolModel(BaseModel):
    """A model whose validator is built when it is first used: a start needs few of them."""

    model_config = ConfigDict(defer_build=True)
