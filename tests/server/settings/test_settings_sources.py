import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import SecretStr

from server.settings import Settings, SettingsError
from server.settings.sources import explain, load


@pytest.fixture(autouse=True)
def no_file_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


def written(directory: Path, text: str) -> Path:
    path = directory / "config.toml"
    path.write_text(text, encoding="utf-8")
    return path


def complaint(
    path: Path | None = None,
    environ: dict[str, str] | None = None,
    flags: dict[str, Any] | None = None,
) -> str:
    with pytest.raises(SettingsError) as caught:
        load(flags, config_file=path, environ=environ or {})
    return caught.value.message


def test_without_any_source_everything_is_the_default() -> None:
    settings = load(environ={})
    assert settings.model_dump() == Settings().model_dump()
    assert {row.source for row in explain(settings)} == {"default"}


def test_each_source_wins_over_the_one_before(tmp_path: Path) -> None:
    path = written(tmp_path, "[http]\nhost = '127.0.0.2'\nport = 1\n[log]\nlevel = 'debug'\n")
    environ = {"TOOLCRIB_HTTP__HOST": "127.0.0.3", "TOOLCRIB_HTTP__PORT": "2"}
    settings = load({"http.port": 3, "root": None}, config_file=path, environ=environ)
    assert (settings.log.level, settings.http.host, settings.http.port) == ("DEBUG", "127.0.0.3", 3)


def test_explain_tells_where_each_value_comes_from(tmp_path: Path) -> None:
    path = written(tmp_path, "[search]\nalpha = 0.25\n[http]\ntoken = 'sesame'\n")
    environ = {"TOOLCRIB_IDENTITY__USER_ID": "ann"}
    rows = {
        row.key: row for row in explain(load({"http.port": 1}, config_file=path, environ=environ))
    }
    assert (rows["search.alpha"].value, rows["search.alpha"].source) == (0.25, str(path))
    assert rows["identity.user_id"].source == "environment variable TOOLCRIB_IDENTITY__USER_ID"
    assert (rows["http.port"].value, rows["http.port"].source) == (1, "--port")
    assert rows["log.level"].source == "default"
    assert rows["http.token"].value == "**********"
    assert list(rows) == [key for key, _ in Settings.fields()]


def test_the_file_of_the_user_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("platformdirs.user_config_dir", lambda *_, **__: str(tmp_path))
    written(tmp_path, "[http]\nport = 7")
    settings = load(environ={})
    assert settings.http.port == 7
    assert settings.config_file == tmp_path / "config.toml"


def test_the_file_that_the_environment_names_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, "[http]\nport = 7")
    assert load(environ={"TOOLCRIB_CONFIG": str(path)}).http.port == 7


def test_a_named_file_that_is_absent_is_an_error(tmp_path: Path) -> None:
    absent = tmp_path / "absent.toml"
    assert complaint(absent) == f"The settings file {absent}, named by --config, does not exist."
    assert "TOOLCRIB_CONFIG" in complaint(environ={"TOOLCRIB_CONFIG": str(absent)})


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[http]\nport 1", "at line 2, column 6"),
        ("[http\n", "at line 1, column 6"),
        ("port = 1\nport = 2\n", "at line 2, column 9"),
        ("a = 1\nb = '''", "at line 2, column 8"),
        ("a = [1,\n2", "at line 2, column 2"),
    ],
)
def test_malformed_toml_is_named_with_file_line_and_column(
    tmp_path: Path, text: str, place: str
) -> None:
    path = written(tmp_path, text)
    message = complaint(path)
    assert message.startswith(f"The settings file {path} is not TOML: ")
    assert place in message


def test_toml_that_is_nested_without_end_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "a = " + "[" * 100_000)
    assert complaint(path) == f"The settings file {path} is nested too deeply."


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b"a = '\xff'")
    assert complaint(path) == f"The settings file {path} is not UTF-8 text (byte 5)."


def test_a_directory_in_place_of_the_file_is_named(tmp_path: Path) -> None:
    assert complaint(tmp_path) == f"The settings file {tmp_path} cannot be read: Is a directory."


def test_a_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    path = written(tmp_path, "\ufeff[http]\nport = 7")
    assert load(config_file=path, environ={}).http.port == 7


@pytest.mark.parametrize(
    ("text", "unknown", "nearest"),
    [
        ("[http]\nprot = 1", "http.prot", "http.port"),
        ("data-dir = 'x'", "data-dir", "data_dir"),
        ("[search.alpha]\nx = 1", "search.alpha.x", "search.alpha"),
        ("port = 1", "port", "http.port"),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_known_one(
    tmp_path: Path, text: str, unknown: str, nearest: str
) -> None:
    path = written(tmp_path, text)
    assert complaint(path) == f"Unknown setting {unknown!r} in {path}. Did you mean {nearest!r}?"


def test_an_unknown_variable_is_named_with_the_nearest_known_one() -> None:
    message = complaint(environ={"TOOLCRIB_HTTP_PORT": "1"})
    assert "TOOLCRIB_HTTP_PORT" in message
    assert "Did you mean 'TOOLCRIB_HTTP__PORT'?" in message


def test_for_a_key_like_no_other_the_known_ones_are_listed(tmp_path: Path) -> None:
    assert "Known are: TOOLCRIB_DATA_DIR, " in complaint(environ={"TOOLCRIB_QQ": "1"})
    assert "Known are: data_dir, allow_broad_root, root, " in complaint(written(tmp_path, "qq = 1"))


@pytest.mark.parametrize(
    ("variable", "value", "allowed"),
    [
        ("HTTP__PORT", "70000", "0 to 65535"),
        ("HTTP__PORT", "web", "0 to 65535"),
        ("SEARCH__ALPHA", "nan", "0 (words only) to 1"),
        ("LOG__LEVEL", "loud", "DEBUG, INFO, WARNING or ERROR"),
        ("LOG__BACKUPS", "-1", "1 to 100"),
        ("LIMITS__RESULT_TOKENS", "-1", "0"),
        ("ROOT", "/", "choose the directory"),
        ("ROOT", "/does/not/exist", "it has to exist"),
        ("ROOT", "a\0b", "it has to exist"),
        ("DATA_DIR", "/dev/null", "is not a directory"),
        ("DATA_DIR", "~nobody-of-that-name/x", "home directory"),
    ],
)
def test_a_wrong_value_is_named_with_its_source_and_what_is_allowed(
    variable: str, value: str, allowed: str
) -> None:
    message = complaint(environ={f"TOOLCRIB_{variable}": value})
    key = variable.lower().replace("__", ".")
    source = f"(from environment variable TOOLCRIB_{variable})"
    assert message.startswith(f"{key} = {value!r} {source}: ")
    assert allowed in message
    assert "\n" not in message


def test_every_wrong_value_is_named_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, "[http]\nport = 'x'\nallowed_hosts = [1]\n[log]\nmax_bytes = 1\n")
    lines = complaint(path, flags={"root": tmp_path / "missing"}).splitlines()
    keys = [line.split(" = ")[0] for line in lines]
    assert keys == ["root", "http.port", "http.allowed_hosts", "log.max_bytes"]
    assert "(from --root)" in lines[0]


def test_a_wrong_token_is_not_shown() -> None:
    message = complaint(environ={"TOOLCRIB_HTTP__TOKEN": "open sesame"})
    assert "sesame" not in message
    assert "http.token = **********" in message


TOKENS = """
[http]
token = "open"
[http.tokens.ann]
token = "sesame-of-ann"
user_id = "ann"
[http.tokens.bob]
token = "sesame-of-bob"
user_id = "bob"
device_id = "phone"
"""


def test_tokens_are_a_table_in_the_file(tmp_path: Path) -> None:
    tokens = load(config_file=written(tmp_path, TOKENS), environ={}).http.tokens
    assert [(name, each.user_id, each.device_id) for name, each in tokens.items()] == [
        ("ann", "ann", ""),
        ("bob", "bob", "phone"),
    ]
    assert tokens["bob"].token == SecretStr("sesame-of-bob")


def test_tokens_are_json_in_the_environment_and_win_over_the_file(tmp_path: Path) -> None:
    environ = {"TOOLCRIB_HTTP__TOKENS": '{"eve": {"token": "t", "user_id": "eve"}}'}
    settings = load(config_file=written(tmp_path, TOKENS), environ=environ)
    assert list(settings.http.tokens) == ["eve"]
    assert settings.source_of("http.tokens") == "environment variable TOOLCRIB_HTTP__TOKENS"


def test_no_token_is_shown(tmp_path: Path) -> None:
    rows = {
        row.key: row for row in explain(load(config_file=written(tmp_path, TOKENS), environ={}))
    }
    assert "sesame" not in str(rows)
    assert rows["http.tokens"].value["bob"]["device_id"] == "phone"
    assert rows["http.tokens"].source == str(tmp_path / "config.toml")


@pytest.mark.parametrize(
    ("entry", "name", "allowed"),
    [
        ('token = "sesame 1"\nuser_id = "c"', "c.token", "letters, digits"),
        ('token = "sesame1"', "c.user_id", "Field required"),
        ('token = "sesame1"\nuser_id = ""', "c.user_id", "at least 1 character"),
        ('token = "sesame1"\nuser = "c"', "c.user_id", "a table of token, user_id"),
        ('token = "open"\nuser_id = "c"', "", "c has the same token as http.token"),
        ('token = "sesame-of-bob"\nuser_id = "c"', "", "c has the same token as bob"),
    ],
)
def test_a_wrong_entry_is_named_without_its_token(
    tmp_path: Path, entry: str, name: str, allowed: str
) -> None:
    message = complaint(written(tmp_path, f"{TOKENS}[http.tokens.c]\n{entry}\n"))
    assert f"http.tokens{name and '.'}{name} = **********" in message
    assert allowed in message
    assert "sesame" not in message


@pytest.mark.parametrize("name", ["Ann", "a.b", "", "a b", "a\n"])
def test_a_name_of_a_token_has_no_dots_or_capitals(tmp_path: Path, name: str) -> None:
    entry = f"[http.tokens.{json.dumps(name)}]\ntoken = 'sesame'\nuser_id = 'x'\n"
    message = complaint(written(tmp_path, entry))
    assert "(a-z, 0-9, _ and -)" in message
    assert "sesame" not in message


@pytest.mark.parametrize("value", ["sesame", "[1]", "3", '{"a": "sesame"}', "[" * 100_000])
def test_tokens_that_are_no_table_are_refused_without_being_shown(value: str) -> None:
    message = complaint(environ={"TOOLCRIB_HTTP__TOKENS": value})
    assert message.startswith("http.tokens")
    assert "sesame" not in message


def test_an_empty_variable_counts_as_not_set() -> None:
    assert load(environ={"TOOLCRIB_HTTP__TOKEN": "", "TOOLCRIB_CONFIG": ""}).http.token is None


def test_numbers_by_name_are_json_in_the_environment() -> None:
    environ = {"TOOLCRIB_LIMITS__TOOL_RESULT_TOKENS": '{"bash": 100}'}
    assert load(environ=environ).limits.tool_result_tokens == {"bash": 100}


def test_lists_in_the_environment_are_separated_by_commas() -> None:
    settings = load(environ={"TOOLCRIB_HTTP__ALLOWED_HOSTS": "a.example:*, b.example,"})
    assert settings.http.allowed_hosts == ("a.example:*", "b.example")


def test_a_root_that_is_a_loop_of_links_is_a_settings_error(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert "root" in complaint(environ={"TOOLCRIB_ROOT": str(tmp_path / "loop")})


@example("0" * 5_000, "data_dir")
@example("0" * 300, "embedder.folder")
@example("~nobody-of-that-name/x", "embedder.folder")
@example('{"x": {"folder": "~nobody-of-that-name"}}', "sources")
@example("0", "limits.tool_result_tokens")
@example('{"bash": -1}', "limits.tool_result_tokens")
@given(st.text(), st.sampled_from([key for key, _ in Settings.fields()]))
def test_any_text_for_any_setting_is_a_value_or_a_settings_error(text: str, key: str) -> None:
    variable = "TOOLCRIB_" + key.upper().replace(".", "__")
    try:
        settings = load(environ={variable: text})
    except SettingsError as error:
        assert key in error.message  # noqa: PT017  # either outcome is right
    else:
        assert len(explain(settings)) == len(list(Settings.fields()))


@pytest.mark.parametrize(
    ("given", "rules"),
    [
        ("read_file,glob", ("read_file", "glob")),
        ("bash(git status *), grep ,", ("bash(git status *)", "grep")),
        ("bash(git log --format=%h,%s),glob", ("bash(git log --format=%h,%s)", "glob")),
        ('["read_file", "glob"]', ("read_file", "glob")),
        ("[]", ()),
    ],
)
def test_a_list_in_the_environment_is_separated_by_commas_or_json(
    given: str, rules: tuple[str, ...]
) -> None:
    assert load(environ={"TOOLCRIB_POLICY__ALLOW": given}).policy.allow == rules


def test_lists_that_were_separated_by_commas_may_be_json_and_what_is_neither_says_how() -> None:
    assert load(environ={"TOOLCRIB_SURFACE": '["lean", "glob"]'}).surface == ("lean", "glob")
    assert 'write a,b or ["a", "b"]' in complaint(environ={"TOOLCRIB_POLICY__ALLOW": '["a", b]'})
