"""Which server an address belongs to, of those that a caller may see."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

import mcp_types as types
from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate

from server.mcp.forwarding import SERVER_KEY
from server.mcp.paging import Section
from server.upstream.browsing.uris import is_ours, namespaced
from server.upstream.connections.listing import Listing
from server.upstream.upstream import Upstream


class Shelf:
    """The addresses that one server has listed.

    Args:
        listing: What it offers.

    Attributes:
        listing: The same.
        uris: Of its resources.
        templates: Its templates as they are written, with what finds an address of theirs; None
            for one whose form cannot be matched.
        schemes: What its addresses begin with.
    """

    def __init__(self, listing: Listing) -> None:
        self.listing = listing
        self.uris = frozenset(each.uri for each in listing.resources)
        self.templates: Mapping[str, UriTemplate | None] = {
            each.uri_template: _parsed(each.uri_template) for each in listing.templates
        }
        self.schemes = frozenset(map(_scheme, (*self.uris, *self.templates)))

    def makes(self, uri: str) -> bool:
        """Whether one of the templates makes an address."""
        found = (each.match(uri) for each in self.templates.values() if each is not None)
        return any(each is not None for each in found)


class Directory:
    """The addresses of some servers: one that two have belongs to the first of them.

    Args:
        shelves: Each with what it lists, in the order of the settings.
        own: Addresses and templates that are ours, before those of all servers.
    """

    def __init__(
        self, shelves: Sequence[tuple[Upstream, Shelf]], own: Collection[str] = ()
    ) -> None:
        self._shelves = shelves
        self._own = own

    def resources(self) -> list[Section[types.Resource]]:
        """The resources of each server; addresses that belong to another are namespaced."""
        taken = set(self._own)
        sections = []
        for upstream, shelf in self._shelves:
            shown = partial(_shown_resource, upstream.name, frozenset(taken))
            sections.append(Section(upstream.name, shelf.listing.resources, shown))
            taken |= shelf.uris
        return sections

    def templates(self) -> list[Section[types.ResourceTemplate]]:
        """The templates of each server; those that belong to another are namespaced."""
        taken = set(self._own)
        sections = []
        for upstream, shelf in self._shelves:
            shown = partial(_shown_template, upstream.name, frozenset(taken))
            sections.append(Section(upstream.name, shelf.listing.templates, shown))
            taken |= shelf.templates.keys()
        return sections

    def owners(self, uri: str) -> list[Upstream]:
        """Who may know an address, most likely first.

        Whoever lists it; else all that have a template for it, then all that have its scheme.
        """
        if is_ours(uri):
            return []
        for upstream, shelf in self._shelves:
            if uri in shelf.uris:
                return [upstream]
        scheme = _scheme(uri)
        making = [upstream for upstream, shelf in self._shelves if shelf.makes(uri)]
        alike = [upstream for upstream, shelf in self._shelves if scheme in shelf.schemes]
        return list(dict.fromkeys([*making, *alike]))

    def owner_of_template(self, template: str) -> Upstream | None:
        """The first server that lists a template; None if none does."""
        owners = (upstream for upstream, shelf in self._shelves if template in shelf.templates)
        return None if is_ours(template) else next(owners, None)


def meta_of(server: str, given: Mapping[str, object] | None) -> dict[str, object]:
    """The `_meta` of what is listed, with the name of the server that it is from."""
    return {**(given or {}), SERVER_KEY: server}


def _shown_resource(server: str, taken: Collection[str], given: types.Resource) -> types.Resource:
    uri = address_for(server, given.uri, taken)
    return given.model_copy(update={"uri": uri, "meta": meta_of(server, given.meta)})


def _shown_template(
    server: str, taken: Collection[str], given: types.ResourceTemplate
) -> types.ResourceTemplate:
    uri = address_for(server, given.uri_template, taken)
    return given.model_copy(update={"uri_template": uri, "meta": meta_of(server, given.meta)})


def address_for(server: str, uri: str, taken: Collection[str] = ()) -> str:
    """An address or a template by which a client reaches that of a server.

    Args:
        server: Its name in the settings.
        uri: Its own address.
        taken: Those that belong to other servers.
    """
    return namespaced(server, uri) if uri in taken or is_ours(uri) else uri


def _parsed(template: str) -> UriTemplate | None:
    try:
        return UriTemplate.parse(template)
    except InvalidUriTemplate:
        return None


def _scheme(uri: str) -> str:
    return uri.partition(":")[0].lower()
