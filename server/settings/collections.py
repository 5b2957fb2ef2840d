"""Settings of sources and directories: `[sources.NAME]` and `[directories.NAME]`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from server.settings.group import SettingsGroup
from storage.directory.models import RESEARCHERS, Directory, field_name
from storage.models import LONGEST_LABEL, ContextType, label_of
from storage.retrieval.routing import MEMORY, ORIGINS, Source
from tools.answers.customization import STANDARD_FILTERS

OWN_NAMES = frozenset({MEMORY, *ORIGINS.values()})
"""Names in answers for findings outside of sources."""

RAW_TYPES = frozenset({"chat", "chatgpt", "claude", "file", "summary", "text"})
"""Existing kinds of source; a directory's name must differ."""

LONGEST_RAW_TYPE = 64
FRONTED = {"groups": ("department", "program"), "items": ("publications",)}
"""Fields of the directory of researchers that dedicated tools use."""


def _as_tuple(value: object) -> object:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list | tuple):
        raise ValueError("is not a list of texts")  # noqa: TRY004  # pydantic passes on ValueError alone
    return value


def _as_groups(value: object) -> object:
    if isinstance(value, Mapping):
        return value
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise ValueError("is neither a list of fields nor a table of them")
    return dict.fromkeys(value, ())


def _labels(values: object) -> tuple[str, ...]:
    listed = values if isinstance(values, list | tuple) else (values,)
    labels = tuple(label for label in map(label_of, listed) if label is not None)
    if not labels or len(labels) < len(listed):
        raise ValueError(
            f"is not a text of at most {LONGEST_LABEL} characters, number or boolean, nor a list"
        )
    return labels


_Text = Annotated[str, Field(max_length=1_000)]
_Word = Annotated[str, Field(min_length=1, max_length=128)]
_Words = Annotated[tuple[_Word, ...], BeforeValidator(_as_tuple)]
_Labels = Annotated[tuple[str, ...], BeforeValidator(_labels)]


class SourceSettings(SettingsGroup):
    """A named part of the stored data that questions can target."""

    description: _Text = ""  # its content, for the model
    search_hints: _Words = ()  # what to ask it for
    supported_filters: _Words = ()  # metadata keys that questions may filter by
    # only contexts of these kinds
    kinds: Annotated[
        tuple[Literal["document", "knowledge", "event"], ...], BeforeValidator(_as_tuple)
    ] = ()
    # only contexts of these kinds of source; with a folder, files alone by default
    raw_types: _Words = ()
    # only files in this folder; a relative path starts at the root
    folder: Annotated[str, Field(max_length=1_024)] = ""
    # only contexts with one of the values under each key of their metadata
    labels: Mapping[_Word, _Labels] = {}

    @field_validator("supported_filters")
    @classmethod
    def _keep_standard_ones(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        if taken := [key for key in keys if key in STANDARD_FILTERS]:
            raise ValueError(
                f"{taken[0]!r} is a filter that every source has; name keys of metadata other than "
                f"{', '.join(STANDARD_FILTERS)}"
            )
        return tuple(dict.fromkeys(keys))

    def to_source(self, name: str, root: Path) -> Source:
        """Builds the source."""
        return Source(
            name=name,
            description=self.description.strip(),
            search_hints=self.search_hints,
            supported_filters=self.supported_filters,
            context_types=tuple(map(ContextType, self.kinds)),
            raw_types=self.raw_types or (("file",) if self.folder else ()),
            under=_prefix(self.folder, root) if self.folder else "",
            labels=self.labels,
        )


class DirectorySettings(SettingsGroup):
    """Maps the fields of a file to the records of a directory; see `Directory`."""

    noun: Annotated[str, Field(max_length=64)] = ""
    description: _Text = ""
    name_field: _Word = "name"
    key: str = ""
    groups: Annotated[Mapping[_Word, _Words], BeforeValidator(_as_groups)] = {}
    texts: _Words = ()
    facts: _Words = ()
    items: _Words = ()
    link: str = ""
    aliases: str = ""

    def to_directory(self, name: str) -> Directory:
        """Builds the directory; for researchers, overrides single fields."""
        given: dict[str, Any] = {field: getattr(self, field) for field in self.model_fields_set}
        if name == RESEARCHERS.name:
            directory = replace(RESEARCHERS, **given)
            _check_fronted(directory)
        else:
            directory = Directory(name=name, **{"noun": self.noun, **given})
        _check_fields(directory)
        return directory


def check_sources(
    sources: Mapping[str, SourceSettings], info: ValidationInfo
) -> Mapping[str, SourceSettings]:
    """Rejects sources that are ambiguous or empty."""
    root = info.data.get("root")
    for name, each in sources.items():
        if name in OWN_NAMES or name == RESEARCHERS.name:
            raise ValueError(f"{name!r} is reserved in answers; choose another name")
        if root is not None:
            _check_named(name, each.to_source, name, root)
    return sources


def check_directories(
    directories: Mapping[str, DirectorySettings], info: ValidationInfo
) -> Mapping[str, DirectorySettings]:
    """Rejects directories that are ambiguous or incomplete."""
    for name, each in directories.items():
        if name in OWN_NAMES | RAW_TYPES:
            raise ValueError(f"{name!r} is reserved in answers; choose another name")
        if name in info.data.get("sources", {}):
            raise ValueError(f"{name!r} is also the name of a source; choose another name")
        _check_named(name, each.to_directory, name)
    return directories


def _check_named(name: str, make: Any, *arguments: Any) -> None:  # noqa: ANN401  # any method and what it takes
    """Prefixes errors with the name of the table."""
    try:
        make(*arguments)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _prefix(folder: str, root: Path) -> str:
    """Returns the prefix of raw_ids of files in a folder, as imports and add_document set them."""
    try:
        path = Path(os.path.normpath(root / Path(folder).expanduser()))
        if not path.is_relative_to(root):  # imports resolve links
            path = path.resolve()
    except RuntimeError as error:  # a user without a home, or a loop of links
        raise ValueError(f"folder {folder!r} cannot be looked up: {error}") from error
    if path == root:
        raise ValueError(
            f"folder {folder!r} is the root itself; leave folder out, or name one inside it"
        )
    return f"{path.relative_to(root) if path.is_relative_to(root) else path}/"


def _check_fronted(directory: Directory) -> None:
    for field, needed in FRONTED.items():
        if missing := [name for name in needed if name not in getattr(directory, field)]:
            raise ValueError(
                f"{field} lacks {missing[0]!r}, which dedicated tools need; keep it, or choose "
                "another name for the directory"
            )


def _check_fields(directory: Directory) -> None:
    if not directory.noun.strip():
        raise ValueError("noun is needed: what one record is, such as 'researcher'")
    roles = (
        directory.name_field,
        *filter(None, [directory.aliases, directory.link]),
        *directory.group_fields,
        *directory.texts,
        *directory.facts,
        *directory.items,
    )
    field, count = Counter(map(field_name, roles)).most_common(1)[0]
    if count > 1:  # only one of them would find anything
        raise ValueError(
            f"the field {field!r} is named twice among name_field, aliases, link, groups and their "
            "further fields, texts, facts and items; give it one meaning"
        )
    longest = max(directory.raw_types, key=len)
    if len(longest) > LONGEST_RAW_TYPE:
        raise ValueError(
            f"{longest!r} would be a kind of source of more than {LONGEST_RAW_TYPE} characters; "
            "choose a shorter name"
        )
