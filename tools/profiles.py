"""Profiles and entities: the user, related people and things, and their relationships."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, Unpack

from pydantic import Field

from storage.people.models import EntityType, NewEntity, NewRelationship
from tools.answers.params import Metadata, Names, TopK
from tools.answers.people import (
    DeletedEntity,
    DeletedRelationship,
    EntityAnswer,
    EntityPage,
    FoundEntity,
    FoundPath,
    FoundRelationship,
    Outcome,
    ProfileContext,
    SavedEntity,
    SavedProfile,
    SavedRelationship,
    UserProfile,
)
from tools.core.context import IdentityArguments, RequestContext
from tools.core.errors import InvalidArgumentsError, NotFoundError
from tools.core.spec import Alias, Confirmation, Effect, ToolScope, tool

if TYPE_CHECKING:  # loaded on first use
    from storage.people.models import Entity, Relationship
    from storage.people.people import People

MAX_RELATIONSHIPS = 500  # limit on the relationships, and on the paths, in an answer
Name = Annotated[str, Field(min_length=1, max_length=256)]
Text = Annotated[str, Field(max_length=20_000)]
EntityName = Annotated[Name | None, Field(description="Its name, in any spelling")]
Query = Annotated[str | None, Field(max_length=10_000, description="What to look for")]
OnlyType = Annotated[EntityType | None, Field(description="Only this kind")]
Kind = Annotated[EntityType | None, Field(description="Its kind; default: as stored, else other")]
EndType = Annotated[EntityType | None, Field(description="Its kind, if the name is not enough")]
Source = Annotated[
    Name, Field(description="The one that does"), Alias("from_entity", "from", "subject", "entity1")
]
Relation = Annotated[
    Name,
    Field(description='What it does, such as "works on"'),
    Alias("relation_type", "relationship", "relationship_type", "predicate"),
]
Target = Annotated[
    Name,
    Field(description="The one that it is done to"),
    Alias("to_entity", "to", "object", "entity2"),
]
Offset = Annotated[int, Field(ge=0, le=1_000_000, description="list_entities: so many skipped")]


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ},
    tags=("context", "people", "retrieval"),
    capabilities=("read the user's profile", "find a person, project, team or organization"),
)
def retrieve_profile_context(
    context: RequestContext,
    operation: Annotated[
        Literal["get_profile", "find_entity", "search_entities", "list_entities"],
        Field(description="find_entity wants entity_name, search_entities query"),
    ],
    entity_name: EntityName = None,
    query: Query = None,
    entity_type: OnlyType = None,
    top_k: TopK = 10,
    offset: Offset = 0,
    past: Annotated[
        bool, Field(description="get_profile, find_entity: also former values, with their dates")
    ] = False,
    **identity: Unpack[IdentityArguments],
) -> ProfileContext:
    """Who the user is, and the people, projects, teams and organizations they know."""
    people = context.shelf(**identity).people
    match operation:
        case "get_profile":
            profile = _profile(people, context.about(**identity).user_id, past=past)
            return ProfileContext(operation=operation, profile=profile)
        case "find_entity":
            name = _required(operation, "entity_name", entity_name)
            matches = people.find(name, entity_type, top_k)
            if not matches:
                raise people.unknown(name, entity_type)
            found = EntityPage.of_matches(
                matches, people.former if past else None, partial(_standing, people, past=past)
            )
        case "search_entities":
            wanted = _required(operation, "query", query)
            found = EntityPage.of_matches(people.search(wanted, entity_type, top_k))
        case "list_entities":
            found = _page(people, entity_type, top_k, offset)
    return ProfileContext(operation=operation, found=found)


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ},
    tags=("context", "people", "retrieval"),
    capabilities=("find an entity by name or alias", "tell how two entities are related"),
)
def profile_entity_tool(
    context: RequestContext,
    operation: Annotated[
        Literal[
            "find_exact_entity",
            "find_similar_entity",
            "list_entities",
            "check_entity_relationships",
        ],
        Field(description="check_entity_relationships wants entity1, the others entity_name"),
    ],
    entity_name: EntityName = None,
    entity1: EntityName = None,
    entity2: Annotated[Name | None, Field(description="Default: all that entity1 has")] = None,
    entity_type: OnlyType = None,
    query: Annotated[
        Name | None, Field(description="find_similar_entity: instead of entity_name")
    ] = None,
    top_k: TopK = 10,
    offset: Offset = 0,
    **identity: Unpack[IdentityArguments],
) -> EntityAnswer:
    """Finds an entity by name or alias, similar names, or how two entities are related."""
    people = context.shelf(**identity).people
    match operation:
        case "find_exact_entity":
            name = _required(operation, "entity_name", entity_name)
            sure = [
                match
                for match in people.find(name, entity_type, top_k)
                if match.how in {"exact", "alias", "folded"}
            ]
            if not sure:
                raise people.unknown(name, entity_type)
            found = EntityPage.of_matches(sure)
        case "find_similar_entity":
            name = _required(operation, "entity_name", entity_name or query)
            found = EntityPage.of_matches(people.similar(name, entity_type, top_k))
        case "list_entities":
            found = _page(people, entity_type, top_k, offset)
        case "check_entity_relationships":
            return _related(people, _required(operation, "entity1", entity1), entity2, entity_type)
    return EntityAnswer(operation=operation, found=found)


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ, Effect.WRITE},
    destructive=True,  # a summary or a fact is replaced
    idempotent=True,
    tags=("context", "people"),
    capabilities=("remember facts about the user",),
)
def save_profile(
    context: RequestContext,
    summary: Annotated[Text | None, Field(description="Who the user is; replaces")] = None,
    facts: Annotated[
        Metadata | None, Field(description="What is known, by name; null removes one")
    ] = None,
    metadata: Annotated[Metadata | None, Field(description="Anything to keep with it")] = None,
    **identity: Unpack[IdentityArguments],
) -> SavedProfile:
    """Adds to what is known of the user; what is not given stays, what it replaces as past."""
    if summary is None and facts is None and metadata is None:
        raise InvalidArgumentsError(
            "summary, facts and metadata: all are missing.",
            next_actions=("Give at least one of them.",),
        )
    people = context.shelf(**identity).people
    profile, created = people.save_profile(
        summary=summary, facts=facts or {}, metadata=metadata or {}
    )
    return SavedProfile(outcome=_outcome(created), profile=UserProfile.of(profile))


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ, Effect.WRITE},
    destructive=True,  # a summary is replaced
    idempotent=True,
    tags=("context", "people"),
    capabilities=("remember a person, project, team or organization",),
)
def save_entity(
    context: RequestContext,
    entity_name: Annotated[Name, Field(description="Its name, or an alias that is stored")],
    entity_type: Kind = None,
    summary: Annotated[Text | None, Field(description="What it is; replaces")] = None,
    aliases: Annotated[Names | None, Field(description="More names, added to the others")] = None,
    metadata: Annotated[
        Metadata | None, Field(description="Anything to keep with it; null removes a key")
    ] = None,
    importance: Annotated[float | None, Field(ge=0, le=10, description="0 to 10")] = None,
    **identity: Unpack[IdentityArguments],
) -> SavedEntity:
    """Saves a person, project, team, organization or other thing; what is not given stays."""
    people = context.shelf(**identity).people
    entity, created = people.save_entity(
        NewEntity(
            name=entity_name,
            entity_type=entity_type,
            summary=summary,
            aliases=tuple(aliases or ()),
            metadata=metadata or {},
            importance=importance,
        )
    )
    return SavedEntity(outcome=_outcome(created), entity=FoundEntity.of(entity))


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ, Effect.WRITE},
    destructive=True,  # a description is replaced
    idempotent=True,
    tags=("context", "people"),
    capabilities=("remember how two people or things are related",),
)
def relate_entities(
    context: RequestContext,
    source: Source,
    relation: Relation,
    target: Target,
    description: Annotated[Text | None, Field(description="More about it; replaces")] = None,
    metadata: Annotated[
        Metadata | None, Field(description="Anything to keep with it; null removes a key")
    ] = None,
    source_type: EndType = None,
    target_type: EndType = None,
    replaces: Annotated[
        Literal["target", "source"] | None,
        Field(description="Which end is new: with the former one it ends, kept as past"),
    ] = None,
    create_missing: Annotated[bool, Field(description="Also save unknown ends")] = False,
    **identity: Unpack[IdentityArguments],
) -> SavedRelationship:
    """Saves that one entity does something to another: source, relation, target."""
    people = context.shelf(**identity).people
    saved, created, made = people.relate(
        NewRelationship(
            source=source,
            relation=relation,
            target=target,
            source_type=source_type,
            target_type=target_type,
            description=description,
            metadata=metadata or {},
            replaces=replaces,
        ),
        create_missing=create_missing,
    )
    return SavedRelationship(
        outcome=_outcome(created),
        relationship=FoundRelationship.of(saved, {saved.ends[0]}),
        created_entities=list(made),
    )


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.WRITE},
    destructive=True,
    idempotent=True,
    confirmation=Confirmation.RECOMMENDED,
    tags=("context", "people"),
    capabilities=("forget a person, project, team or organization",),
)
def delete_entity(
    context: RequestContext,
    entity_name: Annotated[Name, Field(description="Its name or an alias")],
    entity_type: EndType = None,
    **identity: Unpack[IdentityArguments],
) -> DeletedEntity:
    """Deletes an entity for good, with its aliases and relationships."""
    people = context.shelf(**identity).people
    entity, removed = people.delete_entity(entity_name, entity_type)
    return DeletedEntity.from_attributes(entity, relationships_deleted=removed)


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.WRITE},
    destructive=True,
    idempotent=True,
    confirmation=Confirmation.RECOMMENDED,
    tags=("context", "people"),
    capabilities=("forget a relationship",),
)
def unrelate_entities(
    context: RequestContext,
    source: Source,
    relation: Relation,
    target: Target,
    **identity: Unpack[IdentityArguments],
) -> DeletedRelationship:
    """Deletes a relationship for good; the entities stay."""
    context.shelf(**identity).people.unrelate(source, relation, target)
    return DeletedRelationship(source=source, relation=relation, target=target)


def _required(operation: str, parameter: str, value: str | None) -> str:
    bare = (value or "").strip()
    if not bare:
        raise InvalidArgumentsError(
            f"{parameter}: {operation} needs it.", next_actions=(f"Give {parameter}.",)
        )
    return bare


def _profile(people: People, user_id: str, *, past: bool) -> UserProfile:
    profile = people.profile()
    if profile is None:
        raise NotFoundError(
            f"No profile is stored for user {user_id!r}.",
            next_actions=("Save what is known of the user with save_profile.",),
        )
    return UserProfile.of(profile, people.former(profile) if past else None)


def _standing(people: People, entity: Entity, *, past: bool) -> list[Relationship]:
    return [each for each in people.related(entity) if past or each.until is None]


def _page(people: People, entity_type: EntityType | None, limit: int, offset: int) -> EntityPage:
    entities = people.listed(entity_type, limit=limit, offset=offset)
    return EntityPage.of_listing(entities, people.count(entity_type))


def _related(
    people: People, entity1: str, entity2: str | None, entity_type: EntityType | None
) -> EntityAnswer:
    ones, others, relationships = people.relationships_of(entity1, entity2, entity_type)
    shown = relationships[:MAX_RELATIONSHIPS]
    paths = people.paths(ones, others)[:MAX_RELATIONSHIPS] if others else []
    named = [*ones, *others]
    ids, other_ids = {one.id for one in ones}, {other.id for other in others}
    return EntityAnswer(
        operation="check_entity_relationships",
        found=EntityPage.of_listing(named, len(named)),
        relationships=[FoundRelationship.of(each, ids) for each in shown],
        relationship_count=len(relationships),
        paths=[FoundPath.of(path, ids, other_ids) for path in paths],
    )


def _outcome(created: bool) -> Outcome:
    return "created" if created else "updated"
