"""Configuration files as tables: TOML, and JSON with the comments that some clients allow."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from server.settings import SettingsError

__all__ = ["parse"]

_STRING = r'"(?:\\.|[^"\\\n])*+"?'  # what never ends is one too, so that no file is read for ever
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])")
_LINE = re.compile(r"[^\n]")

MOST_BYTES = 100_000_000
"""Claude Code keeps all sorts of things in the file with its servers."""


def parse(path: Path) -> dict[str, Any]:
    """What a configuration file says.

    Args:
        path: The file; TOML if it is called so, else JSON, with comments and trailing commas.

    Raises:
        SettingsError: If it cannot be read, or is neither.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise SettingsError(f"{path} is too large: it has more than {MOST_BYTES} bytes.")
        text = path.read_text(encoding="utf-8-sig")
        document = tomllib.loads(text) if path.suffix == ".toml" else _json(text)
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not UTF-8 text (byte {error.start}).") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path} is not TOML: {error}.") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise SettingsError(f"{path} is not JSON: {error.msg} at {place}.") from error
    except (ValueError, RecursionError):  # a number of thousands of digits, or nested too deeply
        raise SettingsError(f"{path} cannot be read: its JSON is out of bounds.") from None
    if not isinstance(document, dict):
        raise SettingsError(f"{path} is no configuration: it holds no JSON object.")
    return document


def _json(text: str) -> object:
    """Comments and trailing commas become blanks, so that errors are where they were."""
    if not text.strip():
        return {}  # what some clients leave behind
    uncommented = _COMMENT.sub(_blank, text)
    return json.loads(_TRAILING_COMMA.sub(_blank, uncommented))


def _blank(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith('"') else _LINE.sub(" ", found[0])
