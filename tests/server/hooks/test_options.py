from pathlib import Path

import pytest

from server.hooks.options import HookOptions, read_options
from server.settings.sources import load
from server.settings_file import SettingsError
from storage.models import Identity

FILE = """
data_dir = "{folder}/stored"
[identity]
user_id = "ann"
[memory]
capture = false
ignore = ["secrets/", "text: Zeus"]
[log]
file = "hooks.log"
"""


def both(words: list[str], environ: dict[str, str]) -> tuple[HookOptions, HookOptions]:
    """What a hook reads, and what the settings' models make of the same."""
    flags = dict(zip(words[::2], words[1::2], strict=True))
    config = Path(flags["--config"]) if "--config" in flags else None
    given = {"data_dir": flags.get("--data-dir")}
    settings = load(given, config_file=config, environ=environ)
    models = HookOptions(
        settings.data_dir,
        settings.log_file,
        Identity(**settings.identity.model_dump()),
        settings.memory.capture,
        settings.memory.ignore,
    )
    return read_options(words, environ), models


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"TOOLCRIB_MEMORY__CAPTURE": "off"},
        {"TOOLCRIB_MEMORY__CAPTURE": "true", "TOOLCRIB_MEMORY__IGNORE": "a/,b/"},
        {"TOOLCRIB_IDENTITY__USER_ID": "bob", "TOOLCRIB_IDENTITY__AGENT_ID": "x"},
        {"TOOLCRIB_DATA_DIR": "/elsewhere/data"},
    ],
)
@pytest.mark.parametrize("named", ["file", "flag", "nothing"])
def test_hooks_read_settings_as_the_server_does(
    tmp_path: Path, environ: dict[str, str], named: str
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(FILE.format(folder=tmp_path), encoding="utf-8")
    words = {
        "file": ["--config", str(path)],
        "flag": ["--data-dir", str(tmp_path / "data"), "--config", str(path)],
        "nothing": [],
    }[named]
    light, full = both(words, environ | {"TOOLCRIB_CONFIG": ""})
    assert light == full


def test_a_file_that_was_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="does not exist"):
        read_options(["--config", str(tmp_path / "missing.toml")], {})
