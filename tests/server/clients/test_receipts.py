"""What was written into clients' files is remembered, and undone."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from server.clients.backups import KEPT_BACKUPS, backups_of
from server.clients.locations import OwnAddress
from server.clients.pieces import FileChange, Format, Piece, Plan, plan
from server.clients.receipts import Receipts
from tools.core.errors import ConflictError

OWN = OwnAddress("127.0.0.1", 8765)
ENTRY = {"command": "/opt/bin/toolcrib", "args": ["serve"]}
TEXTS = {
    Format.JSON: '{"mcpServers" : {"a": {}}, /* mine */ "b": 1}',
    Format.TOML: 'model = "x" # mine\n[servers.a]\n',
    Format.YAML: "other: 1 # mine",
}


class Machine:
    """A client's file, and the receipts of a data directory."""

    def __init__(self, place: Path, kind: Format = Format.JSON) -> None:
        self.receipts = Receipts(place / "data")
        self.file, self.kind = place / "client" / "settings", kind

    def pieces(self, *clients: str) -> list[Piece]:
        value = {"hooks": [{"command": "/opt/bin/toolcrib hook x stop"}]}
        keys = ("mcpServers", "toolcrib")
        made = [Piece(each, self.file, self.kind, keys, ENTRY) for each in clients]
        if self.kind is Format.JSON:
            made.append(
                Piece(clients[0], self.file, self.kind, ("hooks", "Stop"), value, append=True)
            )
        return made

    def install(self, *clients: str) -> list[FileChange]:
        made = plan(self.pieces(*clients or ("x",)), OWN)
        assert made.refusals == self.receipts.apply(made.changes) == []
        return made.changes

    def uninstall(self, *clients: str) -> Plan:
        made = self.receipts.plan_undo(clients or ("x",), OWN)
        assert self.receipts.apply(made.changes) == []
        return made


@pytest.fixture(params=TEXTS)
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    made = Machine(tmp_path, request.param)
    made.file.parent.mkdir()
    made.file.write_text(TEXTS[made.kind])
    return made


def test_an_undo_restores_the_file_byte_for_byte(machine: Machine) -> None:
    machine.file.chmod(0o640)
    machine.install()
    assert machine.file.read_text() != TEXTS[machine.kind]
    (undone,) = machine.uninstall().changes
    assert undone.note == "restored byte for byte"
    assert machine.file.read_text() == TEXTS[machine.kind]
    assert stat.S_IMODE(machine.file.stat().st_mode) == 0o640
    assert machine.receipts.read() == {}


def test_an_undo_of_an_edited_file_removes_only_our_part(machine: Machine) -> None:
    machine.install()
    added = {Format.JSON: "\n// later", Format.TOML: "\n[later]\n", Format.YAML: "later: 2\n"}
    with machine.file.open("a") as file:
        file.write(added[machine.kind])
    (undone,) = machine.uninstall().changes
    assert undone.note == "edited since: only our part was removed"
    left = machine.file.read_text()
    assert "toolcrib" not in left
    assert left.split() == (TEXTS[machine.kind] + " " + added[machine.kind]).split()


@pytest.mark.parametrize("kind", TEXTS)
def test_an_undo_removes_the_file_and_the_folder_that_were_made(
    kind: Format, tmp_path: Path
) -> None:
    machine = Machine(tmp_path, kind)
    machine.install()
    assert machine.file.exists()
    machine.uninstall()
    assert not machine.file.parent.exists()


def test_an_undo_keeps_what_was_added_to_a_file_that_was_made(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.install()
    edited = json.loads(machine.file.read_text()) | {"mine": 1}
    machine.file.write_text(json.dumps(edited))
    machine.install()  # nothing to do
    machine.uninstall()
    assert json.loads(machine.file.read_text()) == {"mine": 1}


def test_an_update_after_an_edit_does_not_restore_the_file_before_the_edit(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.install()
    with machine.file.open("a") as file:
        file.write("\n")
    monkeypatch.setitem(ENTRY, "command", "/new/bin/toolcrib")
    machine.install()
    machine.uninstall()
    assert machine.file.read_text().split() == TEXTS[machine.kind].split()


def test_an_entry_that_two_clients_read_is_removed_with_the_second(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.file.parent.mkdir()
    machine.file.write_text("{ }")
    machine.install("x", "y")
    machine.uninstall("y")
    assert list(json.loads(machine.file.read_text())["mcpServers"]) == ["toolcrib"]
    machine.uninstall("x")
    assert machine.file.read_text() == "{ }"


def test_an_edit_between_two_undos_is_kept(machine: Machine) -> None:
    machine.install("x", "y")
    with machine.file.open("a") as file:
        file.write("\n")
    machine.uninstall("y")
    machine.uninstall("x")
    assert machine.file.read_text().split() == TEXTS[machine.kind].split()
    assert machine.file.read_text().endswith("\n")


def test_a_file_that_changed_after_the_diff_is_not_written(machine: Machine) -> None:
    made = plan(machine.pieces("x"), OWN)
    machine.file.write_text("")
    (refused,) = machine.receipts.apply(made.changes)
    assert "another program changed it meanwhile" in refused.reason
    assert machine.file.read_text() == ""


def test_backups_are_private_and_the_first_and_the_newest_few_are_kept(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        monkeypatch.setitem(ENTRY, "command", f"/opt/{number}/bin/toolcrib")
        machine.install()
    backups = backups_of(machine.file)
    assert len(backups) == KEPT_BACKUPS + 1
    assert {stat.S_IMODE(each.stat().st_mode) for each in backups} == {0o600}
    machine.uninstall()
    assert machine.file.read_text() == TEXTS[machine.kind]


def test_a_receipt_without_the_write_that_a_kill_prevented_is_harmless(machine: Machine) -> None:
    machine.install()
    machine.file.write_text(TEXTS[machine.kind])
    (undone,) = machine.uninstall().changes
    assert not undone.is_needed
    assert machine.receipts.read() == {}


def test_a_file_that_is_gone_is_forgotten_and_may_be_written_again(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.install()
    machine.file.unlink()
    assert machine.uninstall().changes[0].note == "it is gone already"
    assert machine.receipts.read() == {}
    machine.install()
    machine.file.unlink()
    machine.install()
    machine.uninstall()
    assert not machine.file.exists()


def test_backups_of_a_file_that_was_made_are_removed_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path)
    machine.install()
    monkeypatch.setitem(ENTRY, "command", "/new/bin/toolcrib")
    machine.install()
    machine.uninstall()
    assert not machine.file.parent.exists()


def test_receipts_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "installed.json").write_text("{")
    with pytest.raises(Exception, match=r"installed\.json cannot be read"):
        machine.receipts.read()


def told(found: Any) -> str:
    return "\n".join(found.diff())


def test_a_value_that_was_there_before_us_stays(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.file.parent.mkdir()
    machine.file.write_text('{"version": 1}')
    version = Piece("x", machine.file, Format.JSON, ("version",), 1)
    machine.receipts.apply(plan([version, *machine.pieces("x")], OWN).changes)
    with machine.file.open("a") as file:
        file.write("\n")
    machine.uninstall()
    assert json.loads(machine.file.read_text()) == {"version": 1}


def test_a_diff_shows_what_is_added(tmp_path: Path) -> None:
    (found,) = plan([Piece("x", tmp_path / "f", Format.JSON, ("s", "t"), 1)], OWN).changes
    assert '+  "s": {' in told(found)


def test_a_file_that_a_kill_left_as_it_was_is_still_restored(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.file.parent.mkdir()
    machine.file.write_text(TEXTS[Format.JSON])
    machine.install()
    machine.file.write_text(TEXTS[Format.JSON])  # the receipt is written before the file
    machine.install()
    (undone,) = machine.uninstall().changes
    assert undone.note == "restored byte for byte"
    assert machine.file.read_text() == TEXTS[Format.JSON]


def test_hooks_that_the_user_added_to_our_group_stay(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.install()
    said = json.loads(machine.file.read_text())
    lint = {"command": "/opt/bin/lint"}
    said["hooks"]["Stop"][0]["hooks"] += [lint]
    said["hooks"]["Stop"].append({"hooks": [{"command": "toolcrib import docs"}]})
    machine.file.write_text(json.dumps(said).replace("/opt/bin/toolcrib", "/old/bin/toolcrib"))
    machine.install()
    ours = {"command": "/opt/bin/toolcrib hook x stop"}
    hooks = json.loads(machine.file.read_text())["hooks"]["Stop"]
    assert hooks == [{"hooks": [ours, lint]}, {"hooks": [{"command": "toolcrib import docs"}]}]
    machine.uninstall()
    hooks = json.loads(machine.file.read_text())["hooks"]["Stop"]
    assert hooks == [{"hooks": [lint]}, {"hooks": [{"command": "toolcrib import docs"}]}]


def test_comments_of_the_user_below_our_table_stay(tmp_path: Path) -> None:
    machine = Machine(tmp_path, Format.TOML)
    machine.file.parent.mkdir()
    machine.file.write_text("a = 1\n")
    machine.install()
    with machine.file.open("a") as file:
        file.write("\n# profile = 1\n")
    machine.uninstall()
    assert machine.file.read_text() == "a = 1\n\n# profile = 1\n"


def test_a_data_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConflictError, match="file/data cannot be written: Not a directory"):
        Receipts(tmp_path / "file" / "data").apply([])


@pytest.mark.parametrize("kind", [Format.JSON, Format.TOML])
def test_a_file_of_ours_with_comments_of_the_user_stays(tmp_path: Path, kind: Format) -> None:
    machine = Machine(tmp_path, kind)
    machine.install()
    comment = {Format.JSON: "// mine", Format.TOML: "# mine"}[kind]
    with machine.file.open("a") as file:
        file.write(f"\n{comment}\n")
    machine.uninstall()
    assert comment in machine.file.read_text()
