import json
import os
import zlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any

import anyio
import pytest

OpenCrib = Callable[..., AbstractAsyncContextManager[Any]]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def _last_call(crib: Any) -> str:
    (change, *_) = (await crib.call("list_changes"))["changes"]
    call: str = change["call"]
    return call


async def test_an_overwritten_file_is_put_back_with_its_bytes_and_its_mode(crib: Any) -> None:
    path = crib.root / "run.sh"
    path.write_bytes(b"\xef\xbb\xbf#!/bin/sh\r\necho caf\xc3\xa9")
    path.chmod(0o750)
    before = path.read_bytes()
    await crib.call("write_file", file_path="run.sh", content="gone\n")
    call = await _last_call(crib)
    shown = await crib.call("undo_change", call=call)
    assert shown["files"] == [{"file_path": "run.sh", "action": "put back", "why": ""}]
    assert "+echo café\n\\ No newline at end of file" in shown["diff"]
    assert path.read_bytes() != before
    await crib.call("undo_change", call=call, dry_run=False)
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o7777 == 0o750


async def test_a_change_names_its_call_as_the_audit_log_does(crib: Any) -> None:
    await crib.call("write_file", file_path="a.txt", content="one\n")
    lines = (crib.root.parent / "data/audit/calls.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["call"] == await _last_call(crib)


async def test_what_a_program_in_the_background_changes_is_told_apart(crib: Any) -> None:
    job = await crib.call("bash", command="echo x > a.txt; cat", run_in_background=True)
    with anyio.fail_after(60):
        while not (await crib.call("list_changes"))["changes"]:
            await crib.call("bash_output", job_id=job["job_id"])
    (change,) = (await crib.call("list_changes"))["changes"]
    assert (change["tool"], change["file_path"]) == ("bash, in the background", "a.txt")


async def test_a_created_file_is_removed_and_an_undo_is_undone(crib: Any) -> None:
    await crib.call("write_file", file_path="new/a.txt", content="one\n")
    await crib.call("undo_change", call=await _last_call(crib), dry_run=False)
    assert not (crib.root / "new/a.txt").exists()
    await crib.call("undo_change", call=await _last_call(crib), dry_run=False)
    assert (crib.root / "new/a.txt").read_text() == "one\n"


async def test_a_file_that_somebody_changed_since_is_left_alone(crib: Any) -> None:
    (crib.root / "a.txt").write_text("first\n")
    await crib.call("edit_file", file_path="a.txt", old_text="first", new_text="second")
    (crib.root / "a.txt").write_text("mine\n")
    undone = await crib.call("undo_change", call=await _last_call(crib), dry_run=False)
    assert undone["files"][0]["why"] == "it was changed since"
    assert (crib.root / "a.txt").read_text() == "mine\n"


async def test_what_a_program_changed_created_and_deleted_is_taken_back(crib: Any) -> None:
    (crib.root / "src").mkdir()
    for name in ("kept", "changed", "deleted"):
        (crib.root / f"src/{name}.py").write_text(f"{name}\n")
    await crib.call(
        "bash", command="echo x > src/changed.py; rm src/deleted.py; echo y > src/new.py"
    )
    changes = (await crib.call("list_changes"))["changes"]
    assert {(each["file_path"], each["change"]) for each in changes} == {
        ("src/changed.py", "changed"),
        ("src/deleted.py", "deleted"),
        ("src/new.py", "created"),
    }
    await crib.call("undo_change", call=changes[0]["call"], dry_run=False)
    assert {each.name: each.read_text() for each in (crib.root / "src").iterdir()} == {
        "kept.py": "kept\n",
        "changed.py": "changed\n",
        "deleted.py": "deleted\n",
    }


async def test_what_the_person_did_between_two_programs_is_no_change_of_the_session(
    crib: Any,
) -> None:
    await crib.call("bash", command="echo one > a.txt")
    (crib.root / "mine.txt").write_text("mine\n")
    (crib.root / "a.txt").write_text("mine too\n")
    await crib.call("bash", command="echo two > b.txt")
    changes = (await crib.call("list_changes"))["changes"]
    assert [each["file_path"] for each in changes] == ["b.txt", "a.txt"]


async def test_what_was_not_looked_at_before_a_program_is_never_taken_for_new(crib: Any) -> None:
    (crib.root / ".gitignore").write_text("secret.txt\nbuild/\n")
    (crib.root / "build").mkdir()
    (crib.root / "build/out.txt").write_text("out\n")
    (crib.root / "secret.txt").write_text("secret\n")
    await crib.call("bash", command="rm .gitignore; echo z > build/more.txt")
    changes = (await crib.call("list_changes"))["changes"]
    assert [each["file_path"] for each in changes] == [".gitignore"]
    await crib.call("bash", command="echo 'secret.txt' > .gitignore; echo new > secret.txt")
    call = await _last_call(crib)
    await crib.call("undo_change", call=call, dry_run=False)
    assert (crib.root / "secret.txt").read_text() == "secret\n"


async def test_a_large_file_is_told_to_be_lost(crib: Any) -> None:
    with (crib.root / "big.bin").open("wb") as file:
        file.truncate(10_000_000_000)
    await crib.call("bash", command="echo small > big.bin")
    (change,) = (await crib.call("list_changes"))["changes"]
    assert change["not_kept"] == "too large"
    assert "cannot be undone: too large" in await crib.text("list_changes")
    undone = await crib.call("undo_change", change_ids=[change["id"]], dry_run=False)
    assert undone["files"][0]["action"] == "none"
    assert (crib.root / "big.bin").read_text() == "small\n"


async def test_a_write_over_what_is_too_large_to_be_kept_says_so(crib: Any) -> None:
    with (crib.root / "big.bin").open("wb") as file:
        file.truncate(10_000_001)
    told = await crib.text("write_file", file_path="big.bin", content="small\n")
    assert "cannot be undone: what it held is not kept (too large)" in told


async def test_another_user_sees_and_undoes_nothing(open_crib: OpenCrib) -> None:
    async with open_crib() as crib:
        await crib.call("write_file", file_path="a.txt", content="one\n")
        call = await _last_call(crib)
    async with open_crib(identity__user_id="eve") as crib:
        assert (await crib.call("list_changes"))["changes"] == []
        kind, _ = await crib.failure("undo_change", call=call)
        assert kind == "not_found"


async def test_a_rule_about_a_path_holds_for_undoing_too(open_crib: OpenCrib) -> None:
    async with open_crib() as crib:
        for folder in ("conf", "locked"):
            (crib.root / folder).mkdir()
            (crib.root / folder / "a.ini").write_text("token=1\n")
        await crib.call("execute_python_code", code="import os; os.remove('conf/a.ini')")
        await crib.call("execute_python_code", code="import os; os.remove('locked/a.ini')")
    async with open_crib(policy__deny=("read_file(conf/**)", "write_file(locked/**)")) as crib:
        for change in (await crib.call("list_changes"))["changes"]:
            undone = await crib.call("undo_change", change_ids=[change["id"]], dry_run=False)
            assert undone["files"][0]["action"] == "none"
            assert "the rule" in undone["files"][0]["why"]
            assert "token" not in undone["diff"] or "locked" in change["file_path"]
        assert not (crib.root / "conf/a.ini").exists()
        assert not (crib.root / "locked/a.ini").exists()


async def test_a_link_that_took_the_place_is_replaced_and_never_followed(
    open_crib: OpenCrib, tmp_path: Any
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("outside\n")
    async with open_crib() as crib:
        (crib.root / "a.txt").write_text("inside\n")
        (crib.root / "d").mkdir()
        (crib.root / "d/b.txt").write_text("below\n")
        await crib.call("bash", command=f"ln -sf {outside} a.txt; rm -r d; ln -s {tmp_path} d")
        undone = await crib.call("undo_change", call=await _last_call(crib), dry_run=False)
        assert outside.read_text() == "outside\n"
        assert (crib.root / "a.txt").read_text() == "inside\n"
        assert not (crib.root / "a.txt").is_symlink()
        assert not (tmp_path / "b.txt").exists()
        assert {each["file_path"]: each["action"] for each in undone["files"]}[
            "a.txt"
        ] == "put back"


async def test_names_that_are_no_text_and_files_that_became_directories_come_back(
    crib: Any,
) -> None:
    odd = crib.root / os.fsdecode(b"b\xff\n.txt")
    odd.write_bytes(b"\x00\xff")
    (crib.root / "f").write_text("file\n")
    await crib.call("bash", command="rm b*; rm f; mkdir f; echo x > f/x; mkfifo pipe")
    await crib.call("undo_change", call=await _last_call(crib), dry_run=False)
    assert odd.read_bytes() == b"\x00\xff"
    assert (crib.root / "f").read_text() == "file\n"


async def test_what_is_forgotten_is_nowhere_on_the_disk(open_crib: OpenCrib, tmp_path: Any) -> None:
    secret = b"wV9x" * 20
    async with open_crib(undo__keep_mb=10) as crib:
        (crib.root / "a.txt").write_bytes(os.urandom(100) + secret)
        old = (crib.root / "a.txt").read_bytes()
        await crib.call("write_file", file_path="a.txt", content="new\n")
        packed = zlib.compress(old, 1)
        files = [tmp_path / "data" / name for name in ("changes.db", "changes.db-wal")]
        assert any(packed[20:60] in file.read_bytes() for file in files)
        assert (await crib.call("forget", changes=True))["changes"] == 1
        assert (await crib.call("forget", changes=True, dry_run=False))["changes"] == 1
        assert not any(packed[20:60] in file.read_bytes() for file in files if file.exists())
        assert (await crib.call("list_changes"))["changes"] == []


async def test_changes_are_not_kept_where_the_settings_say_so(open_crib: OpenCrib) -> None:
    async with open_crib(undo__enabled=False) as crib:
        await crib.call("write_file", file_path="a.txt", content="new\n")
        await crib.call("bash", command="echo > b.txt")
        assert not (crib.root.parent / "data/changes.db").exists()
        kind, told = await crib.failure("list_changes")
        assert kind == "unavailable"
        assert "undo.enabled" in told


async def test_nothing_is_written_where_its_change_cannot_be_kept(
    crib: Any, full_disk: Callable[[int], AbstractContextManager[None]]
) -> None:
    (crib.root / "a.bin").write_bytes(os.urandom(900_000))
    await crib.call("write_file", file_path="b.txt", content="one\n")
    old = (crib.root / "a.bin").read_bytes()
    with full_disk(700_000):
        kind, told = await crib.failure("write_file", file_path="a.bin", content="new\n")
    assert kind == "unavailable"
    assert "changes.db" in told
    assert (crib.root / "a.bin").read_bytes() == old
    assert len((await crib.call("list_changes"))["changes"]) == 1
