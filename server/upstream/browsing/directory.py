"""Addresses of other servers: their own or with the server's name, and who has one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

import mcp_types as types
from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate

from server.mcp.browsing.answers import Section
from server.mcp.wire import SERVER_KEY
from server.upstream.connections.listing import Listing
from server.upstream.upstream import Upstream

SCHEME = "toolcrib://"
_OURS = ("context://", "skill://", SCHEME)


class Addresses:
    """The addresses that one server has listed."""

    def __init__(self, listing: Listing) -> None:
        self.listing = listing
        self.uris = frozenset(each.uri for each in listing.resources)
        self.templates = {
            each.uri_template: _parse(each.uri_template) for each in listing.templates
        }
        self.schemes = frozenset(map(_scheme, (*self.uris, *self.templates)))

    def makes(self, uri: str) -> bool:
        """Returns whether one of the templates matches an address."""
        found = (each.match(uri) for each in self.templates.values() if each is not None)
        return any(each is not None for each in found)


class Directory:
    """The addresses of some servers, in the order of the settings.

    A duplicate belongs to the first server; what is taken belongs to none of them.
    """

    def __init__(
        self, known: Sequence[tuple[Upstream, Addresses]], taken: Collection[str] = ()
    ) -> None:
        self._known = known
        self._taken = taken

    def resources(self) -> list[Section[types.Resource]]:
        """Returns the resources of each server; duplicate addresses are namespaced."""
        return [
            Section.of(
                f"server/{server}", addresses.listing.resources, partial(_resource, server, taken)
            )
            for server, addresses, taken in self._in_order()
        ]

    def templates(self) -> list[Section[types.ResourceTemplate]]:
        """Returns the templates of each server; duplicates are namespaced."""
        return [
            Section.of(
                f"server/{server}", addresses.listing.templates, partial(_template, server, taken)
            )
            for server, addresses, taken in self._in_order()
        ]

    def _in_order(self) -> Iterator[tuple[str, Addresses, frozenset[str]]]:
        """Yields each server with its addresses, and all that belong to those before it."""
        taken = frozenset(self._taken)
        for upstream, addresses in self._known:
            yield upstream.name, addresses, taken
            taken |= addresses.uris | addresses.templates.keys()

    def owners(self, uri: str) -> list[Upstream]:
        """Returns the servers that may know an address, most likely first.

        That is the one that lists it; otherwise those with a matching template, then its scheme.
        """
        if is_ours(uri):
            return []
        for upstream, addresses in self._known:
            if uri in addresses.uris:
                return [upstream]
        scheme = _scheme(uri)
        making = [upstream for upstream, addresses in self._known if addresses.makes(uri)]
        alike = [upstream for upstream, addresses in self._known if scheme in addresses.schemes]
        return list(dict.fromkeys([*making, *alike]))

    def owner_of_template(self, template: str) -> Upstream | None:
        """Returns the first server that lists a template, if any."""
        owners = (upstream for upstream, each in self._known if template in each.templates)
        return None if is_ours(template) else next(owners, None)


def _resource(server: str, taken: Collection[str], given: types.Resource) -> types.Resource:
    uri = address_for(server, given.uri, taken)
    return given.model_copy(update={"uri": uri, "meta": meta_of(server, given.meta)})


def _template(
    server: str, taken: Collection[str], given: types.ResourceTemplate
) -> types.ResourceTemplate:
    uri = address_for(server, given.uri_template, taken)
    return given.model_copy(update={"uri_template": uri, "meta": meta_of(server, given.meta)})


def meta_of(server: str, given: Mapping[str, object] | None) -> dict[str, object]:
    """Returns `_meta` with the name of the server."""
    return {**(given or {}), SERVER_KEY: server}


def is_ours(uri: str) -> bool:
    """Returns whether an address is reserved: `context://`, `skill://`, `toolcrib://`."""
    return uri.lower().startswith(_OURS)


def address_for(server: str, uri: str, taken: Collection[str] = ()) -> str:
    """Returns the address or template by which clients reach that of a server.

    One that is reserved or taken is prefixed with `toolcrib://SERVER/`. Nothing is encoded, so that
    a template remains valid, and so do its values.
    """
    return f"{SCHEME}{server}/{uri}" if uri in taken or is_ours(uri) else uri


def split(uri: str) -> tuple[str, str]:
    """Splits an address into its server and the server's own address; "" without a server."""
    if not uri.startswith(SCHEME):
        return "", uri
    server, slash, own = uri.removeprefix(SCHEME).partition("/")
    return (server, own) if slash else ("", uri)


def _parse(template: str) -> UriTemplate | None:
    """Parses a template; returns None for one that cannot be matched."""
    try:
        return UriTemplate.parse(template)
    except InvalidUriTemplate:
        return None


def _scheme(uri: str) -> str:
    return uri.partition(":")[0].lower()
