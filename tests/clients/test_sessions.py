"""Sessions of clients: a question is answered or declined, and a call is interrupted."""

import os
import time

import pytest

from tests.clients.programs import PROGRAMS, Home
from tests.clients.sessions import session
from tests.clients.wires import Call

pytestmark = pytest.mark.slow

WRITE = Call("write_file", {"file_path": "new.txt", "content": "a spare key\n"})
ASKING = '[policy]\nask = ["write_file"]\n'
SETTINGS = ".config/toolcrib/config.toml"
ASKED = ("claude-code", "codex")
"""The clients that show questions while something else drives them."""

LASTING_SECONDS = 100


@pytest.mark.parametrize("action", ["accept", "decline"])
@pytest.mark.parametrize("home", ASKED, indirect=True)
def test_a_call_runs_if_the_user_accepts_it(home: Home, action: str) -> None:
    home.add_server()
    home.write(SETTINGS, ASKING)
    with home.model([WRITE, "Done."]) as model, session(home, model, action) as opened:
        opened.prompt("Write it down.")
        opened.end_of_turn()
    (question,) = opened.questions
    assert "a spare key" in question["message"]
    assert (home.project / "new.txt").exists() is (action == "accept")


@pytest.mark.parametrize("home", [each for each in PROGRAMS if each not in ASKED], indirect=True)
def test_a_model_learns_how_a_user_who_cannot_be_asked_approves(home: Home) -> None:
    home.add_server()
    home.write(SETTINGS, ASKING)
    with home.model([WRITE, "Done."]) as model, session(home, model) as opened:
        opened.prompt("Write it down.")
        opened.end_of_turn()
    (result,) = model.asked()[-1].results
    assert "approval_required: " in result
    assert "toolcrib approvals approve " in result
    assert not (home.project / "new.txt").exists()


# Gemini CLI 0.61 ends the turn, and lets the call run to its end.
@pytest.mark.parametrize("home", [each for each in PROGRAMS if each != "gemini"], indirect=True)
def test_an_interrupted_call_ends_its_program(home: Home) -> None:
    home.add_server()
    pipe = home.project / "pipe"
    os.mkfifo(pipe)
    command = f"exec 3> pipe; echo begun >&3; sleep {LASTING_SECONDS}"
    with (
        home.model([Call("bash", {"command": command}), "Done."]) as model,
        session(home, model) as opened,
    ):
        opened.prompt("Wait.")
        with pipe.open() as written:
            assert written.readline() == "begun\n"
            since = time.monotonic()
            opened.cancel()
            written.read()  # until the program, which has it open, ends
            assert time.monotonic() - since < LASTING_SECONDS / 2
        opened.end_of_turn()
    assert model.asked()[-1].results == []
