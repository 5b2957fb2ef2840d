"""What can be browsed by kind, by time, by entity and by topic, read by a real client."""

import re
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from mcp import Client
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import TextResourceContents

from server.mcp.views import PAGE, RELEVANT_HITS, VIEW_CHARACTERS
from storage.agent.steps import Draft
from storage.library import Library, Shelf
from storage.models import ContextType, Identity, NewContext
from storage.people.models import EntityType, NewEntity, NewRelationship

ANN = Identity(user_id="ann")
DAY = datetime(2026, 11, 22, 9, 30, tzinfo=UTC).timestamp()


@pytest.fixture
def server(server_of: Callable[[], Server[None]]) -> Server[None]:
    return server_of()


@pytest.fixture
def shelf(library: Library) -> Shelf:
    return library.shelf(ANN)


def keep(  # noqa: PLR0913  # what a test does not say is not what it is about
    shelf: Shelf,
    title: str,
    text: str = "Something.",
    kind: ContextType = ContextType.EVENT,
    *,
    when: float = DAY,
    importance: float = 5,
    entities: tuple[str, ...] = (),
    layer: int = 0,
) -> str:
    """Keeps a context, and gives its id."""
    new = NewContext(
        context_type=kind,
        title=title,
        text=text,
        event_time=when,
        importance=importance,
        entities=entities,
        memory_layer=layer,
        raw_type="text" if kind is ContextType.DOCUMENT else "",
        raw_id=title if kind is ContextType.DOCUMENT else "",
    )
    return shelf.add(new).context.id


async def read(server: Server[None], uri: str, media_type: str = "text/markdown") -> str:
    async with Client(server) as client:
        (contents,) = (await client.read_resource(uri)).contents
    assert isinstance(contents, TextResourceContents)
    assert contents.mime_type == media_type
    return contents.text


async def test_each_kind_is_browsed_by_itself_and_leads_to_its_contexts(
    server: Server[None], shelf: Shelf
) -> None:
    kinds = {
        "documents": ContextType.DOCUMENT,
        "knowledge": ContextType.KNOWLEDGE,
        "events": ContextType.EVENT,
    }
    for noun, kind in kinds.items():
        keep(shelf, f"About {noun}", f"The {noun} say tea.", kind, entities=("Ada",))
    for noun in kinds:
        text = await read(server, f"context://{noun}")
        assert text.startswith(f"# {noun.capitalize()}: 1\n")
        assert [other for other in kinds if f"About {other}" in text] == [noun]
        (uri,) = re.findall(r"\((context://contexts/\w+)\)", text)
        whole = await read(server, uri)
        assert whole.startswith(f"# About {noun}\n")
        assert "- Time: 2026-11-22T09:30:00+00:00\n" in whole
        assert "- Entities: Ada\n" in whole
        assert whole.endswith(f"\n\nThe {noun} say tea.")


@pytest.mark.parametrize(
    ("bucket", "shown"),
    [
        ("2026-11-22", ["Lunch", "Dinner"]),
        ("2026-11-21", ["Eve"]),
        ("2026-W47", ["Eve", "Lunch", "Dinner"]),
        ("2026-11", ["Eve", "Lunch", "Dinner", "Next week"]),
        ("2026-10", []),
    ],
)
async def test_a_day_a_week_and_a_month_show_what_is_of_them_in_order(
    server: Server[None], shelf: Shelf, bucket: str, shown: list[str]
) -> None:
    midnight = datetime(2026, 11, 22, tzinfo=UTC).timestamp()
    keep(shelf, "Next week", when=midnight + 86_400)
    keep(shelf, "Dinner", when=midnight + 86_399.999)
    keep(shelf, "Lunch", when=midnight)
    keep(shelf, "Eve", when=midnight - 0.001)
    text = await read(server, f"context://time/{bucket}")
    assert re.findall(r"- \[(.*?)\]", text) == shown
    assert f": {len(shown)}\n" in text.splitlines()[0] + "\n"


async def test_an_entity_shows_what_it_is_how_it_is_related_and_what_names_it(
    server: Server[None], shelf: Shelf
) -> None:
    shelf.people.save_entity(
        NewEntity(
            name="Ada Lovelace",
            entity_type=EntityType.PERSON,
            aliases=("Countess",),
            summary="Writes programs.",
        )
    )
    new = NewRelationship(source="Ada Lovelace", relation="works on", target="Engine")
    shelf.people.relate(new, create_missing=True)
    keep(shelf, "Letter", entities=("Ada Lovelace",))
    keep(shelf, "Other letter")
    listing = await read(server, "context://entities")
    assert "[Ada Lovelace](context://entities/Ada%20Lovelace) (also Countess): person." in listing
    for name in ("Ada%20Lovelace", "ada%20lovelace", "Countess"):
        text = await read(server, f"context://entities/{name}")
        assert text.startswith(
            "# Ada Lovelace (person)\n\nAlso called Countess.\n\nWrites programs."
        )
        assert "- Ada Lovelace works on Engine" in text
        assert re.findall(r"- \[(.*?)\]", text) == ["Letter"]


async def test_a_name_that_is_only_mentioned_shows_what_names_it(
    server: Server[None], shelf: Shelf
) -> None:
    keep(shelf, "Letter", entities=("Babbage",))
    assert "[Letter]" in await read(server, "context://entities/babbage")


async def test_a_topic_shows_the_passages_that_fit_with_their_sources(
    server: Server[None], shelf: Shelf
) -> None:
    keep(shelf, "Kettle", "The blue kettle leaks.", ContextType.DOCUMENT)
    keep(shelf, "Garden", "The roses bloom.", ContextType.KNOWLEDGE)
    text = await read(server, "context://relevant?topic=leaking%20kettle")
    assert "The blue kettle leaks." in text
    assert "(text: Kettle)" in text
    assert "roses" not in text


async def test_an_entity_is_told_once_by_its_card_or_by_its_line(
    server: Server[None], shelf: Shelf
) -> None:
    shelf.people.save_entity(NewEntity(name="Kettle Club", summary="They meet on Monday."))
    by_card = await read(server, "context://relevant?topic=Kettle%20Club")
    assert by_card.count("They meet on Monday.") == 1
    assert "## Entities" not in by_card
    for number in range(RELEVANT_HITS):
        keep(shelf, f"Guide {number}", f"How a kettle is descaled {number}.", ContextType.DOCUMENT)
    by_line = await read(server, "context://relevant?topic=how%20is%20a%20kettle%20descaled")
    assert by_line.count("They meet on Monday.") == 1
    assert by_line.startswith("## Entities\n\n- [Kettle Club](context://entities/Kettle%20Club)")


async def test_a_topic_that_nothing_fits_says_so(server: Server[None], shelf: Shelf) -> None:
    keep(shelf, "Kettle", "The blue kettle leaks.", ContextType.DOCUMENT)
    text = await read(server, "context://relevant?topic=xylophone")
    assert "Nothing stored fits." in text


async def test_without_a_topic_the_profile_the_important_and_the_newest_are_shown(
    server: Server[None], shelf: Shelf
) -> None:
    shelf.people.save_profile(summary="Ann brews tea.", facts={"city": "Turku"})
    keep(shelf, "Allergy", "Nuts are deadly.", ContextType.KNOWLEDGE, importance=9)
    keep(shelf, "Weather", "It rains in autumn.", ContextType.KNOWLEDGE, importance=1)
    keep(shelf, "Lunch", "Soup.")
    text = await read(server, "context://relevant")
    who, important, newest = text.split("\n\n## ")
    assert who == "## The user\n\nAnn brews tea.\n- city: Turku"
    assert important.index("Nuts are deadly.") < important.index("It rains in autumn.")
    assert re.findall(r"\[(.*?)\]", newest)[0] == "Lunch"


async def test_without_a_topic_what_is_remembered_and_the_latest_sessions_are_shown(
    server: Server[None], shelf: Shelf
) -> None:
    know = ContextType.KNOWLEDGE
    keep(shelf, "Tea", "Green tea only.", know, importance=7, layer=2)
    keep(shelf, "Nuts", "No nuts, ever.", know, importance=10, layer=2)
    keep(shelf, "Monday", "Repaired the boiler.", know, layer=3)
    keep(shelf, "Fact", "The flat has three rooms.", know, layer=4)
    keep(shelf, "Bread", "Rye keeps for a week.", know)
    text = await read(server, "context://relevant")
    sections = dict(part.split("\n", 1) for part in text.removeprefix("## ").split("\n\n## "))
    assert list(sections) == ["Remembered", "Important", "Latest sessions", "Newest"]
    remembered = sections["Remembered"]
    assert remembered.index("No nuts, ever.") < remembered.index("Green tea only.")
    assert re.findall(r"- \[(.*?)\]", sections["Important"]) == ["Bread"]
    assert re.findall(r"- \[(.*?)\]", sections["Latest sessions"]) == ["Monday"]


async def test_a_topic_finds_memory_and_knowledge_and_says_which(
    server: Server[None], shelf: Shelf
) -> None:
    keep(shelf, "Kettle", "The blue kettle leaks.", ContextType.DOCUMENT)
    keep(shelf, "", "Ann wants a new kettle.", ContextType.KNOWLEDGE, layer=2)
    text = await read(server, "context://relevant?topic=kettle")
    assert "(text: Kettle)" in text
    assert "(memory l2, knowledge " in text


async def test_views_are_bounded_and_paged(server: Server[None], shelf: Shelf) -> None:
    for number in range(PAGE + 1):
        keep(shelf, f"Event {number}", "word " * 500)
    first = await read(server, "context://events")
    second = await read(server, "context://events?page=2")
    assert first.startswith(f"# Events: {PAGE + 1}\n")
    assert first.endswith("Page 1 of 2: add ?page=2.")
    shown = re.findall(r"\[(.*?)\]", first) + re.findall(r"\[(.*?)\]", second)
    assert sorted(shown) == sorted(f"Event {number}" for number in range(PAGE + 1))
    for uri in ("context://relevant", "context://relevant?topic=word"):
        assert len(await read(server, uri)) <= VIEW_CHARACTERS


async def test_what_has_no_title_is_listed_by_its_first_words(
    server: Server[None], shelf: Shelf
) -> None:
    kept = keep(shelf, "", f"The kettle\nleaks {'again ' * 50}", ContextType.KNOWLEDGE)
    for uri in ("context://knowledge", "context://relevant", "context://time/2026-11-22"):
        assert "- [The kettle leaks again again" in await read(server, uri)
    whole = await read(server, f"context://contexts/{kept}")
    assert whole.startswith("# The kettle leaks again")


@pytest.mark.parametrize("noun", ["documents", "knowledge", "events", "entities", "relevant"])
async def test_views_show_nothing_of_another_user(
    server: Server[None], library: Library, noun: str
) -> None:
    eve = library.shelf(Identity(user_id="eve"))
    for kind in (ContextType.DOCUMENT, ContextType.KNOWLEDGE, ContextType.EVENT):
        keep(eve, "Secret", "Secret.", kind, entities=("Secret",))
    eve.people.save_entity(NewEntity(name="Secret"))
    eve.people.save_profile(summary="Secret.")
    assert "Secret" not in await read(server, f"context://{noun}")
    assert "Secret" not in await read(server, "context://time/2026-11")
    own_words = await read(server, "context://relevant?topic=Secret")
    assert "Secret" not in own_words


@pytest.mark.parametrize("uri", ["context://entities/Secret", "context://contexts/{id}"])
async def test_what_is_another_users_is_not_found(
    server: Server[None], library: Library, uri: str
) -> None:
    eve = library.shelf(Identity(user_id="eve"))
    kept = keep(eve, "Secret", entities=("Secret",))
    async with Client(server) as client:
        with pytest.raises(MCPError, match="not found"):
            await client.read_resource(uri.replace("{id}", kept))


async def test_plans_are_listed_and_each_is_shown_whole(
    server: Server[None], shelf: Shelf, library: Library
) -> None:
    dig = Draft(id="dig", title="Dig", detail="Two spades deep")
    drafts = [dig, Draft(id="sow", title="Sow", blocked_by=("dig",))]
    plan = shelf.plans.create("monday", "A garden", drafts)
    event = NewContext(context_type=ContextType.EVENT, title="Old", text="Old")
    old = shelf.plans.create("monday", "Old", [])
    shelf.plans.close("monday", old.id, "", "", tell=lambda _plan: event)
    library.shelf(Identity("bob")).plans.create("monday", "Not yours", drafts)
    text = await read(server, "context://plans")
    assert text.startswith("# Plans: 2\n")
    assert f"- [{plan.id}](context://plans/{plan.id}), open: A garden (0 of 2 steps over, " in text
    assert "completed: Old (0 of 0 steps over, " in text
    assert await read(server, f"context://plans/{plan.id}", "text/plain") == (
        f"Plan {plan.id}, open: A garden\n2 steps: 1 ready, 1 waiting\n"
        "[ ] dig. Dig (ready)\n  Two spades deep\n[ ] sow. Sow (waits for dig)"
    )
