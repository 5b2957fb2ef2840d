"""Finds the server of an address among those that a caller may see."""

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
        listing: What the server offers.

    Attributes:
        listing: What the server offers.
        uris: The addresses of its resources.
        templates: Its templates as written, with their parsed form; None for one that cannot be
         matched.
        schemes: The schemes of its addresses.
    """

    def __init__(self, listing: Listing) -> None:
        self.listing = listing
        self.uris = frozenset(each.uri for each in listing.resources)
        self.templates: Mapping[str, UriTemplate | None] = {
            each.uri_template: _parse(each.uri_template) for each in listing.templates
        }
        self.schemes = frozenset(map(_scheme, (*self.uris, *self.templates)))

    def makes(self, uri: str) -> bool:
        """Returns whether one of the templates matches an address."""
        found = (each.match(uri) for each in self.templates.values() if each is not None)
        return any(each is not None for each in found)


class Directory:
    """The addresses of some servers; a duplicate belongs to the first server.

    Args:
        shelves: The servers with their listings, in the order of the settings.
        own: Our own addresses and templates, which come first.
    """

    def __init__(
        self, shelves: Sequence[tuple[Upstream, Shelf]], own: Collection[str] = ()
    ) -> None:
        self._shelves = shelves
        self._own = own

    def resources(self) -> list[Section[types.Resource]]:
        """Returns the resources of each server; duplicate addresses are namespaced."""
        taken = set(self._own)
        sections = []
        for upstream, shelf in self._shelves:
            shown = partial(_namespaced_resource, upstream.name, frozenset(taken))
            sections.append(Section(upstream.name, shelf.listing.resources, shown))
            taken |= shelf.uris
        return sections

    def templates(self) -> list[Section[types.ResourceTemplate]]:
        """Returns the templates of each server; duplicates are namespaced."""
        taken = set(self._own)
        sections = []
        for upstream, shelf in self._shelves:
            shown = partial(_namespaced_template, upstream.name, frozenset(taken))
            sections.append(Section(upstream.name, shelf.listing.templates, shown))
            taken |= shelf.templates.keys()
        return sections

    def owners(self, uri: str) -> list[Upstream]:
        """Returns the servers that may know an address, most likely first.

        That is the one that lists it; otherwise those with a matching template, then its scheme.
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
        """Returns the first server that lists a template, if any."""
        owners = (upstream for upstream, shelf in self._shelves if template in shelf.templates)
        return None if is_ours(template) else next(owners, None)


def meta_of(server: str, given: Mapping[str, object] | None) -> dict[str, object]:
    """Returns `_meta` with the name of the server."""
    return {**(given or {}), SERVER_KEY: server}


def _namespaced_resource(
    server: str, taken: Collection[str], given: types.Resource
) -> types.Resource:
    uri = address_for(server, given.uri, taken)
    return given.model_copy(update={"uri": uri, "meta": meta_of(server, given.meta)})


def _namespaced_template(
    server: str, taken: Collection[str], given: types.ResourceTemplate
) -> types.ResourceTemplate:
    uri = address_for(server, given.uri_template, taken)
    return given.model_copy(update={"uri_template": uri, "meta": meta_of(server, given.meta)})


def address_for(server: str, uri: str, taken: Collection[str] = ()) -> str:
    """Returns the address or template by which clients reach that of a server.

    Args:
        server: The name of the server in the settings.
        uri: Its own address.
        taken: Addresses that belong to other servers.
    """
    return namespaced(server, uri) if uri in taken or is_ours(uri) else uri


def _parse(template: str) -> UriTemplate | None:
    try:
        return UriTemplate.parse(template)
    except InvalidUriTemplate:
        return None


def _scheme(uri: str) -> str:
    return uri.partition(":")[0].lower()
