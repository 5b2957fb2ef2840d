"""Reads settings from their sources: defaults < TOML file < environment < flags."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel, SecretStr, ValidationError
from pydantic_core import to_jsonable_python

from server.settings.settings import DEFAULT_SOURCE, Settings
from server.settings_file import CONFIG_VARIABLE, SettingsError, settings_path
from storage.index.bounded import clip

_PREFIX = "TOOLCRIB_"
_FIELDS = dict(Settings.fields())
_TABLES: dict[str, type[BaseModel]] = {
    key: get_args(field.annotation)[1]
    for key, field in _FIELDS.items()
    if get_origin(field.annotation) is Mapping
}
_KEYS = {key: key for key in _FIELDS}
_VARIABLES = {key: _PREFIX + key.upper().replace(".", "__") for key in _FIELDS}
_GROUPS = {key.partition(".")[0] for key in _FIELDS}
_MASK = "**********"
_LONGEST = 200
"""Length of a shown invalid value."""


@dataclass(frozen=True, slots=True)
class _Given:
    value: Any
    source: str


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One effective setting."""

    key: str
    # its value as JSON; secrets are masked, and in another server's command or URL what
    # looks like one
    value: Any
    source: str
    description: str


def load(
    flags: Mapping[str, Any] | None = None,
    *,
    config_file: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """Reads the settings from all sources; later ones take precedence.

    Flags are values from the command line by dotted key; None if not given.
    """
    environ = os.environ if environ is None else environ
    path, namer = settings_path(config_file, environ)
    given = {
        **_from_file(path, namer),
        **_from_environment(environ),
        **{
            key: _Given(value, _flag(key))
            for key, value in (flags or {}).items()
            if value is not None
        },
    }
    settings = _validated(given)
    return settings.attributed({key: item.source for key, item in given.items()}, path)


def reread(
    settings: Settings, path: Path, is_live: Callable[[str], bool]
) -> tuple[Settings, list[str]]:
    """Reads a settings file again, as a whole, for a running server.

    Values from flags or the environment take precedence, as at a start. Returns settings in which
    only live keys differ, and the keys that differ for a restart.
    """
    given = _from_file(path, "the running server")
    running = {key: _Given(_value_of(settings, key), settings.source_of(key)) for key in _FIELDS}
    stays = {DEFAULT_SOURCE, str(path)}
    given |= {key: item for key, item in running.items() if item.source not in stays}
    whole = _validated(given)
    fixed = {key: item for key, item in running.items() if not is_live(key)}
    waiting = [key for key, item in fixed.items() if _value_of(whole, key) != item.value]
    given = {key: item for key, item in given.items() if is_live(key)} | fixed
    sources = {key: item.source for key, item in given.items()}
    return _validated(given).attributed(sources, path), waiting


def _value_of(settings: Settings, key: str) -> Any:  # noqa: ANN401  # any setting
    return reduce(getattr, key.split("."), settings)


def _validated(given: Mapping[str, _Given]) -> Settings:
    try:
        return Settings.model_validate(_nested(given))
    except ValidationError as error:
        raise SettingsError("\n".join(_error_lines(error, given))) from None


def explain(settings: Settings) -> list[SettingRow]:
    """Returns all effective settings with their sources, in the order of declaration."""
    values = _flat(to_jsonable_python(_without_values(settings.model_dump())))
    values["servers"] = {name: _without_secrets(each) for name, each in values["servers"].items()}
    return [
        SettingRow(key, values[key], settings.source_of(key), field.description or "")
        for key, field in _FIELDS.items()
    ]


def _without_values(value: Any) -> Any:  # noqa: ANN401  # any dump of settings
    """Masks secrets; shows those that are references."""
    if isinstance(value, SecretStr):
        from tools.sandbox.secrets.references import shown

        return shown(value.get_secret_value()) if value else ""
    if isinstance(value, Mapping):
        return {key: _without_values(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_without_values, value))
    return value


def _without_secrets(server: Mapping[str, Any]) -> dict[str, Any]:
    """Masks what looks like a secret in another server's arguments and URL."""
    from tools.core.audit.secret_patterns import REDACTED, redacted_text

    def mask(text: str) -> str:
        return redacted_text(text, 2 * len(text) + len(REDACTED))

    args: list[str] = server["args"]
    told = [
        REDACTED if mask(f"{option} {word}") == f"{option} {REDACTED}" else mask(word)
        for option, word in zip(("", *args), args, strict=False)
    ]
    return {**server, "args": told, "url": mask(server["url"])}


def check_text(text: str, path: Path) -> Settings:
    """Returns the settings that a settings file of this text would give a start."""
    plain = text.removeprefix("\ufeff")
    return _validated({**_from_text(plain, path), **_from_environment(os.environ)})


def check_key(key: str) -> None:
    """Refuses an unknown setting, and names the most similar known one."""
    if key not in _FIELDS:
        raise SettingsError(f"Unknown setting {key!r}. {_advice(key, _KEYS)}")


def is_secret(key: str) -> bool:
    """Returns whether a setting may be shown only masked."""
    fields = getattr(_TABLES.get(key), "model_fields", {key: _FIELDS[key]}).values()
    # A secret written directly into [secrets.NAME] is reported without printing it.
    return key == "secrets" or any("SecretStr" in str(field.annotation) for field in fields)


def _from_file(path: Path, namer: str) -> dict[str, _Given]:
    """Returns the values of a file; rejects unknown keys."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        if not namer:
            return {}
        raise SettingsError(
            f"The settings file {path}, named by {namer}, does not exist."
        ) from None
    except OSError as error:
        raise SettingsError(
            f"The settings file {path} cannot be read: {error.strerror}."
        ) from error
    except UnicodeDecodeError as error:
        raise SettingsError(
            f"The settings file {path} is not UTF-8 text (byte {error.start})."
        ) from error
    return _from_text(text, path)


def _from_text(text: str, path: Path) -> dict[str, _Given]:
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        lines = text.split("\n")
        end = f"at line {len(lines)}, column {len(lines[-1]) + 1}"
        reason = str(error).replace("at end of document", end)
        raise SettingsError(f"The settings file {path} is not TOML: {reason}.") from error
    except RecursionError:
        raise SettingsError(f"The settings file {path} is nested too deeply.") from None
    values = _flat(tables)
    empty = [name for name, table in tables.items() if table == {} and name not in _GROUPS]
    unknown = [
        f"Unknown setting {key!r} in {path}. {_advice(key, _KEYS)}"
        for key in (*values, *empty)
        if key not in _FIELDS
    ]
    if unknown:
        raise SettingsError("\n".join(unknown))
    return {key: _Given(value, str(path)) for key, value in values.items()}


def _from_environment(environ: Mapping[str, str]) -> dict[str, _Given]:
    ours = {
        name: value
        for name, value in environ.items()
        # Shells and clients write an unset variable as an empty one.
        if name.startswith(_PREFIX) and name != CONFIG_VARIABLE and value
    }
    unknown = [
        f"Unknown environment variable {name}. {_advice(_as_key(name), _VARIABLES)}"
        for name in ours
        if _as_key(name) not in _VARIABLES
    ]
    if unknown:
        raise SettingsError("\n".join(unknown))
    return {
        _as_key(name): _Given(value, f"environment variable {name}") for name, value in ours.items()
    }


def _flag(key: str) -> str:
    """Returns a setting's flag: its last part, or its group if that is more specific."""
    group, _, name = key.rpartition(".")
    return "--" + (group if name == "paths" else name).replace("_", "-")


def _as_key(variable: str) -> str:
    return variable.removeprefix(_PREFIX).lower().replace("__", ".")


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, dict) and prefix + name not in _TABLES:
            flat.update(_flat(value, f"{prefix}{name}."))
        else:
            flat[prefix + name] = value
    return flat


def _nested(given: Mapping[str, _Given]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for key, item in given.items():
        group, _, name = key.rpartition(".")
        table = nested.setdefault(group, {}) if group else nested
        table[name] = item.value
    return nested


def _advice(key: str, names: Mapping[str, str]) -> str:
    """Suggests a known name instead of an unknown key."""
    nearest = difflib.get_close_matches(key, names, n=1, cutoff=0.5)
    if nearest:
        return f"Did you mean {names[nearest[0]]!r}?"
    return f"Known are: {', '.join(names.values())}."


def _error_lines(error: ValidationError, given: Mapping[str, _Given]) -> Iterable[str]:
    for detail in error.errors(include_url=False):
        path = [str(part) for part in detail["loc"]]
        group = [key for key in given if key.startswith(f"{path[0]}.")]
        key = next((key for key in (".".join(path[:2]), path[0], *group) if key in given), None)
        if key is None:  # a default that failed because of another invalid value
            continue
        name = ".".join(path) if key in _TABLES else key
        wrong = detail["input"] if key in _TABLES else given[key].value
        value = _MASK if is_secret(key) else clip(repr(_to_plain(wrong)), _LONGEST)
        reason = detail["msg"].removeprefix("Value error, ").rstrip(".")
        if detail["type"] == "extra_forbidden":
            known = _TABLES[key].model_fields
            reason = f"is unknown. {_advice(path[-1], dict(zip(known, known, strict=True)))}"
        if detail["type"] == "model_type":
            reason = "is not a table"
        source = given[key].source
        ended = reason if reason.endswith((".", "?")) else f"{reason}."
        yield f"{name} = {value} (from {source}): {ended} {_FIELDS[key].description}"


def _to_plain(value: object) -> object:
    if isinstance(value, list):
        return [_to_plain(each) for each in value]
    return str(value) if isinstance(value, Path | SecretStr) else value
