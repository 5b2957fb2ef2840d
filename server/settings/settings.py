"""All settings: defaults, limits and meaning. `sources` reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    PrivateAttr,
    ValidationInfo,
    field_validator,
)
from pydantic.fields import FieldInfo

from server.settings.collections import (
    DirectorySettings,
    SourceSettings,
    check_directories,
    check_sources,
)
from server.settings.gateway import (
    AgentSettings,
    DelegationSettings,
    OpenApiSettings,
    ProfileSettings,
    Results,
    ServerSettings,
    ToolSearchSettings,
    check_agents,
    check_apis,
)
from server.settings.group import (
    GivenName,
    Names,
    ServerName,
    SettingsGroup,
    Tables,
    check_root,
    default_root,
    expand,
    is_broad,
    split_commas,
)
from server.settings.http import HttpSettings
from server.settings.index import (
    ChromaSettings,
    EmbedderSettings,
    MemorySettings,
    SearchSettings,
    SkillSettings,
    SummarySettings,
)
from server.settings.safety import (
    ApprovalSettings,
    AuditSettings,
    PolicySettings,
    RequestSettings,
    SecretSettings,
    SystemSettings,
    UndoSettings,
    WebSearchSettings,
)
from server.settings_file import SettingsError, default_data_dir
from storage.directory.models import RESEARCHERS
from tools.core.collections import Collections

DEFAULT_SOURCE = "default"


def _refuse_empty(value: object) -> object:
    if value == "":
        raise ValueError("is empty")
    return value


def _check_data_dir(path: Path) -> Path:
    if path.exists() and not path.is_dir():
        raise ValueError("is not a directory")
    return path


def _check_functions(path: Path) -> Path:
    if not path.exists():
        raise ValueError(f"names {str(path)!r}, which does not exist")
    if not path.is_dir() and path.suffix != ".py":
        raise ValueError(f"names {str(path)!r}, which is neither a Python file nor a directory")
    return path


def _check_file(path: Path) -> Path:
    if path.suffix != ".py":
        raise ValueError(f"names {str(path)!r}, which is not a Python file; name each file")
    return path


def _to_upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


_GivenPath = Annotated[Path, BeforeValidator(_refuse_empty), AfterValidator(expand)]
_FunctionPath = Annotated[_GivenPath, AfterValidator(_check_functions)]
_FunctionFile = Annotated[_FunctionPath, AfterValidator(_check_file)]


class IdentitySettings(SettingsGroup):
    """The identity whose context is used when a call names none."""

    user_id: str = Field("local", min_length=1, description="The person; at least one character.")
    device_id: str = Field("", description="The device; empty means any of the user's.")
    agent_id: str = Field("", description="The agent; empty means any of the user's.")


class LogSettings(SettingsGroup):
    """Settings of the log."""

    level: Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR"], BeforeValidator(_to_upper)] = (
        Field("INFO", description="Lowest severity that is logged: DEBUG, INFO, WARNING or ERROR.")
    )
    file: Annotated[Path, BeforeValidator(_refuse_empty)] = Field(
        Path("logs/toolcrib.log"), description="Log file; a relative path is relative to data_dir."
    )
    max_bytes: int = Field(
        5_000_000, ge=10_000, description="Bytes after which the log is rotated, at least 10000."
    )
    backups: int = Field(3, ge=1, le=100, description="Rotated log files to keep, 1 to 100.")


class LimitSettings(SettingsGroup):
    """Size limits."""

    max_document_bytes: int = Field(
        50_000_000,
        ge=1,
        le=50_000_000,
        description="Largest file that becomes a document, in bytes, from 1 to 50000000.",
    )
    result_tokens: int = Field(
        4_000,
        ge=0,
        description="Tokens, at 4 characters each, above which a result is kept whole and the "
        "model gets a preview and a handle for read_result; 0 sets no limit.",
    )
    tool_result_tokens: Tables[str, Annotated[int, Field(ge=0)]] = Field(
        default_factory=dict,
        description="The same for single tools, by name: a table of numbers. A JSON object in the "
        "environment.",
    )
    image_pixels: int = Field(
        1_568,
        ge=0,
        description="Pixels of the longer edge above which an image of a result is scaled; 0 "
        "passes images on as they are.",
    )


class FunctionSettings(SettingsGroup):
    """Python files served as tools, and the resources of their processes."""

    paths: Annotated[tuple[_FunctionPath, ...], BeforeValidator(split_commas)] = Field(
        (),
        description="Python files whose public typed functions become tools, and directories of "
        "such files. Separated by commas in the environment.",
    )
    context: Annotated[tuple[_FunctionFile, ...], BeforeValidator(split_commas)] = Field(
        (),
        description="Those Python files whose functions may read and change what is stored, for "
        "whoever calls them (scope context); none by default. Separated by commas in the "
        "environment.",
    )
    memory_mb: int = Field(
        4_096, ge=0, description="Megabytes of memory for the process of one file; 0 sets no limit."
    )


class Settings(SettingsGroup):
    """All settings; immutable, and built from arguments alone."""

    data_dir: Annotated[_GivenPath, AfterValidator(_check_data_dir)] = Field(
        default_factory=default_data_dir,
        description="Directory in which everything is stored; created if it is missing.",
    )
    allow_broad_root: bool = Field(
        default=False,
        description="Whether root may be the home directory, or a directory that holds it or all "
        "homes, in which keys and passwords lie.",
    )
    root: Annotated[_GivenPath, AfterValidator(check_root)] = Field(
        default_factory=default_root,
        description="Directory that agents may work in; it has to exist. The default is the "
        "working directory, or <data_dir>/files where agents should not work, such as in / or ~.",
    )
    attach: bool = Field(
        default=False,
        description="Whether clients over stdio whose Toolcribs would be alike share one (Linux).",
    )
    surface: Annotated[Names, Field(min_length=1)] = Field(
        ("lean",),
        description="Tools in the list that clients are shown, by name; lean stands for the "
        "everyday ones and those of function files, full for every tool. The others are found "
        "with search_tools. Separated by commas in the environment.",
    )
    results: Results = Field(
        "auto",
        description="What calls answer with: text, structured (JSON that fits the listed schema) "
        "or both. auto is text for tools listed in their lean form and for clients whose model "
        "would read the JSON in its place, else both.",
    )
    identity: IdentitySettings = IdentitySettings()
    http: HttpSettings = HttpSettings()
    log: LogSettings = LogSettings()
    limits: LimitSettings = LimitSettings()
    search: SearchSettings = SearchSettings()
    embedder: EmbedderSettings = EmbedderSettings()
    chroma: ChromaSettings = ChromaSettings()
    memory: MemorySettings = MemorySettings()
    summaries: SummarySettings = SummarySettings()
    functions: FunctionSettings = FunctionSettings()
    policy: PolicySettings = PolicySettings()
    system: SystemSettings = SystemSettings()
    requests: RequestSettings = RequestSettings()
    web_search: WebSearchSettings = WebSearchSettings()
    approvals: ApprovalSettings = ApprovalSettings()
    undo: UndoSettings = UndoSettings()
    audit: AuditSettings = AuditSettings()
    toolsearch: ToolSearchSettings = ToolSearchSettings()
    skills: SkillSettings = SkillSettings()
    servers: Tables[ServerName, ServerSettings] = Field(
        {},
        description="Other MCP servers, each under a name that you choose (a-z, 0-9, single - and "
        "_): a table of command, args, env, cwd, sandbox, readable, writable and hosts, or of url, "
        "transport, headers, token and oauth; and of enabled, lazy, timeout, start_timeout, "
        "sessions, idle_timeout, max_connections, allow, deny, prefix, trusted, tools, "
        "cache_seconds, per_minute and per_conversation. A JSON object in the environment.",
    )
    profiles: Tables[GivenName, ProfileSettings] = Field(
        {},
        description="What certain clients may find and call, each under a name that you choose "
        "(a-z, 0-9, _ and -): a table of clients, tokens, allow, deny, pinned, token_budget, "
        "results, result_tokens, per_minute and per_conversation. A JSON object in the "
        "environment.",
    )
    sources: Annotated[Tables[GivenName, SourceSettings], AfterValidator(check_sources)] = Field(
        {},
        description="Parts of the stored context that a query can name, each under a name that you "
        "choose (a-z, 0-9, _ and -): a table of description, search_hints, supported_filters, and "
        "what belongs to it: kinds, raw_types, folder, labels. A JSON object in the environment.",
    )
    directories: Annotated[
        Tables[GivenName, DirectorySettings], AfterValidator(check_directories)
    ] = Field(
        {},
        description="Directories of people or things besides researchers, each under a name "
        "that you choose (a-z, 0-9, _ and -): a table of noun, description, and what the "
        "fields of a file mean: name_field, key, groups, texts, facts, items, link, aliases. "
        "A JSON object in the environment.",
    )

    secrets: Tables[GivenName, SecretSettings] = Field(
        {},
        description="Secrets that requests and programs are given and the agent never sees, each "
        "under a name that you choose (a-z, 0-9, _ and -): a table of env, file or keyring; of "
        "hosts, header or query, format; and of programs, variable. A JSON object in the "
        "environment.",
    )

    openapi: Annotated[Tables[ServerName, OpenApiSettings], AfterValidator(check_apis)] = Field(
        {},
        description="HTTP APIs whose operations become tools, each under a name that you choose "
        "(a-z, 0-9, single - and _): a table of description, which is an OpenAPI file or its "
        "address, and of url, include, exclude, secret, trusted, enabled. A JSON object in the "
        "environment.",
    )

    agents: Annotated[Tables[GivenName, AgentSettings], AfterValidator(check_agents)] = Field(
        {},
        description="Other agents that work can be given to, each under a name that you choose "
        "(a-z, 0-9, _ and -): a table of preset (claude-code, codex, gemini, opencode), of command "
        "or of server and tool; and of description, capabilities, timeout, max_cost, environment, "
        "hosts, readable, home, sandbox, worktree, allow, deny and others. A JSON object in the "
        "environment.",
    )
    delegation: DelegationSettings = DelegationSettings()

    @field_validator("root")
    @classmethod
    def _confirm_broad_root(cls, root: Path, info: ValidationInfo) -> Path:
        if is_broad(root) and not info.data.get("allow_broad_root"):
            raise ValueError(
                "is your home directory, or holds it, with your keys and passwords; choose the"
                " directory that agents may work in, or allow all of this one with"
                " `serve --allow-broad-root`, TOOLCRIB_ALLOW_BROAD_ROOT=true or"
                " allow_broad_root = true"
            )
        return root

    @field_validator("functions")
    @classmethod
    def _keep_agents_out(
        cls, functions: FunctionSettings, info: ValidationInfo
    ) -> FunctionSettings:
        root = info.data.get("root")
        for path in functions.paths:
            if root is not None and path.is_dir() and root.is_relative_to(path.resolve()):
                raise ValueError(
                    f"{str(path)!r} contains the root {str(root)!r}: files that agents write there "
                    "would run; name a separate directory, or single files"
                )
        return functions

    _sources: Mapping[str, str] = PrivateAttr(default_factory=dict)
    _config_file: Path | None = PrivateAttr(None)

    @property
    def audit_file(self) -> Path:
        """The audit log's absolute path."""
        return self.data_dir / "audit" / "calls.jsonl"

    @property
    def log_file(self) -> Path:
        """The log file's absolute path."""
        return self.data_dir / self.log.file.expanduser()

    @classmethod
    def fields(cls) -> Iterator[tuple[str, FieldInfo]]:
        """Yields each setting's dotted key and field, in the order of declaration."""
        for name, field in cls.model_fields.items():
            if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
                for inner, inner_field in field.annotation.model_fields.items():
                    yield f"{name}.{inner}", inner_field
            else:
                yield name, field

    @property
    def config_file(self) -> Path | None:
        """The TOML file that was read, or would be if it existed; None if none applies."""
        return self._config_file

    def attributed(self, sources: Mapping[str, str], config_file: Path) -> Settings:
        """Returns a copy that knows the source of each dotted key."""
        copy = self.model_copy()
        copy._sources = dict(sources)  # noqa: SLF001  # our own private attribute
        copy._config_file = config_file  # noqa: SLF001  # the same
        return copy

    def source_of(self, key: str) -> str:
        """Returns the source of a key's value: "default", a file, a variable or a flag."""
        return self._sources.get(key, DEFAULT_SOURCE)

    @property
    def collections(self) -> Collections:
        """The sources and directories; the directory of researchers comes first."""
        named = {name: each.to_directory(name) for name, each in self.directories.items()}
        researchers = named.pop(RESEARCHERS.name, RESEARCHERS)
        return Collections(
            sources=tuple(each.to_source(name, self.root) for name, each in self.sources.items()),
            directories=(researchers, *named.values()),
            secrets={name: each.hosts for name, each in self.secrets.items() if each.hosts},
        )

    def create_directories(self) -> None:
        """Creates the data directory and the root if missing, accessible by their owner alone."""
        for key, path in (("data_dir", self.data_dir), ("root", self.root)):
            try:
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise SettingsError(
                    f"{key} = {str(path)!r} (from {self.source_of(key)}) cannot be created: "
                    f"{error.strerror}. Choose another directory with --{key.replace('_', '-')}."
                ) from error
