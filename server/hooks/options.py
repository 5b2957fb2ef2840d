"""Reads the few settings of a hook without their models, whose import takes too long for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from server.settings_file import SettingsError, default_data_dir, settings_path
from storage.models import Identity

_FALSE = {"0", "off", "f", "false", "n", "no"}  # as pydantic reads them


@dataclass(frozen=True, slots=True)
class HookOptions:
    """The settings of a hook."""

    data_dir: Path
    log_file: Path
    identity: Identity
    capture: bool
    ignore: tuple[str, ...]


def read_options(words: Sequence[str], environ: Mapping[str, str]) -> HookOptions:
    """Reads `--data-dir` and `--config`, the environment and the settings file, in this order.

    Raises SettingsError or ValueError if the file cannot be read.
    """
    flags = dict(zip(words[::2], words[1::2], strict=False))
    config = Path(flags["--config"]) if "--config" in flags else None
    values = _file_values(*settings_path(config, environ))

    def get(key: str) -> Any:  # noqa: ANN401  # any value in a settings file
        given = environ.get(f"TOOLCRIB_{key.upper().replace('.', '__')}")
        if given:
            return given
        group, _, name = key.partition(".")
        return values.get(group, {}).get(name) if name else values.get(group)

    data_dir = flags.get("--data-dir") or get("data_dir")
    directory = _absolute(data_dir) if data_dir else default_data_dir()
    ignore = get("memory.ignore") or ()
    return HookOptions(
        directory,
        directory / str(get("log.file") or "logs/toolcrib.log"),
        Identity(
            str(get("identity.user_id") or "local"),
            str(get("identity.device_id") or ""),
            str(get("identity.agent_id") or ""),
        ),
        str(get("memory.capture")).lower() not in _FALSE,
        tuple(ignore.split(",") if isinstance(ignore, str) else map(str, ignore)),
    )


def _file_values(path: Path, namer: str) -> Mapping[str, Any]:
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        if not namer:
            return {}
        raise SettingsError(
            f"The settings file {path}, named by {namer}, does not exist."
        ) from None


def _absolute(path: str) -> Path:
    return Path(path).expanduser().absolute()
