"""What is added to clients' files: entries and hooks, in each format, without another change."""

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from server.clients.locations import OwnAddress
from server.clients.pieces import GENERATED, FileChange, Format, Piece, plan

OWN = OwnAddress("127.0.0.1", 8765)
ENTRY = {"command": "/opt/bin/toolcrib", "args": ["serve"]}
HOOK = {"hooks": [{"type": "command", "command": "/opt/bin/toolcrib hook claude-code stop"}]}


def change(piece: Piece, *more: Piece) -> FileChange:
    made = plan([piece, *more], OWN)
    assert made.refusals == []
    (found,) = made.changes
    return found


def after(found: FileChange) -> str:
    assert found.after is not None
    return found.after.decode()


def piece(file: Path, **other: Any) -> Piece:
    keys = other.pop("keys", ("mcpServers", "toolcrib"))
    return Piece(
        "x", file, other.pop("kind", Format.JSON), keys, other.pop("value", ENTRY), **other
    )


BEFORE = {
    Format.JSON: '{\n  // mine\n  "mcpServers": {\n    "a": {"command": "a"}, // first\n  },\n}\n',
    Format.TOML: '# mine\nmodel = "x"\n\n[mcpServers.a]\ncommand = "a"  # the first\n',
    Format.YAML: "# mine\nmcpServers:\n  a:\n    command: a  # the first\n\nother: 1  # last\n",
}
PARSE = {Format.TOML: tomllib.loads, Format.YAML: yaml.safe_load}


@pytest.mark.parametrize("kind", BEFORE)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_an_entry_is_added_and_every_line_of_before_stays(
    kind: Format, newline: str, tmp_path: Path
) -> None:
    before = BEFORE[kind].replace("\n", newline)
    (tmp_path / "f").write_bytes(before.encode())
    made = after(change(piece(tmp_path / "f", kind=kind)))
    left = made.split(newline)
    for line in before.split(newline):
        left.remove(line)
    assert not any("\n" in line for line in left)
    if kind is not Format.JSON:
        assert PARSE[kind](made)["mcpServers"]["toolcrib"] == ENTRY


@pytest.mark.parametrize("kind", BEFORE)
@pytest.mark.parametrize("before", [None, ""])
def test_a_missing_and_an_empty_file_get_the_entry(
    kind: Format, before: str | None, tmp_path: Path
) -> None:
    if before is not None:
        (tmp_path / "f").write_text(before)
    found = change(piece(tmp_path / "f", kind=kind))
    assert found.before == (None if before is None else b"")
    read = PARSE.get(kind, json.loads)
    assert read(after(found)) == {"mcpServers": {"toolcrib": ENTRY}}


@pytest.mark.parametrize("kind", BEFORE)
def test_adding_it_twice_changes_nothing(kind: Format, tmp_path: Path) -> None:
    (tmp_path / "f").write_text(BEFORE[kind])
    (tmp_path / "f").write_text(after(change(piece(tmp_path / "f", kind=kind))))
    assert not change(piece(tmp_path / "f", kind=kind)).is_needed


@pytest.mark.parametrize("name", ["toolcrib", "my-tools"])
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (
            Format.JSON,
            '{"mcpServers": {"NAME": {"command": "/old/bin/toolcrib", "args": [], "env": {}}}}',
        ),
        (
            Format.TOML,
            '[mcpServers.NAME]\nstartup_timeout_sec = 9 # slow\ncommand = "/old/bin/toolcrib"\n',
        ),
        (Format.YAML, "mcpServers:\n  NAME:\n    command: /old/bin/toolcrib # old\n    more: 1\n"),
    ],
)
def test_an_entry_of_toolcrib_is_updated_under_its_name_and_keeps_its_other_keys(
    kind: Format, text: str, name: str, tmp_path: Path
) -> None:
    text = text.replace("NAME", name)
    (tmp_path / "f").write_text(text)
    made = after(change(piece(tmp_path / "f", kind=kind)))
    read = PARSE.get(kind, json.loads)
    (old,), (new,) = (read(each)["mcpServers"].items() for each in (text, made))
    assert new == (name, old[1] | ENTRY)
    assert old[0] == name
    if "#" in text:
        assert text.partition("#")[2].split()[0] in made


def test_another_server_with_a_path_of_the_same_name_is_not_taken_for_ours(tmp_path: Path) -> None:
    other = {"command": "npx", "args": ["server-filesystem", "/home/me/toolcrib"]}
    (tmp_path / "f").write_text(json.dumps({"mcpServers": {"files": other}}))
    made = json.loads(after(change(piece(tmp_path / "f"))))
    assert made == {"mcpServers": {"files": other, "toolcrib": ENTRY}}


def test_a_hook_is_appended_to_its_list_once_and_replaces_an_older_one(tmp_path: Path) -> None:
    mine = {"hooks": [{"type": "command", "command": "say done"}]}
    (tmp_path / "f").write_text(json.dumps({"hooks": {"Stop": [mine]}}))
    hook = piece(tmp_path / "f", keys=("hooks", "Stop"), value=HOOK, append=True)
    (tmp_path / "f").write_text(after(change(hook)))
    assert json.loads((tmp_path / "f").read_text()) == {"hooks": {"Stop": [mine, HOOK]}}
    assert not change(hook).is_needed
    moved = json.loads(json.dumps(HOOK).replace("/opt", "/new"))
    newer = piece(tmp_path / "f", keys=("hooks", "Stop"), value=moved, append=True)
    assert json.loads(after(change(newer))) == {"hooks": {"Stop": [mine, moved]}}


def test_two_hooks_of_one_list_are_both_there(tmp_path: Path) -> None:
    other = HOOK | {"matcher": "compact"}
    both = [
        piece(tmp_path / "f", keys=("hooks", "Stop"), value=each, append=True)
        for each in (HOOK, other)
    ]
    assert json.loads(after(change(*both))) == {"hooks": {"Stop": [HOOK, other]}}


def test_a_comment_explains_a_table_of_toml(tmp_path: Path) -> None:
    made = after(change(piece(tmp_path / "f", kind=Format.TOML, comments=("Why.",))))
    assert made.startswith("[mcpServers.toolcrib]\n# Why.\ncommand")


def test_a_whole_file_replaces_only_one_that_we_generated(tmp_path: Path) -> None:
    rules = piece(tmp_path / "f", kind=Format.WHOLE, keys=(), value=f"# {GENERATED}\n")
    assert after(change(rules)) == rules.value
    (tmp_path / "f").write_text(f"<!-- {GENERATED} -->\nold")
    assert after(change(rules)) == rules.value
    (tmp_path / "f").write_text("mine")
    assert plan([rules], OWN).refusals[0].reason == "it exists and is not ours"


def read_only(file: Path) -> None:
    file.touch()
    file.chmod(0o444)


def large(file: Path) -> None:
    file.touch()
    os.truncate(file, 60_000_000)


def link(file: Path) -> None:
    file.symlink_to("elsewhere")


@pytest.mark.parametrize(
    ("kind", "prepare", "reason"),
    [
        (Format.JSON, lambda f: f.write_text("{"), "it is not JSON: "),
        (Format.JSON, lambda f: f.write_text('{"mcpServers": []}'), "mcpServers is not an object"),
        (Format.JSON, lambda f: f.write_text("[]"), "its JSON holds no object"),
        (Format.JSON, lambda f: f.write_bytes(b"\xff"), "it is not UTF-8 text (byte 0)"),
        (Format.JSON, lambda f: f.write_text("[" * 100_000), "it is not JSON: "),
        (Format.JSON, link, "it is a symbolic link to elsewhere"),
        (Format.JSON, lambda f: f.mkdir(), "it is not a regular file"),
        (Format.JSON, read_only, "it is read-only"),
        (Format.JSON, large, "it is larger than"),
        (Format.JSON, lambda f: f.write_text('{"mcpServers": {}, "mcpServers": {}}'), "twice"),
        (Format.TOML, lambda f: f.write_text("a ="), "it is not TOML: "),
        (Format.TOML, lambda f: f.write_text("mcpServers = 1"), "mcpServers is not an object"),
        (Format.YAML, lambda f: f.write_text("a: ["), "it is not YAML: "),
        (Format.YAML, lambda f: f.write_text("a: 1\n---\nb: 2\n"), "it is not YAML: "),
        (Format.YAML, lambda f: f.write_text("- a\n"), "its YAML holds no object"),
    ],
)
def test_a_file_that_cannot_be_edited_safely_is_left_alone_and_the_reason_named(
    kind: Format, prepare: Any, reason: str, tmp_path: Path
) -> None:
    prepare(tmp_path / "f")
    made = plan([piece(tmp_path / "f", kind=kind)], OWN)
    assert made.changes == []
    assert reason in made.refusals[0].reason


def test_inline_tables_of_toml_are_extended(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("mcpServers = {a = {}}  # mine\n")
    made = after(change(piece(tmp_path / "f", kind=Format.TOML)))
    assert tomllib.loads(made)["mcpServers"] == {"a": {}, "toolcrib": ENTRY}
    assert made.endswith("# mine\n")


def test_of_a_file_in_one_long_line_the_diff_shows_the_change(tmp_path: Path) -> None:
    rest = {f"key{number}": number for number in range(1000)}
    (tmp_path / "f").write_text(json.dumps({"mcpServers": {}, **rest}))
    removed, added = change(piece(tmp_path / "f")).diff()[1:]
    assert len(removed) < 160
    assert '"toolcrib": {"command": "/opt/bin/toolcrib", "args": ["serve"]}' in added
    assert len(added) < 200


def test_a_long_line_is_cut_after_its_secrets_are_hidden(tmp_path: Path) -> None:
    rest = {f"key{number}": number for number in range(1000)}
    secret = "sk-" + "a1B2" * 12
    (tmp_path / "f").write_text(json.dumps({**rest, "key": secret}))
    shown = change(piece(tmp_path / "f")).diff(lambda line: line.replace(secret, "[redacted]"))
    assert "a1B2" not in "".join(shown)
    assert '"key": "[redacted]", "mcpServers"' in shown[-1]


def test_a_file_that_is_nested_too_deeply_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "f").write_text(f'{{"a": {"[" * 900}{"]" * 900}}}')
    for refusal in plan([piece(tmp_path / "f")], OWN).refusals:  # newer Pythons may read it
        assert refusal.reason == "it is nested too deeply"
