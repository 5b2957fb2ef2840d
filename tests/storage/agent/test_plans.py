import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from storage.agent.plans import Plan, Plans
from storage.agent.steps import MOVES, Draft, Step, StepStatus, moved, replanned, states_of
from storage.database import Database
from storage.errors import (
    InvalidSourceError,
    PlanConflictError,
    PlanNotFoundError,
    StorageUnavailableError,
)
from storage.memory.entries import Entries
from storage.models import ContextType, Identity, NewContext, NewEntry

ANN = Identity("ann")
OTHERS = (Identity("bob"), Identity("Ann"), Identity("ann", "phone"), Identity("ann", "", "coder"))
IDS = ("a", "b", "c", "d", "e")

ids = st.sampled_from(IDS)
blockers = st.lists(ids, max_size=2, unique=True).map(tuple)

WORKER = """
import sys
from pathlib import Path
from storage.agent.plans import Plans
from storage.agent.steps import moved
from storage.database import Database
from storage.errors import PlanConflictError
from storage.models import Identity

path, plan_id, session, status = sys.argv[1:]
plans = Plans(Identity("ann"), Database(Path(path)))
for step in plans.get(session, plan_id).steps:
    try:
        plans.change(session, plan_id, lambda steps: moved(steps, step.id, status, None, session))
    except PlanConflictError:
        continue
    print(step.id, flush=True)
"""


def drafts(*steps: str) -> list[Draft]:
    """Steps as `id` or `id < blocker blocker`."""
    parted = (step.partition(" < ") for step in steps)
    return [Draft(id=name, title=name, blocked_by=tuple(by.split())) for name, _, by in parted]


def become(step: str, status: StepStatus, session: str = "s") -> Any:
    return partial(moved, step_id=step, status=status, note=None, session=session)


def told_of(plan: Plan) -> NewContext:
    return NewContext(
        context_type=ContextType.EVENT, title=plan.goal, text=plan.message or plan.goal
    )


def statuses(steps: Sequence[Step]) -> dict[str, str]:
    return {step.id: step.status for step in steps}


class PlanMachine(RuleBasedStateMachine):
    """A stored plan beside a model: dictionaries, and rules that are written out once more."""

    def __init__(self, plans: Plans) -> None:
        super().__init__()
        self.status = dict.fromkeys("abcd", "pending")
        self.after: dict[str, tuple[str, ...]] = {"a": (), "b": ("a",), "c": ("b",), "d": ("a",)}
        self.plans = plans
        self.plan_id = plans.create("s", "There", drafts("a", "b < a", "c < b", "d < a")).id

    @rule(step=ids, status=st.sampled_from(list(MOVES)))
    def move(self, step: str, status: StepStatus) -> None:
        was = self.status.get(step)
        blocked = self.open_among(self.after.get(step, ()))
        legal = was == status or (
            was in {"pending", "in_progress", "failed"}
            and not (was == "failed" and status == "completed")
            and not (blocked and status in {"in_progress", "completed", "failed"})
        )
        if self.changes(become(step, status), legal=legal):
            self.status[step] = status

    @rule(step=ids, after=blockers)
    def draft(self, step: str, after: tuple[str, ...]) -> None:
        known = {*self.status, step}
        wanted = {**self.after, step: after}
        waits = self.open_among(after)
        legal = (
            self.status.get(step) not in {"completed", "skipped"}
            and known.issuperset(after)
            and step not in reached(wanted, after)
            and not (self.status.get(step) == "in_progress" and waits)
        )
        change = partial(replanned, drafts=[Draft(id=step, title=f"Do {step}", blocked_by=after)])
        if self.changes(change, legal=legal):
            self.after = wanted
            if self.status.get(step) != "in_progress":
                self.status[step] = "pending"

    @rule(step=ids)
    def remove(self, step: str) -> None:
        legal = self.status.get(step) in {"pending", "in_progress", "failed"} and not any(
            step in after for after in self.after.values()
        )
        if self.changes(partial(replanned, drafts=(), removed=[step]), legal=legal):
            del self.status[step], self.after[step]

    @invariant()
    def it_is_stored_as_the_model_has_it(self) -> None:
        plan = self.plans.get("other", self.plan_id)
        assert statuses(plan.steps) == self.status
        assert list(self.status) == [step.id for step in plan.steps]
        assert {step.id: step.blocked_by for step in plan.steps} == self.after

    @invariant()
    def what_may_begin_is_what_the_model_lets_begin(self) -> None:
        states = states_of(self.plans.get("s", self.plan_id).steps)
        assert list(states) == list(self.status)
        open_after = {step: self.open_among(after) for step, after in self.after.items()}
        for step, status in self.status.items():
            behind = {self.status[each] for each in reached(open_after, open_after[step])}
            waits = "stopped" if "failed" in behind else "waiting" if behind else "ready"
            assert states[step] == (waits if status == "pending" else status)

    def open_among(self, steps: Sequence[str]) -> tuple[str, ...]:
        return tuple(
            each for each in steps if self.status.get(each) not in {"completed", "skipped"}
        )

    def changes(self, change: Any, *, legal: bool) -> bool:
        try:
            self.plans.change("s", self.plan_id, change)
        except (PlanConflictError, InvalidSourceError):
            assert not legal
            return False
        assert legal
        return True


def reached(after: Mapping[str, tuple[str, ...]], steps: Sequence[str]) -> set[str]:
    """Some steps and all that they wait for, directly or not."""
    found: set[str] = set()
    left = list(steps)
    while left:
        step = left.pop()
        if step not in found:
            found.add(step)
            left += after.get(step, ())
    return found


def test_a_plan_goes_on_as_its_model_does(database: Database) -> None:
    machine = partial(PlanMachine, Plans(ANN, database))
    run_state_machine_as_test(
        machine,  # type: ignore[arg-type]  # it takes whatever makes one
        settings=settings(stateful_step_count=25),
    )


def test_what_has_failed_stops_all_that_waits_for_it_until_it_is_skipped_or_changed() -> None:
    steps = replanned((), drafts("a", "b < a", "c < b", "d"))
    steps = moved(steps, "a", "failed", "no key", "s")
    assert states_of(steps) == {"a": "failed", "b": "stopped", "c": "stopped", "d": "ready"}
    changed = replanned(steps, [Draft(id="a", title="Ask for a key")])
    assert states_of(changed) == {"a": "ready", "b": "waiting", "c": "waiting", "d": "ready"}
    skipped = moved(steps, "b", "skipped", None, "s")
    assert states_of(skipped) == {"a": "failed", "b": "skipped", "c": "ready", "d": "ready"}


def test_a_plan_is_the_sessions_that_made_it_and_of_the_one_that_goes_on_with_it(
    database: Database,
) -> None:
    plans = Plans(ANN, database)
    first = plans.create("monday", "Sow", drafts("dig", "sow < dig"))
    second = plans.create("monday", "Reap", drafts("mow"))
    assert plans.get("monday").id == second.id
    with pytest.raises(PlanNotFoundError, match="This session has no open plan; 2 others open") as (
        caught
    ):
        plans.get("tuesday")
    assert caught.value.candidates == (f"{second.id} (Reap)", f"{first.id} (Sow)")
    plans.change("tuesday", first.id, become("dig", "completed", "tuesday"))
    assert plans.get("tuesday") == plans.get("monday", first.id)
    plans.close("tuesday", second.id, "Sold the field", "", tell=told_of, abandon=True)
    assert plans.get("monday").id == first.id
    assert [(each.id, each.over, each.total) for each in plans.listed(10)] == [(first.id, 1, 2)]
    assert [each.status for each in plans.listed(10, closed=True)] == ["abandoned", "open"]


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_nobody_reads_or_changes_the_plan_of_another(database: Database, other: Identity) -> None:
    plan = Plans(ANN, database).create("s", "Mine", drafts("a"))
    others = Plans(other, database)
    assert others.listed(10, closed=True) == []
    assert not others.has_open("s")
    with pytest.raises(PlanNotFoundError, match="no other"):
        others.get("s", plan.id)
    with pytest.raises(PlanNotFoundError, match="no other"):
        others.change("s", plan.id, become("a", "completed"))
    with pytest.raises(PlanNotFoundError, match="no other"):
        others.close("s", plan.id, "", "", tell=told_of, abandon=True)
    assert Plans(ANN, database).get("s") == plan


@pytest.mark.parametrize(
    ("changes", "error", "told"),
    [
        ([become("b", "in_progress")], PlanConflictError, "it is blocked by 'a' (pending)"),
        (
            [become("a", "failed"), become("a", "completed")],
            PlanConflictError,
            "Step 'a' is failed and cannot become completed.",
        ),
        (
            [become("a", "in_progress", "monday"), become("a", "in_progress", "tuesday")],
            PlanConflictError,
            "Step 'a' is in progress already, in another session.",
        ),
        ([become("z", "skipped")], InvalidSourceError, "no step 'z'"),
        (
            [become("a", "completed"), partial(replanned, drafts=drafts("a"))],
            PlanConflictError,
            "'a' is completed and cannot be changed",
        ),
        (
            [partial(replanned, drafts=drafts("a < c"))],
            InvalidSourceError,
            "'a' is blocked by 'c', which is not a step",
        ),
        (
            [partial(replanned, drafts=drafts("c < b", "a < c"))],
            InvalidSourceError,
            "'c' is blocked by 'b' is blocked by 'a'",
        ),
        (
            [
                partial(
                    replanned, drafts=drafts("1 < 50", *(f"{n} < {n - 1}" for n in range(2, 51)))
                )
            ],
            InvalidSourceError,
            "is blocked by '42' and so on, 50 steps.",
        ),
        (
            [partial(replanned, drafts=(), removed=["a"])],
            InvalidSourceError,
            "'b' is blocked by 'a', which is not a step",
        ),
        (
            [become("a", "in_progress"), partial(replanned, drafts=drafts("c", "a < c"))],
            PlanConflictError,
            "'a' cannot be in progress: it is blocked by 'c' (pending)",
        ),
        (
            [partial(replanned, drafts=drafts(*map(str, range(1000))))],
            InvalidSourceError,
            "at most 1000 steps, not 1002",
        ),
    ],
)
def test_what_is_not_legal_is_refused_with_what_is_wrong_and_changes_nothing(
    database: Database, changes: list[Any], error: type[Exception], told: str
) -> None:
    plans = Plans(ANN, database)
    plans.create("s", "Get there", drafts("a", "b < a"))
    for change in changes[:-1]:
        plans.change("s", "", change)
    before = plans.get("s")
    with pytest.raises(error, match=re.escape(told)):
        plans.change("s", "", changes[-1])
    assert plans.get("s") == before


def test_a_plan_with_open_steps_is_closed_only_as_abandoned(database: Database) -> None:
    plans = Plans(ANN, database)
    plan = plans.create("s", "Get there", drafts("a", "b"))
    plans.change("s", "", become("a", "failed"))
    with pytest.raises(PlanConflictError, match=re.escape("open steps: 'a' (failed), 'b'")):
        plans.close("s", "", "", "", tell=told_of)
    closed, _ = plans.close("s", "", "No use", "", tell=told_of, abandon=True)
    assert plans.get("s", plan.id) == closed
    assert (closed.status, closed.message) == ("abandoned", "No use")
    with pytest.raises(PlanConflictError, match="abandoned, and closed for good"):
        plans.change("s", plan.id, become("b", "skipped"))


def test_a_plan_stays_open_where_its_event_cannot_be_kept(database: Database) -> None:
    plans = Plans(ANN, database)
    plans.create("s", "Get there", drafts("a"))

    def tell(_plan: Plan) -> NewContext:
        raise StorageUnavailableError("The disk is full.")

    with pytest.raises(StorageUnavailableError):
        plans.close("s", "", "", "", tell=tell, abandon=True)
    assert plans.get("s").status == "open"


def test_a_plan_is_forgotten_with_the_session_that_made_it(database: Database) -> None:
    entries = Entries(database)
    entry = NewEntry(session_id="s", kind="call", time=1.7e9, action="todo", target="", said="")
    seq = entries.record(ANN, entry)
    for identity, session in ((ANN, "s"), (ANN, "other"), (Identity("bob"), "s")):
        Plans(identity, database).create(session, "Get there", drafts("a"))
    entries.forget(ANN, [seq])
    assert not Plans(ANN, database).has_open("s")
    assert Plans(ANN, database).has_open("other")
    assert Plans(Identity("bob"), database).has_open("s")
    with database.read() as connection:
        assert connection.execute("SELECT count(*) FROM plans").fetchone()[0] == 2


def worker(database: Database, *arguments: str) -> subprocess.Popen[str]:
    """A process that gives every step of a plan a status, and says each that it could."""
    command = [sys.executable, "-c", WORKER, str(database.path), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_each_step_is_begun_by_one_of_two_processes(database: Database) -> None:
    names = [str(number) for number in range(60)]
    plan = Plans(ANN, database).create("s", "Get there", drafts(*names))
    workers = [worker(database, plan.id, session, "in_progress") for session in ("one", "two")]
    begun = [each.communicate()[0].split() for each in workers]
    assert sorted(begun[0] + begun[1]) == sorted(names)
    stored = Plans(ANN, database).get("s").steps
    assert {step.id: step.session_id for step in stored} == dict.fromkeys(
        begun[0], "one"
    ) | dict.fromkeys(begun[1], "two")


def test_what_a_killed_process_said_of_steps_is_stored(database: Database) -> None:
    names = [str(number) for number in range(1000)]
    plan = Plans(ANN, database).create("s", "Get there", drafts(*names))
    with worker(database, plan.id, "s", "completed") as killed:
        assert killed.stdout is not None
        said = [killed.stdout.readline().strip() for _ in range(20)]
        killed.kill()
        said += [line.strip() for line in killed.stdout if line.endswith("\n")]
    stored = statuses(Plans(ANN, database).get("s").steps)
    completed = [step for step, status in stored.items() if status == "completed"]
    assert completed[: len(said)] == said
    assert len(completed) <= len(said) + 1
    assert list(stored) == names
