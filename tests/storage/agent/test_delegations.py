"""Delegations: what a token stands for, and ceilings that hold whoever begins one."""

import subprocess
import sys
import time
from dataclasses import replace

import pytest

from storage.agent.delegations import Ceilings, Delegation, Delegations, NewDelegation
from storage.database import Database
from storage.errors import CeilingReachedError
from storage.models import Identity

ANN = Identity(user_id="ann", device_id="desk")
MOST = Ceilings(depth=2, count=3, seconds=100, cost=5)
NEW = NewDelegation(
    agent="small",
    identity=ANN,
    session_id="home",
    tools=(("all", (), ("bash",)), ("agent small", ("read_file",), ())),
    seconds=20,
)


@pytest.fixture
def ledger(database: Database) -> Delegations:
    return Delegations(database)


def of(parent: Delegation) -> NewDelegation:
    """What the agent of a delegation asks for."""
    return replace(NEW, session_id=parent.session_id)


def test_a_token_stands_for_what_was_begun_until_that_ends(ledger: Delegations) -> None:
    begun, token = ledger.begin(NEW, MOST)
    found = ledger.of_token(token)
    assert found == begun
    assert (found.depth, found.root, found.identity, found.tools) == (1, begun.id, ANN, NEW.tools)
    ledger.finish(begun.id, cost=1, outcome="answered")
    assert ledger.of_token(token) is None


def test_no_id_or_session_of_a_delegation_passes_for_its_token(ledger: Delegations) -> None:
    begun, token = ledger.begin(NEW, MOST)
    for guess in (begun.id, begun.session_id, begun.root, token[:-1], token + "x", "", "\udcff"):
        assert ledger.of_token(guess) is None


def test_a_token_counts_for_nothing_after_its_time(ledger: Delegations) -> None:
    begun, token = ledger.begin(replace(NEW, seconds=1), MOST)
    while time.time() < begun.ends:
        assert ledger.of_token(token) in {begun, None}
    assert ledger.of_token(token) is None
    with pytest.raises(CeilingReachedError, match="has ended"):
        ledger.begin(of(begun), MOST)


def test_no_agent_delegates_deeper_than_is_allowed(ledger: Delegations) -> None:
    first, _ = ledger.begin(NEW, MOST)
    second, _ = ledger.begin(of(first), MOST)
    assert (second.depth, second.root, second.parent) == (2, first.id, first.id)
    assert second.ends <= first.ends
    with pytest.raises(CeilingReachedError, match="3 deep; 2 are allowed"):
        ledger.begin(of(second), MOST)


def test_the_delegations_of_one_root_are_counted_together(ledger: Delegations) -> None:
    root, _ = ledger.begin(NEW, MOST)
    ledger.begin(of(root), MOST)
    ledger.begin(of(root), MOST)
    with pytest.raises(CeilingReachedError, match="already has 3 delegations"):
        ledger.begin(of(root), MOST)
    ledger.begin(NEW, MOST)  # a root of its own


def test_time_is_set_aside_for_what_runs_and_given_back(ledger: Delegations) -> None:
    most = replace(MOST, seconds=30)
    root, _ = ledger.begin(NEW, most)
    inner, _ = ledger.begin(of(root), most)
    assert inner.ends - inner.began == pytest.approx(10, abs=0.01)
    with pytest.raises(CeilingReachedError, match="30 seconds"):
        ledger.begin(of(root), most)
    ledger.finish(inner.id, cost=0, outcome="answered")
    ledger.begin(of(root), most)


def test_money_is_set_aside_for_what_runs_and_counted_when_it_is_told(ledger: Delegations) -> None:
    root, _ = ledger.begin(replace(NEW, cost=4), MOST)
    inner, _ = ledger.begin(replace(of(root), cost=4), MOST)
    assert inner.reserved_cost == 1
    with pytest.raises(CeilingReachedError, match="5 dollars"):
        ledger.begin(of(root), MOST)
    ledger.finish(inner.id, cost=0.25, outcome="answered")
    last, _ = ledger.begin(replace(of(root), cost=4), MOST)
    assert last.reserved_cost == 0.75


_BEGIN = """
import sys
from pathlib import Path
from storage.agent.delegations import Ceilings, Delegations, NewDelegation
from storage.database import Database
from storage.errors import CeilingReachedError
from storage.models import Identity
database = Database(Path(sys.argv[1]))
ann = Identity("ann")
new = NewDelegation(agent="a", identity=ann, session_id=sys.argv[2], tools=(), seconds=5)
sys.stdin.readline()
for _ in range(10):
    try:
        Delegations(database).begin(new, Ceilings(count=8, seconds=1e6))
        print("begun", flush=True)
    except CeilingReachedError:
        print("refused", flush=True)
"""


def test_ceilings_hold_across_processes_that_begin_at_once(
    ledger: Delegations, database: Database
) -> None:
    root, _ = ledger.begin(NEW, Ceilings(seconds=1e6))
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _BEGIN, str(database.path), root.session_id],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    told = [process.communicate("go\n")[0].split() for process in processes]
    assert sum(each.count("begun") for each in told) == 7
    assert sum(map(len, told)) == 20
    assert len(ledger.of_root(root.id)) == 8
