"""Programs are given a secret where the settings name both, and their output does not show it."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from tools.sandbox.processes.models import Level

pytestmark = pytest.mark.boundary

VALUE = "npm_Zq81xyzZq81xyzZq81xyz"
SHOWN = "[secret:npm]"
SEES = "python3 -c \"import os; print(os.environ.get('NPM_TOKEN'))\""


@pytest.fixture
def opened(open_crib: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Opens the product with a secret for a program."""
    monkeypatch.setenv("REGISTRY_TOKEN", VALUE)

    def open_with(*programs: str, **more: Any) -> Any:
        secret = {"env": "REGISTRY_TOKEN", "programs": programs, "variable": "NPM_TOKEN"}
        return open_crib(secrets={"npm": secret}, policy__allow=("bash",), **more)

    return open_with


def files_below(place: Path) -> list[Path]:
    return [each for each in place.rglob("*") if each.is_file()]


def at(crib: Any, level: Level) -> None:
    """Leaves the programs of a crib one level."""
    levels = crib.app.machine.processes.levels
    levels._confinements = {level: levels._confinements[level]}


@pytest.mark.parametrize("level", [Level.BUBBLEWRAP, Level.LANDLOCK])
async def test_the_named_program_has_the_value_and_its_output_does_not(
    opened: Any, level: Level
) -> None:
    async with opened("printenv *") as crib:
        at(crib, level)
        found = await crib.call("bash", command="printenv NPM_TOKEN")
        assert (found["stdout"], found["exit_code"]) == (f"{SHOWN}\n", 0)
        assert found["notes"] == ["It was given the secret npm as NPM_TOKEN."]
        for command in ("printenv NPM_TOKEN; true", "env", "X=1 printenv NPM_TOKEN", SEES):
            found = await crib.call("bash", command=command)
            assert SHOWN not in found["stdout"]
            assert VALUE not in found["stdout"]
            assert found["notes"] == []
        found = await crib.call("bash", command="printenv NPM_TOKEN", env={"A": "b"})
        assert found["stdout"] == ""


async def test_output_in_pieces_and_encoded_does_not_show_it(opened: Any) -> None:
    script = (
        "import os, sys, time, base64\n"
        "value = os.environ['NPM_TOKEN']\n"
        "for part in ['x' * 65530, *value, '\\n', value.encode().hex(), '\\n',\n"
        "             base64.b64encode(b'user:' + value.encode()).decode(), '\\n']:\n"
        "    for stream in (sys.stdout, sys.stderr):\n"
        "        stream.write(part); stream.flush()\n"
    )
    async with opened("python3 pieces.py", limits__result_tokens=0) as crib:
        (crib.root / "pieces.py").write_text(script)
        found = await crib.call("bash", command="python3 pieces.py")
        for stream in (found["stdout"], found["stderr"]):
            assert stream.count(SHOWN) == 3
            assert VALUE[4:10] not in stream


async def test_a_job_in_the_background_does_not_show_it_across_readings(opened: Any) -> None:
    script = (
        "import os, time, pathlib\n"
        "value = os.environ['NPM_TOKEN']\n"
        "print('begun ' + value[:9], end='', flush=True)\n"
        "while not pathlib.Path('go').exists(): time.sleep(0.01)\n"
        "print(value[9:] + ' done', flush=True)\n"
    )
    async with opened("python3 halves.py") as crib:
        (crib.root / "halves.py").write_text(script)
        job = await crib.call("bash", command="python3 halves.py", run_in_background=True)
        read: list[str] = []
        with anyio.fail_after(60):
            while "done" not in "".join(read):
                part = await crib.call("bash_output", job_id=job["job_id"])
                read.append(part["output"])
                if "begun" in "".join(read):
                    (crib.root / "go").touch()
        assert "".join(read).strip() == f"begun {SHOWN} done"


@pytest.mark.parametrize("level", [Level.BUBBLEWRAP, Level.LANDLOCK])
async def test_no_other_program_reads_it_from_one_that_runs(opened: Any, level: Level) -> None:
    async with opened("python3 waits.py") as crib:
        at(crib, level)
        (crib.root / "waits.py").write_text("import time; print('up', flush=True); time.sleep(60)")
        job = await crib.call("bash", command="python3 waits.py", run_in_background=True)
        with anyio.fail_after(30):
            while (
                "up"
                not in (await crib.call("bash_output", job_id=job["job_id"], since=0))["output"]
            ):
                await anyio.lowlevel.checkpoint()
        found = await crib.call(
            "bash",
            command="cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | tr '\\0' '\\n' > seen; echo",
        )
        assert found["exit_code"] == 0
        assert VALUE.encode() not in (crib.root / "seen").read_bytes()
        await crib.call("bash_kill", job_id=job["job_id"])


async def test_an_unconfined_program_is_not_given_it(opened: Any) -> None:
    async with opened("printenv *", system__sandbox="off") as crib:
        found = await crib.call("bash", command="printenv NPM_TOKEN")
        assert found["stdout"] == ""
        assert "not given the secret npm" in found["notes"][0]


async def test_a_program_in_the_root_does_not_pass_for_the_named_one(
    opened: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "root" / "bin"
    folder.mkdir(parents=True)
    (folder / "printenv").write_text("#!/bin/sh\necho mine\n")
    (folder / "printenv").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    async with opened("printenv *") as crib:
        assert (await crib.call("bash", command="printenv; true"))["stdout"] == "mine\n"
        found = await crib.call("bash", command="printenv NPM_TOKEN")
        assert found["stdout"] == f"{SHOWN}\n"


async def test_what_a_program_kept_of_it_is_not_shown_afterwards(
    opened: Any, tmp_path: Path
) -> None:
    script = "import os; open('kept', 'w').write(os.environ['NPM_TOKEN'])"
    async with opened("python3 keeps.py") as crib:
        (crib.root / "keeps.py").write_text(script)
        await crib.call("bash", command="python3 keeps.py")
        assert (crib.root / "kept").read_text() == VALUE
        assert SHOWN in await crib.text("read_file", file_path="kept")
        assert (await crib.call("bash", command="cat kept"))["stdout"] == SHOWN
    kept = [each.read_bytes() for each in files_below(tmp_path / "data")]
    assert VALUE.encode() not in b"".join(kept)


async def test_a_value_that_is_missing_ends_the_call_with_what_to_set(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened("printenv *") as crib:
        monkeypatch.delenv("REGISTRY_TOKEN")
        kind, text = await crib.failure("bash", command="printenv NPM_TOKEN")
        assert kind == "unavailable"
        assert "REGISTRY_TOKEN" in text
