import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.settings import SettingsError
from server.settings.file import ListEntries, NamedTable, SettingsFile

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
FIELDS = st.fixed_dictionaries(
    {"command": TEXT},
    optional={
        "args": st.lists(TEXT),
        "env": st.dictionaries(TEXT, TEXT, min_size=1),
        "enabled": st.booleans(),
        "timeout": st.floats(0.001, 3600),
    },
)
TRICKY = '''\ufeff# first
note = """
[servers.a]
command = "in a text"
"""
list = [
  "[servers.a]",
]

# of a
[servers.a]  # here
command = "x"

[ servers . "a" . env ]
X = "1"

# of b

[servers.b]
url = "http://h/"
# last'''


@given(st.lists(FIELDS, min_size=1, max_size=4))
def test_whatever_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, tables: list[dict[str, Any]]
) -> None:
    path = tmp_path_factory.mktemp("settings") / "new" / "config.toml"
    named = {f"s{at}": fields for at, fields in enumerate(tables)}
    SettingsFile(path).put("servers", [NamedTable(name, fields) for name, fields in named.items()])
    assert tomllib.loads(path.read_bytes().decode()) == {"servers": named}


def test_the_tables_of_one_server_are_found_and_all_else_stays(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(TRICKY.encode())
    SettingsFile(path).put("servers", [NamedTable("a", {"command": "y"})])
    before, _, after = TRICKY.partition('# of a\n[servers.a]  # here\ncommand = "x"')
    rest = after[after.index("\n# of b") :]
    expected = before + '# of a\n[servers.a]  # here\ncommand = "y"\n' + rest
    assert path.read_bytes().decode() == expected


def test_tables_of_one_server_with_another_between_them_become_one(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[servers.a]\ncommand = "x"\n[log]\nlevel = "INFO"\n[servers.a.env]\nX = "1"\n')
    SettingsFile(path).put("servers", [NamedTable("a", {"command": "y"})])
    assert path.read_text() == '[servers.a]\ncommand = "y"\n[log]\nlevel = "INFO"\n'


def test_a_server_is_added_to_those_that_stand_in_dotted_keys(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('servers.a.command = "x"\n')
    SettingsFile(path).put("servers", [NamedTable("b", {"command": "y"})])
    assert tomllib.loads(path.read_text())["servers"]["b"] == {"command": "y"}


def test_a_file_that_is_no_toml_is_told(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[servers")
    with pytest.raises(SettingsError, match="is not TOML"):
        SettingsFile(path)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    file = SettingsFile(tmp_path / "file" / "config.toml")
    with pytest.raises(SettingsError, match="cannot be written"):
        file.put("servers", [NamedTable("a", {"command": "x"})])


def test_hundreds_of_servers_are_written_between_others(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[log]\nlevel = "info"\n')
    tables = [
        NamedTable(f"s{number}", {"command": "c", "env": {"A": "b"}}) for number in range(200)
    ]
    SettingsFile(path).put("servers", tables)
    SettingsFile(path).put("servers", [NamedTable("s100", {"command": "d"})])
    servers = SettingsFile(path).tables_in("servers")
    assert len(servers) == 200
    assert servers["s100"] == {"command": "d"}


ALLOWED = ["bash(npm test)", "bash(git status *)"]
POLICIES = [
    "",
    'data_dir = "x"\n',
    '[policy]\nprofile = "cautious"\n\n# about http\n[http]\nport = 9000\n',
    '[policy]\nallow = [\n  "bash(ls)",  # to list\n  "bash(npm test)"\n]\ndeny = ["bash(rm *)"]\n',
    'policy.profile = "cautious"\n[http]\nport = 9000\n',
    'policy = {profile = "cautious"}\n',
    "\ufeff[policy]\r\nallow = []\r\n",
]


@pytest.mark.parametrize("before", POLICIES)
def test_a_rule_is_added_once_and_all_else_stays_with_its_comments_and_mode(
    before: str, tmp_path: Path
) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(before.encode())
    path.chmod(0o640)
    for _ in range(2):
        SettingsFile(path).allow(ALLOWED)
    after = path.read_bytes().decode()
    expected = tomllib.loads(before.removeprefix("\ufeff"))
    there = expected.setdefault("policy", {}).setdefault("allow", [])
    there += [rule for rule in ALLOWED if rule not in there]
    assert tomllib.loads(after.removeprefix("\ufeff")) == expected
    assert ("\ufeff" in after, "\r\n" in after) == ("\ufeff" in before, "\r\n" in before)
    assert [line for line in before.splitlines() if "#" in line and line not in after] == []
    assert path.stat().st_mode & 0o777 == 0o640
    assert SettingsFile(path).allowing == there


def test_a_file_that_is_made_for_a_rule_is_private(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config.toml"
    SettingsFile(path).allow(ALLOWED)
    assert path.read_text() == '[policy]\nallow = ["bash(npm test)", "bash(git status *)"]\n'
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("before", ['[policy]\nallow = "bash(ls)"\n', "policy = 3\n"])
def test_rules_that_are_no_list_are_left_as_they_are(before: str, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(before)
    with pytest.raises(SettingsError, match="Nothing was changed"):
        SettingsFile(path).allow(ALLOWED)
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("", '[policy]\nallow = [\n  # why\n  "b", "c",\n]\n'),
        ("[policy]\r\n", '[policy]\r\nallow = [\r\n  # why\r\n  "b", "c",\r\n]\r\n'),
        (
            '[policy]\nallow = ["a"]  # mine\ndeny = []\n',
            '[policy]\nallow = ["a",\n  # why\n  "b", "c",\n]  # mine\ndeny = []\n',
        ),
        (
            '[policy]\nallow = [\n    "a" # of a\n    # end\n]\n',
            '[policy]\nallow = [\n    "a", # of a\n    # end\n  # why\n  "b", "c",\n]\n',
        ),
    ],
)
def test_entries_are_added_to_a_list_and_all_else_stays(
    tmp_path: Path, text: str, written: str
) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(text.encode())
    added = [ListEntries("policy", "allow", ("b", "c"), "why")]
    assert SettingsFile(path).with_entries(added) == written
    assert path.read_bytes() == text.encode()


def test_of_writers_at_the_same_time_none_loses_what_another_wrote(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"

    def write(number: int) -> list[str]:
        written = []
        for rule in (f"read(a{number}-{turn})" for turn in range(20)):
            with suppress(SettingsError):  # another one was quicker, and this one is told
                SettingsFile(path).allow([rule])
                written.append(rule)
        return written

    with ThreadPoolExecutor(4) as pool:
        written = {rule for rules in pool.map(write, range(4)) for rule in rules}
    assert written == set(SettingsFile(path).allowing)
