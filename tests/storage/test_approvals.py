"""Questions to a person, their answers and what is allowed for a while."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from storage.approvals import ApprovalState, ApprovalStore, Asked
from storage.database import Database
from storage.models import Identity

ASKED = Asked(
    identity=Identity("ann"),
    root="/work",
    digest="d1",
    tool="bash",
    client="claude",
    shown="command: make test",
    reason="Programs ask.",
    rule="bash(make test)",
)
OTHERS = {
    "user": replace(ASKED, identity=Identity("bob")),
    "device": replace(ASKED, identity=Identity("ann", "phone")),
    "agent": replace(ASKED, identity=Identity("ann", "", "coder")),
    "root": replace(ASKED, root="/elsewhere"),
    "call": replace(ASKED, digest="d2"),
}


@pytest.fixture
def store(database: Database) -> ApprovalStore:
    return ApprovalStore(database)


def approved(store: ApprovalStore, asked: Asked = ASKED, seconds: float = 600) -> str:
    ticket = store.open(asked, ApprovalState.PENDING, seconds)
    assert store.answer(ticket, approved=True, by="test")
    return ticket


def test_an_approval_is_taken_by_one_call_only(store: ApprovalStore) -> None:
    ticket = approved(store)
    taken = store.claim(ASKED)
    assert taken is not None
    assert (taken.ticket, taken.decided_by) == (ticket, "test")
    assert store.claim(ASKED) is None
    store.close(ticket, ApprovalState.USED)
    assert store.claim(ASKED) is None


@pytest.mark.parametrize("other", OTHERS)
def test_an_approval_is_for_no_other_call(store: ApprovalStore, other: str) -> None:
    approved(store)
    assert store.claim(OTHERS[other]) is None
    assert store.claim(ASKED) is not None


def test_of_many_calls_at_once_one_gets_the_approval(store: ApprovalStore) -> None:
    approved(store)
    with ThreadPoolExecutor(16) as pool:
        taken = list(pool.map(store.claim, [ASKED] * 64))
    assert sum(each is not None for each in taken) == 1


def test_an_expired_approval_counts_for_nothing(store: ApprovalStore) -> None:
    ticket = store.open(ASKED, ApprovalState.PENDING, -1)
    assert not store.answer(ticket, approved=True, by="test")
    assert store.claim(ASKED) is None
    assert store.state(ticket) is None
    assert store.waiting() == []


def test_what_was_approved_after_it_expired_is_not_taken(
    store: ApprovalStore, database: Database
) -> None:
    approved(store)
    with database.write() as connection:
        connection.execute("UPDATE approvals SET expires = 1")
    assert store.claim(ASKED) is None


def test_a_kept_approval_is_for_the_call_that_names_it(store: ApprovalStore) -> None:
    ticket = approved(store)
    assert store.claim(ASKED)
    store.close(ticket, ApprovalState.KEPT)
    assert store.claim(ASKED) is None
    assert store.claim(ASKED, ["0" * 32]) is None
    assert store.claim(OTHERS["call"], [ticket]) is None
    again = store.claim(ASKED, [ticket])
    assert again is not None
    assert again.ticket == ticket


def test_a_used_approval_keeps_nothing_of_what_was_shown(store: ApprovalStore) -> None:
    ticket = approved(store)
    store.claim(ASKED)
    store.close(ticket, ApprovalState.USED)
    assert [each.asked.shown for each in store.find(ticket)] == [""]


def test_a_question_is_answered_once(store: ApprovalStore) -> None:
    ticket = store.open(ASKED, ApprovalState.PENDING, 600)
    assert store.answer(ticket, approved=False, by="test")
    assert not store.answer(ticket, approved=True, by="test")
    assert store.claim(ASKED) is None


def test_a_denial_is_told_once(store: ApprovalStore) -> None:
    store.answer(store.open(ASKED, ApprovalState.PENDING, 600), approved=False, by="test")
    assert store.denial(OTHERS["call"]) is None
    assert store.denial(ASKED) is not None
    assert store.denial(ASKED) is None


def test_the_same_question_waits_once_on_the_command_line(store: ApprovalStore) -> None:
    first = store.open(ASKED, ApprovalState.PENDING, 600)
    assert store.open(ASKED, ApprovalState.PENDING, 600) == first
    assert store.open(OTHERS["call"], ApprovalState.PENDING, 600) != first
    assert len(store.waiting()) == 2


def test_a_question_that_the_client_left_open_turns_to_the_command_line(
    store: ApprovalStore,
) -> None:
    first = store.open(ASKED, ApprovalState.ASKED, 600)
    assert store.among(ASKED, [first]) == first
    assert store.open(ASKED, ApprovalState.PENDING, 600) == first
    assert store.state(first) is ApprovalState.PENDING
    assert store.among(ASKED, [first]) is None


def test_a_ticket_of_another_call_is_not_among_those_of_this_one(store: ApprovalStore) -> None:
    for other in OTHERS.values():
        ticket = store.open(other, ApprovalState.ASKED, 600)
        assert store.among(ASKED, [ticket]) is None


def test_a_grant_holds_for_its_identity_and_client_until_it_expires(
    store: ApprovalStore, database: Database
) -> None:
    store.grant(ASKED, by="test", seconds=600)
    held = store.grants(Identity("ann"), "/work", "claude")
    assert [each.rule for each in held] == ["bash(make test)"]
    assert store.grants(Identity("bob"), "/work", "claude") == []
    assert store.grants(Identity("ann", "phone"), "/work", "claude") == []
    assert store.grants(Identity("ann"), "/", "claude") == []
    assert store.grants(Identity("ann"), "/work", "codex") == []
    with database.write() as connection:
        connection.execute("UPDATE grants SET expires = 1")
    assert store.grants() == []


def test_a_revoked_grant_is_gone(store: ApprovalStore) -> None:
    store.grant(ASKED, by="test", seconds=600)
    (grant,) = store.grants()
    assert store.revoke(grant.grant_id[:8]) == 1
    assert store.grants() == []


def test_what_was_allowed_of_a_tool_is_forgotten_with_it(store: ApprovalStore) -> None:
    theirs = replace(ASKED, tool="toy__add", rule="toy__add", digest="d3")
    for asked in (ASKED, theirs):
        approved(store, asked)
        store.grant(asked, by="test", seconds=600)
    store.forget("toy__add")
    assert store.claim(theirs) is None
    assert [grant.rule for grant in store.grants()] == ["bash(make test)"]
    assert store.claim(ASKED) is not None


def test_a_watcher_is_there_until_it_leaves_or_is_not_seen_again(
    store: ApprovalStore, database: Database
) -> None:
    assert not store.is_watched()
    store.watch("w")
    assert store.is_watched()
    store.leave("w")
    assert not store.is_watched()
    store.watch("w")
    with database.write() as connection:
        connection.execute("UPDATE approval_watchers SET seen = seen - 60")
    assert not store.is_watched()
