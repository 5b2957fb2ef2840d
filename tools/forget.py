"""Deletes stored contexts, by ID or by filter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal, Unpack

from pydantic import Field

from storage.keeping.changes.models import ChangeFilter
from storage.library import Shelf
from storage.models import Context, ContextType, Identity, SearchFilter, utc
from tools.answers.params import Names, RawId, RawType, TimeWindow
from tools.core.context import IdentityArguments, RequestContext
from tools.core.errors import InvalidArgumentsError
from tools.core.result import ToolModel
from tools.core.spec import Confirmation, Effect, ToolScope, tool

if TYPE_CHECKING:  # loaded on first use
    from tools.sandbox.history.history import CallHistory

SHOWN = 20
TITLE_CHARACTERS = 80

_NAMES = {
    ContextType.DOCUMENT: ("document", "documents"),
    ContextType.KNOWLEDGE: ("piece of knowledge", "pieces of knowledge"),
    ContextType.EVENT: ("event", "events"),
}

Ids = Annotated[list[Annotated[str, Field(max_length=64)]], Field(max_length=1000)]


class Doomed(ToolModel):
    """A context to be deleted.

    Attributes:
        id: Its id.
        context_type: Its kind.
        title: Its title, or else the start of its text.
        date: Its date, UTC.
    """

    id: str
    context_type: ContextType
    title: str
    date: str

    @classmethod
    def of(cls, context: Context, opening: str) -> Doomed:
        """Describes a context so that a person recognizes it."""
        return cls(
            id=context.id,
            context_type=context.context_type,
            title=context.title or " ".join(opening.split())[:TITLE_CHARACTERS],
            date=utc(context.event_time).date().isoformat(),
        )


class Forgotten(ToolModel):
    """What was deleted, or would be.

    Attributes:
        dry_run: Whether this was a dry run.
        count: Number of contexts.
        kinds: Number of contexts of each kind.
        first: The newest of the contexts to delete.
        changes: Number of file changes that can then no longer be undone.
        left: Number of remaining contexts that name the same entities in other ways.
        left_first: The newest of those.
        results: Number of kept large results, which may quote them and are deleted too.
        missing: IDs of contexts that are not stored.
        note: Further remarks.
    """

    dry_run: bool
    count: int
    kinds: dict[ContextType, int]
    first: list[Doomed]
    changes: int
    left: int = 0
    left_first: list[Doomed] = Field(default_factory=list)
    results: int = 0
    missing: list[str]
    note: str

    def to_text(self) -> str:
        """Formats the question or the confirmation for a person."""
        kinds = [
            f"1 {_NAMES[kind][0]}" if count == 1 else f"{count} {_NAMES[kind][1]}"
            for kind, count in self.kinds.items()
        ]
        if self.changes:
            kinds.append(f"what {self.changes} changes of files replaced")
        if self.results:
            kinds.append(f"{self.results} kept results of calls")
        what = ", ".join(kinds) or "nothing"
        lines = [f"{'Would forget' if self.dry_run else 'Forgot'} {what}."]
        lines += _format_titles(self.first, self.count)
        if self.left:
            stay = "1 context stays" if self.left == 1 else f"{self.left} contexts stay"
            lines.append(f"{stay} with such a name in the text, or with another name of the same:")
            lines += _format_titles(self.left_first, self.left)
        return "\n".join(filter(None, [*lines, self.note]))


def _format_titles(shown: Sequence[Doomed], count: int) -> list[str]:
    lines = [f"- {each.title} ({each.context_type}, {each.date}, {each.id})" for each in shown]
    return [*lines, f"and {count - len(shown)} more"] if count > len(shown) > 0 else lines


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.WRITE},
    destructive=True,
    idempotent=True,
    confirmation=Confirmation.REQUIRED,
    confirm_if="dry_run=false",
    tags=("context",),
    capabilities=("forget stored contexts by id, kind, name, time or source",),
    timeout=600,
)
def forget(
    context: RequestContext,
    ids: Annotated[Ids | None, Field(description="Contexts, instead of a filter")] = None,
    context_types: Annotated[
        list[Literal["document", "knowledge", "event"]] | None,
        Field(max_length=3, description="Only these kinds"),
    ] = None,
    entities: Annotated[
        Names | None, Field(description="Only what names one of these, exactly")
    ] = None,
    time_range: Annotated[TimeWindow | None, Field(description="Only of this time")] = None,
    raw_type: Annotated[RawType | None, Field(description="Only this kind of source")] = None,
    raw_id: Annotated[RawId | None, Field(description="Only the source of this name")] = None,
    changes: Annotated[
        bool, Field(description="Instead: what is kept to undo changes of files")
    ] = False,
    dry_run: Annotated[bool, Field(description="Only show what would be deleted")] = True,
    **identity: Unpack[IdentityArguments],
) -> Forgotten:
    """Deletes contexts for good: those with these ids, or all that fit every given filter.

    Call it with dry_run first, and show the user what would go.
    """
    criteria = SearchFilter(
        ids=tuple(ids or ()),
        context_types=tuple(map(ContextType, context_types or ())),
        time_range=None if time_range is None else time_range.to_range(),
        entities=tuple(entities or ()),
        raw_types=() if raw_type is None else (raw_type,),
        raw_id=raw_id,
    )
    if changes:
        return _forget_changes(
            context.history, context.about(**identity), criteria, dry_run=dry_run
        )
    _check(criteria)
    shelf = context.shelf(**identity)
    missing = _missing(shelf, criteria)
    kinds, first = (
        shelf.forgettable(criteria, SHOWN) if dry_run else (shelf.forget_all(criteria), [])
    )
    calls, user_id = context.grant.calls, context.about(**identity).user_id
    kept = None if calls is None else calls.kept
    results = 0
    if kept is not None and kinds:
        results = kept.count(user_id) if dry_run else kept.forget(user_id)
    left, left_first = shelf.left_naming(criteria, SHOWN) if criteria.entities else (0, [])
    return Forgotten(
        dry_run=dry_run,
        count=sum(kinds.values()),
        kinds=kinds,
        first=[Doomed.of(context, opening) for context, opening in first],
        changes=0,
        results=results,
        left=left,
        left_first=[Doomed.of(context, opening) for context, opening in left_first],
        missing=missing,
        note=_note(
            missing,
            dry_run=dry_run,
            count=sum(kinds.values()),
            left=left,
            entities=[name for name in criteria.entities if shelf.people.names_of(name)],
        ),
    )


def _forget_changes(
    history: CallHistory, identity: Identity, criteria: SearchFilter, *, dry_run: bool
) -> Forgotten:
    """Deletes the undo copies of file changes inside the root, optionally of one period."""
    within = criteria.time_range
    if criteria != SearchFilter(time_range=within):
        raise InvalidArgumentsError(
            "changes: goes together with time_range and dry_run alone.",
            next_actions=["Leave the other filters out, or call once more with them."],
        )
    wanted = ChangeFilter(
        root=history.root,
        since=None if within is None else within.start,
        until=None if within is None else within.end,
    )
    own = history.history.changes.own(identity)
    count = len(own.find(wanted)) if dry_run else own.forget(wanted)
    return Forgotten(
        dry_run=dry_run,
        count=0,
        kinds={},
        first=[],
        changes=count,
        missing=[],
        note=_note([], dry_run=dry_run, count=count),
    )


def _check(criteria: SearchFilter) -> None:
    """Rejects an empty filter, which would match everything."""
    time_range = criteria.time_range
    open_ended = time_range is None or (time_range.start is None and time_range.end is None)
    filtered = not open_ended or any(
        (criteria.context_types, criteria.entities, criteria.raw_types, criteria.raw_id)
    )
    if bool(criteria.ids) != filtered:
        return
    problem = "not both" if filtered else "neither is given"
    raise InvalidArgumentsError(
        f"ids, or at least one of context_types, entities, time_range, raw_type and raw_id:"
        f" {problem}.",
        next_actions=("Give ids from a search or a listing, or filters that match it.",),
    )


def _missing(shelf: Shelf, criteria: SearchFilter) -> list[str]:
    if not criteria.ids:
        return []
    stored = {context.id for context in shelf.contexts(criteria, len(criteria.ids))}
    return [each for each in dict.fromkeys(criteria.ids) if each not in stored]


def _note(
    missing: Sequence[str],
    *,
    dry_run: bool,
    count: int,
    left: int = 0,
    entities: Sequence[str] = (),
) -> str:
    notes = []
    if left:
        notes.append("To delete what stays as well, look at it and call again with its ids.")
    if entities:
        notes.append(
            f"What is stored of {', '.join(entities)} as an entity stays too: delete_entity."
        )
    if missing:
        notes.append(
            f"No context has the id {', '.join(missing)}. Profiles, entities and relationships are"
            " not contexts: delete entities with delete_entity."
        )
    if dry_run and count:
        notes.append("Nothing was deleted: call again with dry_run=false.")
    return " ".join(notes)
