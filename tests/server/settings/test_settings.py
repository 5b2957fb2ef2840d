import os
import pwd
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from server.settings.http import HttpSettings
from server.settings.index import SummarySettings
from server.settings.settings import FunctionSettings, Settings
from server.settings_file import SettingsError


def test_every_setting_has_a_description() -> None:
    assert [key for key, field in Settings.fields() if not field.description] == []


def test_the_environment_does_not_change_settings_that_are_built_directly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOOLCRIB_HTTP__PORT", "1")
    assert Settings().http.port == 8765


def test_settings_cannot_be_changed() -> None:
    settings = Settings()
    with pytest.raises(ValidationError, match="frozen"):
        settings.root = Path("/tmp")  # type: ignore[misc]  # noqa: S108  # what the test is about
    with pytest.raises(ValidationError, match="frozen"):
        settings.http.port = 1  # type: ignore[misc]  # what the test is about


def test_the_working_directory_is_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Settings().root == tmp_path


@pytest.mark.parametrize("where", ["/", "home", "home/.."])
def test_where_nobody_works_the_root_is_a_directory_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / where)
    settings = Settings(data_dir=tmp_path / "data")
    assert settings.root == tmp_path / "data" / "files"
    settings.create_directories()
    assert settings.root.is_dir()
    assert settings.data_dir.stat().st_mode & 0o777 == 0o700


def test_a_working_directory_that_was_removed_is_not_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert Settings(data_dir=tmp_path).root == tmp_path / "files"


def test_the_file_system_is_refused_as_root_under_any_name(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("/")
    for root in (Path("/"), Path("/tmp/.."), link):  # noqa: S108  # a name of the root
        with pytest.raises(ValidationError, match="whole file system"):
            Settings(root=root)


def test_the_home_and_what_holds_it_is_a_root_only_where_that_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "people" / "ann"
    (home / "notes").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    (tmp_path / "link").symlink_to(home)
    own = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    for root in (home, home / "notes" / "..", home.parent, tmp_path / "link", own, Path("/home")):
        with pytest.raises(ValidationError, match="--allow-broad-root"):
            Settings(root=root)
        assert Settings(root=root, allow_broad_root=True).root == root.resolve()
    assert Settings(root=home / "notes").root == (home / "notes").resolve()


def test_a_root_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for root in (tmp_path / "file", tmp_path / "missing"):
        with pytest.raises(ValidationError, match="is not an existing directory"):
            Settings(root=root)


def test_a_tilde_is_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = Settings(data_dir=Path("~/crib"))
    assert settings.data_dir == tmp_path / "crib"


def test_a_relative_log_file_is_taken_from_the_data_directory(tmp_path: Path) -> None:
    assert Settings(data_dir=tmp_path).log_file == tmp_path / "logs" / "toolcrib.log"


def test_a_data_directory_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    settings = Settings(data_dir=tmp_path / "file" / "data", root=tmp_path)
    with pytest.raises(SettingsError, match=r"data_dir = .*file/data' \(from default\) cannot be"):
        settings.create_directories()


@pytest.mark.parametrize("token", ["", "two words", "line\n", "ключ", "a=b"])
def test_a_token_that_no_header_can_carry_is_refused(token: str) -> None:
    with pytest.raises(ValidationError, match="letters, digits"):
        HttpSettings(token=SecretStr(token))


@pytest.mark.parametrize(
    ("settings", "wrong"),
    [
        ({"issuer": "http://id.example/"}, "needs https"),
        ({"issuer": "https://id.example/?a=b"}, "issuer"),
        ({"issuer": 'https://id.example/"'}, "issuer"),
        ({"resource": "crib.example/mcp"}, "resource"),
        ({"resource": "https://crib.example:99999/mcp"}, "resource"),
        ({"scopes": ['a"b']}, "scopes"),
        ({"tokens": {"ann": {"user_id": "ann"}}}, "either token or subject"),
        (
            {"tokens": {"ann": {"user_id": "ann", "token": "a", "subject": "b"}}},
            "either token or subject",
        ),
        ({"tokens": {"ann": {"user_id": "ann", "subject": "b"}}}, "ann has a subject, which needs"),
        (
            {
                "issuer": "https://id.example/",
                "tokens": {name: {"user_id": name, "subject": "b"} for name in ("ann", "bob")},
            },
            "bob has the same subject as ann",
        ),
    ],
)
def test_what_could_let_in_the_wrong_account_is_refused(
    settings: dict[str, object], wrong: str
) -> None:
    with pytest.raises(ValidationError, match=wrong):
        HttpSettings.model_validate(settings)
    http = {"issuer": "https://id.example/", "tokens": {"ann": {"user_id": "a", "subject": "b"}}}
    assert HttpSettings.model_validate(http).with_values(lambda _value, _where: "x").issuer


def test_a_token_is_never_shown() -> None:
    assert "sesame" not in repr(Settings(http=HttpSettings(token=SecretStr("sesame"))))


def test_function_files_are_python_files_or_directories_outside_of_the_root(tmp_path: Path) -> None:
    (tmp_path / "root" / "crafts").mkdir(parents=True)
    (tmp_path / "root" / "saws.py").touch()
    (tmp_path / "notes.txt").touch()

    def settings(*paths: str) -> Settings:
        functions = FunctionSettings(paths=tuple(tmp_path / path for path in paths))
        return Settings(data_dir=tmp_path, root=tmp_path / "root", functions=functions)

    assert len(settings("root/saws.py", "root/crafts").functions.paths) == 2
    for path, reason in {
        "missing.py": "does not exist",
        "notes.txt": "neither a Python file nor a directory",
        "root": "contains the root",
        ".": "contains the root",
    }.items():
        with pytest.raises(ValidationError, match=reason):
            settings(path)


def test_files_that_may_have_the_stored_context_are_named_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "saws.py").touch()
    assert FunctionSettings(context=(tmp_path / "saws.py",)).context == (tmp_path / "saws.py",)
    with pytest.raises(ValidationError, match="name each file"):
        FunctionSettings(context=(tmp_path,))


def test_a_model_for_summaries_has_a_url_and_a_name_and_keeps_its_key() -> None:
    settings = SummarySettings(url="http://127.0.0.1:1/v1", model="tiny", api_key=SecretStr("hush"))
    assert "hush" not in repr(settings)
    with pytest.raises(ValidationError, match=r"summaries\.url"):
        SummarySettings(url="http://127.0.0.1:1/v1")
    with pytest.raises(ValidationError, match="pattern"):
        SummarySettings(url="file:///etc/passwd", model="tiny")
