"""Settings of the index, of search, memory and skills."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
)

from server.settings.group import SettingsGroup, expand, split_commas
from storage.index.embedders.base import DEFAULT_FLOOR, EmbedderKind, EmbedderOptions


def _check_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        named = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:  # an invalid port, or half an IPv6 address
        named = False
    if not named or re.search(r"[\s\x00-\x1f]", url):
        raise ValueError("is not an address such as http://127.0.0.1:8000")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError("may hold neither a user nor a query")
    return url


def _check_server(url: str) -> str:
    if url and urlsplit(url).path not in {"", "/"}:
        raise ValueError("may hold no path: only http://host:port")
    return url


def _check_key(key: SecretStr) -> SecretStr:
    if not re.fullmatch(r"[!-~]*", key.get_secret_value()):  # RFC 9110, 5.5: characters of a header
        raise ValueError("may hold visible ASCII characters only")
    return key


def _check_folder(folder: Path | None) -> Path | None:
    if folder is None:
        return None
    expanded = expand(folder)
    if not expanded.is_dir():
        raise ValueError(f"names {str(folder)!r}, which is not a directory")
    return expanded


def _only_given(url: str) -> str:
    return _check_url(url) if url else url


_Url = Annotated[str, AfterValidator(_only_given)]


class EmbedderSettings(SettingsGroup):
    """The model that turns texts into vectors."""

    kind: EmbedderKind = Field(
        "e5",
        description="What computes the vectors: e5 (bundled, multilingual), minilm (bundled, "
        "English), fastembed, sentence-transformers, or openai for any OpenAI-compatible endpoint. "
        "After a change, everything is embedded again in the background.",
    )
    model: str = Field(
        "",
        description="The model's name for fastembed, sentence-transformers or the endpoint; empty "
        "means the default of that kind.",
    )
    folder: Annotated[Path | None, AfterValidator(_check_folder)] = Field(
        None,
        description="Directory with the model's files, for fastembed and sentence-transformers; "
        "without it they are downloaded.",
    )
    url: _Url = Field(
        "",
        description="Base URL of the endpoint's API, such as http://127.0.0.1:11434/v1; empty "
        "means OpenAI's own.",
    )
    api_key: Annotated[SecretStr, AfterValidator(_check_key)] = Field(
        SecretStr(""), description="API key of the endpoint; if empty, none is sent."
    )
    dimensions: int = Field(
        0,
        ge=0,
        le=65_536,
        description="Length of the vectors, for models that offer several (sentence-transformers "
        "and openai); 0 means the model's default.",
    )
    timeout: float = Field(
        30.0,
        gt=0,
        le=3_600,
        allow_inf_nan=False,
        description="Seconds that one request to the endpoint may take, including retries.",
    )
    query_prefix: str = Field(
        "",
        description="Prefix that the model expects before a query, such as 'query: '; not for "
        "e5 and minilm.",
    )
    passage_prefix: str = Field(
        "",
        description="Prefix that the model expects before a passage, such as 'passage: '; not for "
        "e5 and minilm.",
    )
    cjk: bool = Field(
        default=True,
        description="Whether the model understands Chinese, Japanese and Korean; not for e5, "
        "which does, or minilm, which does not.",
    )
    floor: float = Field(
        DEFAULT_FLOOR,
        ge=-1,
        lt=1,
        allow_inf_nan=False,
        description="Cosine similarity below which this model considers texts unrelated; 0.8 for "
        "the E5 family; not for e5 and minilm.",
    )

    @property
    def options(self) -> EmbedderOptions:
        """The same as plain data, including the key."""
        return EmbedderOptions(**{**dict(self), "api_key": self.api_key.get_secret_value()})


class ChromaSettings(SettingsGroup):
    """The storage of the vector index."""

    url: Annotated[str, AfterValidator(_only_given), AfterValidator(_check_server)] = Field(
        "",
        description="Address of a Chroma server, http://host:port; empty means Chroma embedded in "
        "this process, stored in the data directory.",
    )


class SearchSettings(SettingsGroup):
    """Settings of search."""

    alpha: float = Field(
        0.5,
        ge=0,
        le=1,
        allow_inf_nan=False,
        description="Weight of meaning against words, 0 (words only) to 1 (meaning only).",
    )


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
    capture: bool = Field(
        default=True,
        description="Whether the hooks of clients store conversations, redacted, and show a new "
        "session what is stored of its project.",
    )
    ignore: Annotated[tuple[str, ...], BeforeValidator(split_commas)] = Field(
        (),
        description="Patterns as in .gitignore of files and directories that hooks never capture, "
        "in every project; one that begins with text: means lines with these words. Separated "
        "by commas in the environment.",
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


def _check(path: Path) -> Path:
    if not path.is_dir():
        raise ValueError(f"names {str(path)!r}, which is not an existing directory")
    return path


class SkillSettings(SettingsGroup):
    """Directories of skills, each with a SKILL.md that agents load on demand."""

    directories: Annotated[
        tuple[Annotated[Path, AfterValidator(expand), AfterValidator(_check)], ...],
        BeforeValidator(split_commas),
    ] = Field(
        (),
        description="Directories of skills, for everybody who uses this server; each skill is a "
        "directory with a SKILL.md in one of them. Separated by commas in the environment.",
    )
    discover: bool = Field(
        default=True,
        description="Whether skills are also found where Claude Code, Codex, Gemini CLI, opencode, "
        "Cursor and others keep them: in the home directory, for its user alone, and in the root.",
    )
