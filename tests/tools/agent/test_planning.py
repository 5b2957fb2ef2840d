from typing import Any

from storage.models import Identity
from tests.tools.conftest import Open
from tools.core.context import Origin, RequestContext

STEPS: list[dict[str, Any]] = [
    {"id": "copy", "title": "Copy the images", "detail": "From the old\nserver"},
    {"id": "mail", "title": "Move the mail"},
    {"title": "Switch the name", "blocked_by": ["copy", "mail"]},
    {"title": "Tell everybody", "blocked_by": ["1"]},
]

WRONG: list[tuple[str, dict[str, Any], str, str]] = [
    ("create_plan", {"goal": " ", "steps": STEPS}, "invalid_arguments", "goal"),
    ("create_plan", {"goal": "x", "steps": []}, "invalid_arguments", "steps"),
    ("create_plan", {"goal": "x", "steps": [{"id": "a"}]}, "invalid_arguments", "title"),
    (
        "create_plan",
        {"goal": "x", "steps": [STEPS[0], STEPS[0]]},
        "invalid_arguments",
        "more than one has the id 'copy'",
    ),
    (
        "create_plan",
        {"goal": "x", "steps": [STEPS[0] | {"blocked_by": ["copy"]}]},
        "invalid_arguments",
        "'copy' is blocked by 'copy'",
    ),
    ("update_plan", {}, "invalid_arguments", "changes nothing"),
    ("update_plan", {"status": "failed"}, "invalid_arguments", "Pass its ID as step"),
    ("update_plan", {"step": "copy", "status": "done"}, "invalid_arguments", "status"),
    (
        "update_plan",
        {"step": "1", "status": "completed"},
        "conflict",
        "it is blocked by 'copy' (pending), 'mail' (in progress)",
    ),
    (
        "update_plan",
        {"steps": [{"id": "new", "detail": "x"}]},
        "invalid_arguments",
        "'new' is new and has no title",
    ),
    ("update_plan", {"plan_id": "none", "step": "1", "note": "x"}, "not_found", "'none'"),
    (
        "done",
        {},
        "conflict",
        "'copy' (pending), 'mail' (in progress), '1' (pending), '2' (pending).",
    ),
]


async def _plan(crib: Any, steps: list[dict[str, Any]] = STEPS) -> str:
    made = await crib.call("create_plan", goal="Move the shop", steps=steps)
    plan_id: str = made["plan_id"]
    return plan_id


async def test_a_plan_is_made_worked_on_and_closed(open_crib: Open, mode: str) -> None:
    async with open_crib(mode) as crib:
        assert await crib.text("get_plan") == "No plan is open; `create_plan` makes one."
        plan_id = await _plan(crib)
        head = f"Plan {plan_id}, open: Move the shop\n"
        assert (
            await crib.text("get_plan")
            == head
            + """4 steps: 2 ready, 2 waiting
[ ] copy. Copy the images (ready)
[ ] mail. Move the mail (ready)
[ ] 1. Switch the name (waits for copy, mail)
[ ] 2. Tell everybody (waits for 1)"""
        )
        await crib.call("update_plan", step="copy", status="completed")
        failed = await crib.text(
            "update_plan", step="mail", status="failed", note="the disk\nis full"
        )
        assert (
            failed
            == head
            + """4 steps: 1 completed, 1 failed, 2 stopped
[!] mail. Move the mail | the disk is full
Those that are stopped wait until what failed is retried, skipped or replanned."""
        )
        replanned = await crib.text(
            "update_plan",
            step="mail",
            status="skipped",
            remove=["2"],
            steps=[{"id": "disk", "title": "Buy a disk"}, {"id": "1", "blocked_by": ["disk"]}],
        )
        assert (
            replanned
            == head
            + """4 steps: 1 completed, 1 skipped, 1 ready, 1 waiting
[ ] disk. Buy a disk (ready)"""
        )
        for step in ("disk", "1"):
            last = await crib.text("update_plan", step=step, status="completed")
        assert last == head + "4 steps: 3 completed, 1 skipped\nEvery step is over: call `done`."
        closed = await crib.call("done", message="It runs", output="https://shop.example")
        assert (closed["plan_id"], closed["status"]) == (plan_id, "completed")
        assert (await crib.call("get_plan")) == {"others": []}
        told = await crib.text("get_plan", plan_id=plan_id)
        assert told.startswith(f"Plan {plan_id}, completed: Move the shop\nClosed: It runs\n")


async def test_what_was_planned_and_what_came_of_it_is_found_later(crib: Any) -> None:
    await _plan(crib, STEPS[:1])
    await crib.call("update_plan", step="copy", status="completed", note="all 40")
    event = (await crib.call("done", output="https://shop.example"))["event_id"]
    told = await crib.text("query", query="move the shop")
    assert event in told
    assert "Completed: Move the shop" in told
    assert "- Copy the images (completed): all 40" in told


async def test_without_a_plan_a_task_is_recorded_as_done(crib: Any) -> None:
    assert await crib.text("done") == "The task is done."
    done = await crib.call("done", message="The gutters are clean")
    assert done["status"] == "completed"
    assert done["event_id"] in await crib.text("retrieve_event_context", query="gutters")


async def test_a_plan_of_two_hundred_steps_costs_its_reader_little(crib: Any) -> None:
    steps = [
        {
            "id": f"s{number}",
            "title": f"Translate chapter {number} of the handbook",
            "detail": "Keep the names of the tools, and the numbers of the figures. " * 5,
            "blocked_by": [] if number % 4 == 0 else [f"s{number - 1}"],
        }
        for number in range(200)
    ]
    await _plan(crib, steps)
    for number in range(80):
        await crib.call("update_plan", step=f"s{number}", status="completed")
    await crib.call("update_plan", step="s80", status="in_progress")
    text = await crib.text("update_plan", step="s84", status="failed", note="no dictionary")
    assert text == await crib.text("get_plan")
    counts = "80 completed, 1 in progress, 1 failed, 28 ready, 87 waiting, 3 stopped"
    assert counts in text
    assert len(text) < 1_000
    pages = [(await crib.call("get_plan", detail=True))["plan"]]
    while "next_offset" in pages[-1]:
        offset = pages[-1]["next_offset"]
        pages.append((await crib.call("get_plan", detail=True, offset=offset))["plan"])
    shown = [step["id"] for page in pages for step in page["steps"]]
    assert shown == [step["id"] for step in steps]
    assert pages[0]["steps"][0]["detail"] == steps[0]["detail"]
    text = await crib.text("get_plan", detail=True)
    assert f"\n[Go on with offset={pages[0]['next_offset']}.]" in text
    assert "[Cut here" not in text


async def test_each_page_of_a_thousand_steps_says_where_the_next_begins(crib: Any) -> None:
    steps = [{"id": f"s{n}", "title": "word " * 20, "detail": "d" * (n % 90)} for n in range(1000)]
    await crib.call("create_plan", goal="Long", reasoning="r" * 1_999, steps=steps)
    offset, pages = 0, 0
    while True:
        text = await crib.text("get_plan", detail=True, offset=offset)
        page = (await crib.call("get_plan", detail=True, offset=offset))["plan"]
        assert "[Cut here" not in text
        assert text.count("[ ] s") == len(page["steps"])
        pages += 1
        if "next_offset" not in page:
            break
        assert text.endswith(f"[Go on with offset={page['next_offset']}.]")
        offset = page["next_offset"]
    assert offset + len(page["steps"]) == 1000
    assert pages > 3


async def test_one_step_is_shown_with_everything(crib: Any) -> None:
    plan_id = await _plan(crib)
    await crib.call("update_plan", step="copy", note="half of it")
    assert (
        await crib.text("get_plan", step="copy")
        == f"""Plan {plan_id}, open: Move the shop
4 steps: 2 ready, 2 waiting
[ ] copy. Copy the images (ready)
  From the old
  server
  Note: half of it"""
    )
    error_type, told = await crib.failure("get_plan", step="cpy")
    assert error_type == "invalid_arguments"
    assert "'cpy'" in told
    assert "Did you mean: copy" in told


async def test_steps_come_as_other_agents_send_them(crib: Any) -> None:
    await _plan(crib, [{"id": 1, "title": "Buy"}, {"title": "Paint", "depends_on": [1]}])
    made = await crib.call("update_plan", step_id=1, status="completed")
    assert [(each["id"], each["state"]) for each in made["steps"]] == [("2", "ready")]


async def test_what_cannot_be_is_refused_with_what_can(crib: Any) -> None:
    await _plan(crib)
    await crib.call("update_plan", step="mail", status="in_progress")
    before = await crib.text("get_plan", detail=True)
    for tool, arguments, error_type, told in WRONG:
        failed = await crib.failure(tool, **arguments)
        assert failed[0] == error_type, failed
        assert told in failed[1]
    assert await crib.text("get_plan", detail=True) == before


async def test_a_plan_is_found_by_its_users_other_sessions_and_by_nobody_else(crib: Any) -> None:

    async def call(name: str, user: str, session: str, **arguments: Any) -> Any:
        context = RequestContext(Origin(Identity(user), session_id=session))
        return await crib.app.manager.execute(name, arguments, context)

    made = await call("create_plan", "ann", "monday", goal="Move the shop", steps=STEPS)
    plan_id = made.structured["plan_id"]
    for user, found in (("ann", [plan_id]), ("bob", [])):
        seen = (await call("get_plan", user, "tuesday")).structured
        assert [each["plan_id"] for each in seen["others"]] == found
    for tool in ("get_plan", "done", "update_plan"):
        given = {"step": "copy", "note": "x"} if tool == "update_plan" else {}
        refused = await call(tool, "bob", "monday", plan_id=plan_id, **given)
        assert refused.structured["error_type"] == "not_found"
    refused = await call("update_plan", "ann", "tuesday", step="copy", status="completed")
    assert refused.structured["suggestions"] == [f"{plan_id} (Move the shop)"]
    begun = {"step": "copy", "status": "completed", "plan_id": plan_id}
    assert not (await call("update_plan", "ann", "tuesday", **begun)).is_error
    closed = await call("done", "ann", "tuesday", abandon=True)
    assert closed.structured["plan_id"] == plan_id
    assert closed.structured["status"] == "abandoned"
