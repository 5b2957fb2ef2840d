"""What can be set: defaults, limits and meaning. `settings_sources` says where from."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import platformdirs
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationInfo,
    field_validator,
)
from pydantic.fields import FieldInfo

from server.index_settings import ChromaSettings, EmbedderSettings
from server.settings_group import SettingsGroup

__all__ = [
    "FunctionSettings",
    "HttpSettings",
    "IdentitySettings",
    "LimitSettings",
    "LogSettings",
    "SearchSettings",
    "Settings",
    "SettingsError",
    "SummarySettings",
    "TokenSettings",
]

DEFAULT_SOURCE = "default"


class SettingsError(Exception):
    """A setting that cannot be used; the message names it, its source and what is allowed.

    Attributes:
        message: What was wrong, with the value.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def _refuse_empty(value: object) -> object:
    if value == "":
        raise ValueError("is empty")
    return value


def _expand(path: Path) -> Path:
    try:
        return path.expanduser().absolute()
    except RuntimeError as error:
        raise ValueError(str(error)) from error


def _check_data_dir(path: Path) -> Path:
    if path.exists() and not path.is_dir():
        raise ValueError("is not a directory")
    return path


def _check_root(path: Path) -> Path:
    resolved = path.resolve()
    if not resolved.is_dir():
        raise ValueError("is not an existing directory")
    if resolved == Path(resolved.anchor):
        raise ValueError("is the whole file system; choose the directory that agents may work in")
    return resolved


def _check_functions(path: Path) -> Path:
    if not path.exists():
        raise ValueError(f"names {str(path)!r}, which does not exist")
    if not path.is_dir() and path.suffix != ".py":
        raise ValueError(f"names {str(path)!r}, which is neither a Python file nor a directory")
    return path


def _split_commas(value: object) -> object:
    if isinstance(value, str):
        return tuple(part for part in map(str.strip, value.split(",")) if part)
    return value


def _parse_object(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise ValueError("is not JSON") from None


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


def _check_token(token: SecretStr) -> SecretStr:
    # RFC 6750, section 2.1: anything else cannot stand in the header.
    if not re.fullmatch(r"[A-Za-z0-9._~+/-]+=*", token.get_secret_value()):
        raise ValueError("may hold letters, digits and . _ ~ + / - only")
    return token


_GivenPath = Annotated[Path, BeforeValidator(_refuse_empty), AfterValidator(_expand)]
_FunctionPath = Annotated[_GivenPath, AfterValidator(_check_functions)]
_TokenName = Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,64}$")]
_Names = Annotated[tuple[str, ...], BeforeValidator(_split_commas)]


def _default_data_dir() -> Path:
    path = Path(platformdirs.user_data_dir("toolcrib", appauthor=False))
    if not path.is_absolute():  # "~" stays where the user has no home directory
        raise SettingsError(
            "This user has no home directory: name a place to keep data with data_dir."
        )
    return path


def _default_root(values: Mapping[str, Any]) -> Path:
    """The working directory if somebody works there, else `<data_dir>/files`.

    Clients with a window start their servers in `/`, in the home directory or in the folder of the
    program: none of them is meant to be handed to an agent.
    """
    fallback: Path = values["data_dir"] / "files"
    try:
        here = Path.cwd()
    except FileNotFoundError:
        return fallback
    system = here == Path(here.anchor) or not os.access(here, os.W_OK)
    return fallback if system or _holds_home(here) else here


def _holds_home(path: Path) -> bool:
    try:
        return Path.home().resolve().is_relative_to(path)
    except RuntimeError:  # the user has none
        return False


class IdentitySettings(SettingsGroup):
    """Whose context is read and written when a call does not say."""

    user_id: str = Field("local", min_length=1, description="The person; at least one character.")
    device_id: str = Field("", description="The device; empty means any of the user's.")
    agent_id: str = Field("", description="The agent; empty means any of the user's.")


class TokenSettings(SettingsGroup):
    """A bearer token, and whose context it opens."""

    token: Annotated[SecretStr, AfterValidator(_check_token)]
    user_id: str = Field(min_length=1, max_length=256)
    device_id: str = Field("", max_length=256)
    agent_id: str = Field("", max_length=256)


class HttpSettings(SettingsGroup):
    """Where the HTTP and SSE transports listen, and whom they answer."""

    host: str = Field(
        "127.0.0.1",
        min_length=1,
        description="Address to listen on; any but a loopback address needs a token.",
    )
    port: int = Field(
        8765, ge=0, le=65535, description="Port to listen on, 0 to 65535; 0 picks a free one."
    )
    token: Annotated[SecretStr, AfterValidator(_check_token)] | None = Field(
        None,
        description="Bearer token that requests must carry; it opens the context of the default "
        "identity. Without any token none is asked.",
    )
    tokens: Annotated[Mapping[_TokenName, TokenSettings], BeforeValidator(_parse_object)] = Field(
        {},
        description="More bearer tokens by a name of yours (a-z, 0-9, _ and -), one for each "
        "person or device: a table of token, user_id and, to fix them, device_id and agent_id. "
        "A JSON object in the environment.",
    )
    allowed_hosts: _Names = Field(
        (),
        description="Host headers to answer besides loopback ones and http.host, as name:port; "
        "name:* means any port. Separated by commas in the environment.",
    )
    allowed_origins: _Names = Field(
        (),
        description="Origin headers to answer besides loopback ones, as https://name; "
        "https://name:* means any port. Separated by commas in the environment.",
    )

    @field_validator("tokens")
    @classmethod
    def _tell_apart(
        cls, tokens: Mapping[str, TokenSettings], info: ValidationInfo
    ) -> Mapping[str, TokenSettings]:
        owners = {info.data.get("token"): "http.token"}
        for name, each in tokens.items():
            owner = owners.setdefault(each.token, name)
            if owner != name:
                raise ValueError(f"{name} has the same token as {owner}; give each one of its own")
        return tokens


class LogSettings(SettingsGroup):
    """What is logged, and where it is kept."""

    level: Annotated[
        Literal["DEBUG", "INFO", "WARNING", "ERROR"],
        BeforeValidator(_upper),
    ] = Field("INFO", description="Least severity that is logged: DEBUG, INFO, WARNING or ERROR.")
    file: Annotated[Path, BeforeValidator(_refuse_empty)] = Field(
        Path("logs/toolcrib.log"), description="Log file; a relative path is taken from data_dir."
    )
    max_bytes: int = Field(
        5_000_000, ge=10_000, description="Bytes after which the log file is rotated, from 10000."
    )
    backups: int = Field(3, ge=1, le=100, description="Rotated log files to keep, 1 to 100.")


class LimitSettings(SettingsGroup):
    """How much of anything."""

    max_document_bytes: int = Field(
        50_000_000,
        ge=1,
        le=50_000_000,
        description="Largest file that becomes a document, in bytes, from 1 to 50000000.",
    )
    text_budget: int = Field(
        24_000, ge=1_000, description="Characters of text in one result, from 1000."
    )


class FunctionSettings(SettingsGroup):
    """Which Python files are served as tools, and what their processes may use."""

    paths: Annotated[tuple[_FunctionPath, ...], BeforeValidator(_split_commas)] = Field(
        (),
        description="Python files whose public typed functions are tools, and directories of them. "
        "Separated by commas in the environment.",
    )
    memory_mb: int = Field(
        4_096,
        ge=0,
        description="Megabytes of memory that the process of one file may have; 0 sets no limit.",
    )


class SearchSettings(SettingsGroup):
    """How stored context is found."""

    alpha: float = Field(
        0.5,
        ge=0,
        le=1,
        allow_inf_nan=False,
        description="Weight of meaning against words, 0 (words only) to 1 (meaning only).",
    )


class SummarySettings(SettingsGroup):
    """Which model sums up events where the client offers none."""

    url: Annotated[str, Field(pattern=r"^(https?://\S+)?$")] = Field(
        "",
        description="Where an OpenAI-compatible API begins, such as http://127.0.0.1:11434/v1; "
        "empty uses no such model.",
    )
    model: str = Field(
        "",
        validate_default=True,
        description="The model's name there; needed with summaries.url.",
    )
    api_key: SecretStr = Field(SecretStr(""), description="Its key; empty sends none.")
    timeout: float = Field(
        60.0,
        gt=0,
        allow_inf_nan=False,
        description="Seconds that one answer may take, repetitions included.",
    )

    @field_validator("model")
    @classmethod
    def _need_a_name(cls, model: str, info: ValidationInfo) -> str:
        if info.data.get("url") and not model:
            raise ValueError("is needed where summaries.url is set")
        return model


class Settings(SettingsGroup):
    """Everything that can be set; immutable, and built from its arguments alone."""

    data_dir: Annotated[_GivenPath, AfterValidator(_check_data_dir)] = Field(
        default_factory=_default_data_dir,
        description="Directory in which everything is kept; created when it is missing.",
    )
    root: Annotated[_GivenPath, AfterValidator(_check_root)] = Field(
        default_factory=_default_root,
        description="Directory that file tools see, an existing one; by default the working "
        "directory, or <data_dir>/files where that is nobody's work.",
    )
    surface: Annotated[_Names, Field(min_length=1)] = Field(
        ("lean",),
        description="Tools in the list that clients are shown, by name; lean stands for the "
        "everyday ones and all function files, full for every tool. The others are found with "
        "search_tools. Separated by commas in the environment.",
    )
    identity: IdentitySettings = Field(IdentitySettings(), description="Default identity.")
    http: HttpSettings = Field(HttpSettings(), description="HTTP and SSE transports.")
    log: LogSettings = Field(LogSettings(), description="Logs.")
    limits: LimitSettings = Field(LimitSettings(), description="Limits.")
    search: SearchSettings = Field(SearchSettings(), description="Search.")
    embedder: EmbedderSettings = Field(EmbedderSettings(), description="Embedder.")
    chroma: ChromaSettings = Field(ChromaSettings(), description="Vector index.")
    summaries: SummarySettings = Field(SummarySettings(), description="Summaries of events.")
    functions: FunctionSettings = Field(FunctionSettings(), description="Function files.")

    @field_validator("functions")
    @classmethod
    def _keep_agents_out(
        cls, functions: FunctionSettings, info: ValidationInfo
    ) -> FunctionSettings:
        root = info.data.get("root")
        for path in functions.paths:
            if root is not None and path.is_dir() and root.is_relative_to(path.resolve()):
                raise ValueError(
                    f"{str(path)!r} holds the root {str(root)!r}: what an agent writes there would "
                    "be run; name a directory of its own, or single files"
                )
        return functions

    _sources: Mapping[str, str] = PrivateAttr(default_factory=dict)
    _config_file: Path | None = PrivateAttr(None)

    @property
    def log_file(self) -> Path:
        """The log file's absolute path."""
        return self.data_dir / self.log.file.expanduser()

    @classmethod
    def fields(cls) -> Iterator[tuple[str, FieldInfo]]:
        """Every single setting as its dotted key and its field, in the order of declaration."""
        for name, field in cls.model_fields.items():
            if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
                for inner, inner_field in field.annotation.model_fields.items():
                    yield f"{name}.{inner}", inner_field
            else:
                yield name, field

    @property
    def config_file(self) -> Path | None:
        """The TOML file that was read, or would be if it existed; None if none was looked for."""
        return self._config_file

    def attributed(self, sources: Mapping[str, str], config_file: Path) -> Settings:
        """The same settings, knowing which dotted key came from where."""
        copy = self.model_copy()
        copy._sources = dict(sources)  # noqa: SLF001  # our own private attribute
        copy._config_file = config_file  # noqa: SLF001  # the same
        return copy

    def source_of(self, key: str) -> str:
        """Where a dotted key's value came from: "default", a file, a variable or a flag."""
        return self._sources.get(key, DEFAULT_SOURCE)

    def create_directories(self) -> None:
        """Creates the data directory and the root where they are missing, private to their user.

        Raises:
            SettingsError: If one cannot be created.
        """
        for key, path in (("data_dir", self.data_dir), ("root", self.root)):
            try:
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise SettingsError(
                    f"{key} = {str(path)!r} (from {self.source_of(key)}) cannot be created: "
                    f"{error.strerror}. Choose another directory with --{key.replace('_', '-')}."
                ) from error
