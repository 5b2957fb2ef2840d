"""Reads exported records, and reports where a file is invalid.

The format is that of `storage.keeping.export`. A file is validated to its end before any of it is
stored, so that a damaged or incomplete one changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from storage.agent.plans import PlanStatus
from storage.agent.steps import Step, StepStatus, checked
from storage.errors import InvalidSourceError, PlanConflictError, UnreadableDocumentError
from storage.events.buckets import Bucket
from storage.keeping.export import FORMAT
from storage.models import ContextType, EntryKind, Identity
from storage.people.entities import bare_name
from storage.people.models import EntityType

_HEAD_BYTES = 1000
_MOST_PROBLEMS = 3
_MOST_SEQ = 2**53  # larger ones would leave SQLite too few for later rows

Outcome = Literal["added", "replaced", "unchanged"]  # the outcome of importing one record

Degree = Annotated[float, Field(ge=0, le=10)]
Seq = Annotated[int, Field(gt=0, lt=_MOST_SEQ)]


def _bare(name: str) -> str:
    try:
        return bare_name(name)
    except InvalidSourceError as error:
        raise ValueError(error.message) from None


def _check_steps(steps: tuple[StepRecord, ...]) -> tuple[StepRecord, ...]:
    if len({step.id for step in steps}) < len(steps):
        raise ValueError("two steps have the same id")
    try:
        checked([Step(**step.model_dump()) for step in steps])
    except (InvalidSourceError, PlanConflictError) as error:
        raise ValueError(error.message) from None
    return steps


Name = Annotated[str, AfterValidator(_bare)]


class _Form(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False)


class Head(_Form):
    """The first line."""

    record: Literal["toolcrib"]
    format: int


class _Owned(_Form):
    user_id: str
    device_id: str
    agent_id: str

    @property
    def identity(self) -> Identity:
        """The owner."""
        return Identity(self.user_id, self.device_id, self.agent_id)


class _Dated(_Owned):
    create_time: float
    update_time: float


class FormerRecord(_Form):
    """A fact that another has replaced."""

    name: str
    value: Any
    until: float


class ProfileRecord(_Dated):
    """The profile of the user."""

    record: Literal["profile"]
    summary: str
    facts: dict[str, Any]
    metadata: dict[str, Any]
    former: tuple[FormerRecord, ...] = ()


class EntityRecord(_Dated):
    """A person or a thing with a name."""

    record: Literal["entity"]
    id: Seq
    name: Name
    entity_type: EntityType
    summary: str
    aliases: tuple[Name, ...]
    metadata: dict[str, Any]
    former: tuple[FormerRecord, ...] = ()
    importance: Degree


class RelationshipRecord(_Dated):
    """A relationship between two entities."""

    record: Literal["relationship"]
    source_id: Seq
    relation: Name
    target_id: Seq
    description: str
    metadata: dict[str, Any]
    until: float | None = None


class Passage(_Form):
    """An indexed passage of a context's text."""

    start: Annotated[int, Field(ge=0)]
    end: int
    heading: str


class TurnRecord(_Form):
    """A turn of a conversation."""

    heading: str
    content: str


class Making(_Form):
    """An entry that a memory was made from."""

    entry_id: Seq
    is_copy: bool


class ContextRecord(_Dated):
    """A document, a piece of knowledge, an event or a summary."""

    record: Literal["context"]
    id: Annotated[str, Field(min_length=1, max_length=64)]
    context_type: ContextType
    raw_type: str
    raw_id: str
    title: str
    summary: str
    keywords: tuple[str, ...]
    entities: tuple[str, ...]
    metadata: dict[str, Any]
    confidence: Degree
    importance: Degree
    event_time: float
    media_type: str
    file_path: str
    sha256: str
    merge_count: Annotated[int, Field(ge=0, lt=_MOST_SEQ)]
    hierarchy_level: Annotated[int, Field(ge=0, le=3)]
    time_bucket: str
    parent_id: str
    text: str
    turns: tuple[TurnRecord, ...] = ()
    passages: tuple[Passage, ...] | None = None
    memory_layer: Literal[0, 2, 3, 4] = 0
    session_id: str = ""
    uses: Annotated[int, Field(ge=0, lt=_MOST_SEQ)] = 0
    last_used: float | None = None
    made_from: tuple[Making, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.context_type.is_card:
            raise ValueError("a card is generated from its profile or entity")
        if self.hierarchy_level and Bucket.parse(self.time_bucket).level != self.hierarchy_level:
            raise ValueError(f"time_bucket {self.time_bucket!r} is not of its hierarchy_level")
        passages = self.passages or ()
        if any(not each.start < each.end <= len(self.text) for each in passages) or any(
            later.start <= earlier.start for earlier, later in pairwise(passages)
        ):
            raise ValueError("its passages are outside its text or out of order")
        return self


class SessionRecord(_Owned):
    """A session of one client."""

    record: Literal["session"]
    id: str
    client: str
    project: str = ""
    start_time: float
    last_time: float
    told_until: float | None


class StepRecord(_Form):
    """A step of a plan."""

    id: Annotated[str, Field(min_length=1, max_length=64)]
    title: str
    detail: str
    blocked_by: tuple[str, ...]
    status: StepStatus
    note: str
    session_id: str


class PlanRecord(_Dated):
    """A plan with its steps."""

    record: Literal["plan"]
    id: Annotated[str, Field(min_length=1, max_length=64)]
    session_id: str
    continued_in: str
    goal: str
    reasoning: str
    status: PlanStatus
    message: str
    output: str
    steps: Annotated[tuple[StepRecord, ...], AfterValidator(_check_steps)]


class EntryRecord(_Owned):
    """A call or message of a session."""

    record: Literal["entry"]
    id: Seq
    session_id: str
    kind: EntryKind
    time: float
    action: str
    target: str
    arguments: dict[str, Any]
    outcome: str
    said: str
    milliseconds: float
    importance: Degree
    is_recall: bool
    context_ids: tuple[str, ...]


Record = (
    ProfileRecord
    | EntityRecord
    | RelationshipRecord
    | ContextRecord
    | SessionRecord
    | PlanRecord
    | EntryRecord
)


@dataclass(frozen=True, slots=True)
class Summary:
    """The contents of a valid file."""

    records: int  # the number of records, without the first
    context_ids: frozenset[str]
    identities: frozenset[Identity]


def is_export(path: Path) -> bool:
    """Returns whether a file begins like an export."""
    with path.open("rb") as file:
        line = file.readline(_HEAD_BYTES)
    try:
        Head.model_validate_json(line)
    except ValidationError:
        return False
    return True


def check_export(path: Path) -> Summary:
    """Validates a file to its end, and counts its contents."""
    count = 0
    entities: set[int] = set()
    contexts: set[str] = set()
    identities: set[Identity] = set()
    for number, record in read_records(path):
        count += 1
        identities.add(record.identity)
        match record:
            case EntityRecord():
                entities.add(record.id)
            case RelationshipRecord():
                for end in (record.source_id, record.target_id):
                    if end not in entities:
                        raise _invalid_line(path, number, f"no earlier entity has the id {end}")
            case ContextRecord():
                contexts.add(record.id)
    return Summary(count, frozenset(contexts), frozenset(identities))


def read_records(path: Path) -> Iterator[tuple[int, Record]]:
    """Yields the records of a file after the first, each with its line number.

    Raises UnreadableDocumentError at the first invalid line; records yielded before are valid.
    """
    adapter = _records()
    with path.open("rb") as file:
        head = _parse(TypeAdapter(Head), path, 1, file.readline())
        if head.format > FORMAT:
            raise UnreadableDocumentError(
                f"{str(path)!r} is of format {head.format}; this version of Toolcrib reads up to"
                f" {FORMAT}.",
                suggestions=("Upgrade Toolcrib.",),
            )
        for number, line in enumerate(file, start=2):
            if not line.endswith(b"\n"):
                raise _invalid_line(path, number, "the file ends within it")
            yield number, _parse(adapter, path, number, line)


@cache
def _records() -> TypeAdapter[Record]:
    return TypeAdapter(Annotated[Record, Field(discriminator="record")])


def _parse(adapter: TypeAdapter[Any], path: Path, number: int, line: bytes) -> Any:  # noqa: ANN401  # the adapter's type
    try:
        return adapter.validate_json(line)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        reasons = "; ".join(
            ": ".join(filter(None, (".".join(map(str, each["loc"][1:])), each["msg"])))
            for each in problems[:_MOST_PROBLEMS]
        )
        raise _invalid_line(path, number, reasons) from None


def _invalid_line(path: Path, number: int, reason: str) -> UnreadableDocumentError:
    return UnreadableDocumentError(
        f"{str(path)!r} is not a valid export: line {number}: {reason}. Nothing was stored.",
        suggestions=("Export again, or correct that line.",),
    )
