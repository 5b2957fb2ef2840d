"""What every group of settings is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

__all__ = ["SettingsGroup"]


class SettingsGroup(BaseModel):
    """Settings that belong together; immutable, and without what nobody knows."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
