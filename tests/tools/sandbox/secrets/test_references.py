from pathlib import Path

import pytest

from tools.core.errors import InvalidArgumentsError, UnavailableError
from tools.sandbox.secrets.redaction import Redaction
from tools.sandbox.secrets.references import References, files_in, shown
from tools.sandbox.secrets.store import SecretStore


@pytest.fixture
def private(tmp_path: Path) -> Path:
    path = tmp_path / "naïve token.txt"
    path.write_text("file-value-1\n")
    path.chmod(0o600)
    return path


def test_a_text_may_mix_references_of_every_kind(private: Path, tmp_path: Path) -> None:
    SecretStore(tmp_path / "own").put("gh", "kept-value-1", in_file=True)
    references = References({"A": "a", "EMPTY": ""}, tmp_path / "own")
    text = f"${{A}}|${{env:A}}|${{EMPTY:-b}}|${{NO:-}}|${{file:{private}}}|${{keyring:gh}}|$A"
    assert references.expand(text, "its url") == "a|a|b||file-value-1|kept-value-1|$A"


def test_values_are_read_at_each_use_and_redacted(private: Path) -> None:
    redaction = Redaction()
    references = References({}, redaction=redaction)
    text = f"Bearer ${{file:{private}}}"
    references.expand(text, "its token")
    private.write_text("file-value-2")
    assert references.expand(text, "its token") == "Bearer file-value-2"
    said = redaction.text("file-value-1 file-value-2")
    assert "file-value" not in said


def test_variables_are_redacted_as_secrets_only_where_they_are() -> None:
    redaction = Redaction()
    references = References(
        {"HOME": "/home/ann/x", "MY_TOKEN": "t" * 9, "B": "b" * 9}, None, redaction
    )
    references.expand("${HOME}/${MY_TOKEN}", "its args")
    references.expand("${B}", "its token", is_secret=True)
    assert redaction.text(f"/home/ann/x {'b' * 9}{'t' * 9}").startswith("/home/ann/x [secret:B]")
    assert "ttt" not in redaction.text("t" * 9)


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("${NO}", "its token names the variable NO, which is not set"),
        ("${keyring:nope}", "no secret 'nope' is kept. The user runs: toolcrib secret set nope."),
        ("${keyring:../../etc/passwd}", "the keyring"),
        ("${keyring:..}", "no secret '..' is kept"),
        ("${keyring:}", "nothing follows 'keyring:'"),
        ("${env:A-B}", "the environment variable A-B is not set"),
        ("${file:relative}", "the path is relative"),
        ("${file:/no/such}", "cannot be read: No such file"),
        ("${file:~no-such-user/x}", "cannot be used"),
        ("${file:/tmp}", "cannot be read: Is a directory"),
    ],
)
def test_what_cannot_be_read_fails_with_the_setting_and_the_reference(
    reference: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(UnavailableError, match="its token names") as error:
        References({}, tmp_path).expand(f"Bearer {reference}", "its token")
    assert said in error.value.message


def test_a_file_that_others_can_read_is_refused_at_the_moment_of_reading(private: Path) -> None:
    references = References({})
    references.expand(f"${{file:{private}}}", "its token")
    private.chmod(0o640)
    with pytest.raises(UnavailableError, match=r"mode 640\)\. The user runs: chmod 600"):
        references.expand(f"${{file:{private}}}", "its token")


def test_placeholders_of_clients_are_left_alone() -> None:
    assert References({}).expand("${input:key} ${}", "its token") == "${input:key} ${}"


def test_only_references_are_shown() -> None:
    for text in ("${keyring:a}", "Bearer ${env:A}", "${A}${file:/x}"):
        assert shown(text) == text
    for text in ("plain", "x${A}", "${A:-default}", "Bearer x"):
        assert shown(text) == "**********"


def test_files_that_settings_name_are_known() -> None:
    assert files_in("${file:/a b} ${file:~/c} ${file:d} ${file:}") == [
        Path("/a b"),
        Path.home() / "c",
    ]


def test_a_secret_in_a_file_is_private_listed_and_removed(tmp_path: Path) -> None:
    store = SecretStore(tmp_path / "own")
    path = store.put("gh", "kept-value-1", in_file=True)
    assert path is not None
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert list(store.names()) == [("gh", True)]
    store.remove("gh")
    assert list(store.names()) == []
    with pytest.raises(InvalidArgumentsError, match="There is no secret 'gh'; there are: none"):
        store.remove("gh")


@pytest.mark.parametrize("name", ["", "../x", "A", "a b", "a" * 65, "ä"])
def test_names_of_secrets_are_plain(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentsError, match="cannot be the name of a secret"):
        SecretStore(tmp_path).put(name, "kept-value-1", in_file=True)


def test_the_keyring_keeps_the_value_and_the_file_only_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyring = pytest.importorskip("keyring", reason="the extra keyring is not installed")
    (tmp_path / "kept_here.py").write_text(
        "from keyring.backend import KeyringBackend\n"
        "from keyring.errors import PasswordDeleteError\n"
        "class Keyring(KeyringBackend):\n"
        "    priority = 1\n"
        "    kept = {}\n"
        "    def get_password(self, *entry): return self.kept.get(entry)\n"
        "    def set_password(self, *given): self.kept[given[:2]] = given[2]\n"
        "    def delete_password(self, *entry):\n"
        "        if self.kept.pop(entry, None) is None: raise PasswordDeleteError\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    before = keyring.get_keyring()
    store = SecretStore(tmp_path / "own")
    references = References({}, tmp_path / "own")
    try:
        keyring.set_keyring(keyring.core.load_keyring("kept_here.Keyring"))
        assert store.put("gh", "kept-value-1") is None
        assert (tmp_path / "own" / "gh").read_bytes() == b""
        assert references.expand("${keyring:gh}", "its token") == "kept-value-1"
        assert references.expand("${keyring:toolcrib/gh}", "its token") == "kept-value-1"
        store.remove("gh")
        with pytest.raises(UnavailableError, match="the keyring has no entry toolcrib/gh"):
            references.expand("${keyring:toolcrib/gh}", "its token")
        keyring.set_keyring(keyring.core.load_keyring("keyring.backends.null.Keyring"))
        with pytest.raises(UnavailableError, match="the keyring did not keep the value"):
            store.put("gh", "kept-value-1")
        assert list(store.names()) == []
    finally:
        keyring.set_keyring(before)
