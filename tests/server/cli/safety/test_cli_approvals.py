"""Questions of agents, answered at a real terminal."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import chop_cells

from storage.approvals import ApprovalState, ApprovalStore, Asked, ProgramOffer
from storage.database import Database
from storage.models import Identity
from tests.server.cli.conftest import Command, terminal

pytestmark = pytest.mark.slow


ASKED = Asked(
    identity=Identity("ann"),
    root="/work",
    digest="d1",
    tool="bash",
    client="claude\x1b[2J",
    shown="command: make \u202etset",
    reason="Programs ask.",
    rule="bash(make test)",
)


@pytest.fixture
def store(work: Path) -> Iterator[ApprovalStore]:
    database = Database(Path(os.environ["TOOLCRIB_DATA_DIR"]) / "toolcrib.db")
    yield ApprovalStore(database)
    database.close()


def test_without_a_terminal_nothing_is_approved(cli: Command, store: ApprovalStore) -> None:
    ticket = store.open(ASKED, ApprovalState.PENDING, 600)
    ended = cli("approvals", "approve", ticket)
    assert ended.code == 1
    assert "requires an interactive terminal" in ended.err
    assert store.state(ticket) is ApprovalState.PENDING


def test_a_question_is_approved_at_a_terminal(store: ApprovalStore) -> None:
    ticket = store.open(ASKED, ApprovalState.PENDING, 600)
    with terminal("approvals", "approve", ticket[:6]) as screen:
        screen.expect("[y/N]")
        screen.type("y\n")
        screen.expect("approved, for one call")
    taken = store.claim(ASKED)
    assert taken is not None
    assert taken.decided_by == "command line"
    assert store.grants() == []


def test_calls_like_it_are_approved_for_a_while(store: ApprovalStore) -> None:
    ticket = store.open(ASKED, ApprovalState.PENDING, 600)
    with terminal("approvals", "approve", ticket, "--for-a-while") as screen:
        screen.expect("similar calls: bash(make test)")
        screen.expect("[y/N]")
        screen.type("y\n")
        screen.expect("bash(make test) for 60 minutes")
    held = store.grants(Identity("ann"), "/work", ASKED.client)
    assert [each.rule for each in held] == ["bash(make test)"]


OFFERED = replace(ASKED, offers=(("bash(make test)", "bash(ls)"), ("bash(make *)",)))


def test_a_call_is_always_approved_by_a_rule_in_the_settings(
    store: ApprovalStore, work: Path
) -> None:
    config = work / "settings.toml"
    config.write_text("# mine\n")
    ticket = store.open(OFFERED, ApprovalState.PENDING, 600)
    with terminal("approvals", "approve", ticket, "--always", "--config", str(config)) as screen:
        screen.expect("always (a): bash(make test) and bash(ls)")
        screen.expect("Always approve what (a) allows? [y/N]")
        screen.type("y\n")
        screen.expect("from now on, in ")
        assert screen.process.wait() == 0
    assert config.read_text() == '# mine\n\n[policy]\nallow = ["bash(make test)", "bash(ls)"]\n'
    assert store.state(ticket) is ApprovalState.APPROVED
    assert store.grants() == []


def test_the_open_list_takes_either_rule(store: ApprovalStore, work: Path) -> None:
    config = work / "settings.toml"
    config.write_text("")
    prompt = ": [y]es once, similar calls for a [w]hile, [a]lways, [b] always, [n]o, [s]kip [s]: "
    with terminal("approvals", "--config", str(config)) as screen:
        store.open(OFFERED, ApprovalState.PENDING, 600)
        screen.expect("always (b): bash(make *)")
        screen.expect(prompt)
        screen.type("b\n")
        screen.expect("approved, and bash(make *) from now on")
        config.write_text("[policy")
        broken = store.open(replace(OFFERED, digest="d2"), ApprovalState.PENDING, 600)
        screen.expect(f"{broken[:8]} bash{prompt}")
        screen.type("a\n")
        screen.expect("approved, for one call only: ")
    assert config.read_text() == "[policy"


OF_PROGRAM = ProgramOffer("1", "run_code", 17, "publish(a.txt)", "publish")


@pytest.mark.parametrize(
    ("letter", "told", "state", "said"),
    [
        ("p", "approved, for this program", ApprovalState.APPROVED, "for_program"),
        ("t", "approved, for this program", ApprovalState.APPROVED, "for_program_wider"),
        ("y", "approved, for one call", ApprovalState.APPROVED, ""),
        ("d", "denied, to the rest of the program too", ApprovalState.DENIED, "no_more"),
    ],
)
def test_the_open_list_takes_an_answer_for_the_rest_of_a_program(
    letter: str, told: str, state: ApprovalState, said: str, store: ApprovalStore
) -> None:
    asked = replace(ASKED, rule="", program=OF_PROGRAM)
    ticket = store.open(asked, ApprovalState.PENDING, 600)
    with terminal("approvals") as screen:
        screen.expect("called by run_code, which may make 17 more calls")
        screen.expect("these calls (p): publish(a.txt), 17 more at most")
        screen.expect("the tool (t): publish, 17 more at most")
        screen.expect("[s]:")
        screen.type(f"{letter}\n")
        screen.expect(told)
    (found,) = store.find(ticket)
    assert (found.state, found.said) == (state, said)
    assert store.grants() == []


def test_a_program_that_a_person_runs_asks_them_once_for_a_loop(work: Path) -> None:
    config = work / "settings.toml"
    config.write_text('[policy]\nask = ["write_file"]\n')
    code = "for n in range(3):\n    await tools.write_file('a.txt', str(n))"
    with terminal("call", "run_code", f"code={code}", "--config", str(config)) as screen:
        screen.expect("2: Allow write_file(./a.txt) in this run, 99 more times at most")
        screen.expect("Your answer (1 to 4): ")
        screen.type("2\n")
        screen.expect("[calls: 3 write_file]")
    assert (work / "a.txt").read_text() == "2"


def test_no_rule_is_written_where_none_is_offered_or_would_count(
    cli: Command, store: ApprovalStore, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = work / "settings.toml"
    config.write_text("")
    plain = store.open(ASKED, ApprovalState.PENDING, 600)
    with terminal("approvals", "approve", plain, "--always", "--config", str(config)) as screen:
        screen.expect("approve it without --always")
        assert screen.process.wait() == 1
    monkeypatch.setenv("TOOLCRIB_POLICY__ALLOW", "bash(ls)")
    offered = store.open(replace(OFFERED, digest="d2"), ApprovalState.PENDING, 600)
    with terminal("approvals", "approve", offered, "--always", "--config", str(config)) as screen:
        screen.expect("approve it without --always")
        assert screen.process.wait() == 1
    assert cli("approvals", "approve", offered, "--always", "--config", str(config)).code == 1
    assert store.state(offered) is ApprovalState.PENDING
    assert config.read_text() == ""


def test_what_is_approved_is_shown_first_and_only_a_yes_approves_it(store: ApprovalStore) -> None:
    ticket = store.open(ASKED, ApprovalState.PENDING, 600)
    with terminal("approvals", "approve", ticket) as screen:
        screen.expect("command: make <U+202E>tset")
        screen.expect("[y/N]")
        screen.type("\n")
        assert screen.process.wait() == 1
    assert store.state(ticket) is ApprovalState.PENDING


def test_what_was_typed_before_a_question_is_shown_is_no_answer_to_it(store: ApprovalStore) -> None:
    with terminal("approvals") as screen:
        screen.expect("Questions from agents appear here")
        screen.type("y\n")
        screen.expect("y\r\n")  # the terminal has it
        ticket = store.open(ASKED, ApprovalState.PENDING, 600)
        screen.expect("[s]kip [s]: ")
        screen.type("n\n")
        screen.expect("denied")
    assert store.state(ticket) is ApprovalState.DENIED


def test_the_open_list_goes_on_after_a_question_that_was_answered_elsewhere(
    store: ApprovalStore,
) -> None:
    first = store.open(ASKED, ApprovalState.PENDING, 600)
    with terminal("approvals") as screen:
        screen.expect("[s]kip [s]: ")
        store.answer(first, approved=False, by="client")
        screen.type("y\n")
        screen.expect("already answered")
        second = store.open(replace(ASKED, digest="d2"), ApprovalState.PENDING, 600)
        screen.expect(f"{second[:8]} bash: [y]es")
    assert store.state(first) is ApprovalState.DENIED


FORGED = "12345678  claude (ann) wants read_file"


@pytest.mark.parametrize("blank", ["-", "\u3000"])
def test_no_row_of_a_long_line_passes_for_another_question(
    store: ApprovalStore, blank: str
) -> None:
    lines = [blank * count + FORGED for count in range(80)]  # at each place of a row of 80 columns
    asked = replace(ASKED, shown="\n".join(lines), rule="bash(" + blank * 58 + FORGED + ")")
    ticket = store.open(asked, ApprovalState.PENDING, 600)
    with terminal("approvals", "show", ticket) as screen:
        while screen.read():
            pass
    assert "similar calls" in screen.seen
    assert [row for row in rows_of(screen.seen) if row.startswith("12345678")] == []


def test_no_row_of_the_list_passes_for_another_question(store: ApprovalStore) -> None:
    for count in range(70):
        asked = replace(ASKED, digest=f"d{count}", shown="-" * count + FORGED)
        ticket = store.open(asked, ApprovalState.PENDING, 600)
    with terminal("approvals", "list") as screen:
        while screen.read():
            pass
    assert ticket[:8] in screen.seen
    assert [row for row in rows_of(screen.seen) if row.startswith("12345678")] == []


def rows_of(shown: str) -> list[str]:
    """What a terminal of 80 columns makes of it."""
    return [row for line in shown.splitlines() for row in chop_cells(line, 80)]


def test_the_open_list_shows_a_question_that_comes_and_takes_the_answer(
    store: ApprovalStore,
) -> None:
    with terminal("approvals") as screen:
        screen.expect("Questions from agents appear here")
        while not store.is_watched():  # another process tells no event
            assert screen.process.poll() is None
        ticket = store.open(ASKED, ApprovalState.PENDING, 600)
        screen.expect("[s]kip")
        screen.type("w\n")
        screen.expect("bash(make test) for 60 minutes")
        second = store.open(replace(ASKED, digest="d2", rule=""), ApprovalState.PENDING, 600)
        screen.expect(f"{second[:8]} bash: [y]es once, [n]o, [s]kip [s]: ")
        screen.type("w\nn\n")
        screen.expect("denied")
    assert store.state(ticket) is ApprovalState.APPROVED
    assert store.state(second) is ApprovalState.DENIED
    assert "\x1b[2J" not in screen.seen
    assert "\u202e" not in screen.seen
    assert "<U+202E>" in screen.seen


def test_the_list_tells_what_is_asked_and_what_is_allowed(
    cli: Command, store: ApprovalStore
) -> None:
    assert (
        cli("approvals", "list").out
        == "No questions are waiting, and nothing is allowed for a while.\n"
    )
    ticket = store.open(ASKED, ApprovalState.PENDING, 600)
    store.grant(ASKED, by="test", seconds=600)
    shown = cli("approvals").out
    assert f"{ticket[:8]}  bash  command: make" in shown
    assert "allowed: bash(make test)" in shown
    assert "make <U+202E>tset" in cli("approvals", "show", ticket[:8]).out


def test_a_question_can_be_denied_and_a_grant_revoked_without_a_terminal(
    cli: Command, store: ApprovalStore
) -> None:
    ticket = store.open(ASKED, ApprovalState.PENDING, 600)
    assert cli("approvals", "deny", ticket[:8]).out == "denied\n"
    assert store.state(ticket) is ApprovalState.DENIED
    store.grant(ASKED, by="test", seconds=600)
    (grant,) = store.grants()
    assert cli("approvals", "revoke", grant.grant_id[:8]).out == "1 revoked\n"
    assert store.grants() == []


@pytest.mark.parametrize("action", ["show", "deny"])
@pytest.mark.parametrize("name", ["", "zz", "0" * 32])
def test_a_name_of_no_question_is_told(
    cli: Command, store: ApprovalStore, action: str, name: str
) -> None:
    store.open(ASKED, ApprovalState.PENDING, 600)
    ended = cli("approvals", action, *filter(None, [name]))
    assert ended.code == 1
    assert "toolcrib approvals list" in ended.err


def test_an_answered_question_is_not_answered_again(cli: Command, store: ApprovalStore) -> None:
    ticket = store.open(ASKED, ApprovalState.PENDING, 600)
    cli("approvals", "deny", ticket)
    ended = cli("approvals", "deny", ticket)
    assert ended.code == 1
    assert "already answered" in ended.err
