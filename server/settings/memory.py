"""Settings of memory: automatic recording, and the model for summaries."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from server.settings.group import SettingsGroup


class MemorySettings(SettingsGroup):
    """Automatic recording and consolidation."""

    record: bool = Field(
        default=True,
        description="Whether tool calls and fetched prompts are recorded, redacted and shortened, "
        "in the memory of the user they concern.",
    )
    consolidate: bool = Field(
        default=True,
        description="Whether important entries are promoted, ended sessions summarized and old "
        "memories persisted, in the background.",
    )


class SummarySettings(SettingsGroup):
    """The model that summarizes events if the client offers none."""

    url: Annotated[str, Field(pattern=r"^(https?://\S+)?$")] = Field(
        "",
        description="Base URL of an OpenAI-compatible API, such as http://127.0.0.1:11434/v1; "
        "empty means that no such model is used.",
    )
    model: str = Field(
        "", validate_default=True, description="The model's name; required with summaries.url."
    )
    api_key: SecretStr = Field(SecretStr(""), description="API key; if empty, none is sent.")
    timeout: float = Field(
        60.0,
        gt=0,
        allow_inf_nan=False,
        description="Seconds that one answer may take, including retries.",
    )

    @field_validator("model")
    @classmethod
    def _need_a_name(cls, model: str, info: ValidationInfo) -> str:
        if info.data.get("url") and not model:
            raise ValueError("is required if summaries.url is set")
        return model
