"""Converts hosts to one spelling or refuses them, and decides which addresses are public.

Never guesses at spellings that resolvers, proxies, certificates and rules may read differently
(`0x7f.1`, `2130706433`, `127.0.0.1.`, digits of other scripts).
"""

from __future__ import annotations

import re
import unicodedata
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from tools.core.errors import InvalidArgumentsError

Address = IPv4Address | IPv6Address

# `ipaddress.is_global` calls several of these global. Every block in IANA's registries of
# special-purpose addresses is refused, even those marked as globally reachable, because they
# contain no web servers:
# - https://www.iana.org/assignments/iana-ipv4-special-registry
# - https://www.iana.org/assignments/iana-ipv6-special-registry
# - https://www.iana.org/assignments/ipv6-address-space (global unicast is 2000::/3 alone)
# - https://www.iana.org/assignments/multicast-addresses
# Narrower blocks come before those that contain them, so that the exact reason is reported.
_IPV4 = tuple(
    (IPv4Network(block), what)
    for block, what in (
        ("169.254.169.254/32", "a cloud's metadata service"),
        ("169.254.170.2/32", "a cloud's metadata service"),  # Amazon ECS
        ("100.100.100.200/32", "a cloud's metadata service"),  # Alibaba
        ("168.63.129.16/32", "a cloud's metadata service"),  # Azure, in public space
        ("192.0.0.192/32", "a cloud's metadata service"),  # Oracle
        ("0.0.0.0/32", "unspecified"),
        ("0.0.0.0/8", "of this network (RFC 791)"),
        ("10.0.0.0/8", "private (RFC 1918)"),
        ("100.64.0.0/10", "carrier-grade (RFC 6598)"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local (RFC 3927)"),
        ("172.16.0.0/12", "private (RFC 1918)"),
        ("192.0.0.0/24", "reserved for protocols (RFC 6890)"),
        ("192.0.2.0/24", "for documentation (RFC 5737)"),
        ("192.31.196.0/24", "an AS112 sink (RFC 7535)"),
        ("192.52.193.0/24", "a multicast relay (RFC 7450)"),
        ("192.88.99.0/24", "a 6to4 relay (RFC 7526)"),
        ("192.168.0.0/16", "private (RFC 1918)"),
        ("192.175.48.0/24", "an AS112 sink (RFC 7534)"),
        ("198.18.0.0/15", "for benchmarks (RFC 2544)"),
        ("198.51.100.0/24", "for documentation (RFC 5737)"),
        ("203.0.113.0/24", "for documentation (RFC 5737)"),
        ("224.0.0.0/4", "multicast"),
        ("255.255.255.255/32", "broadcast"),
        ("240.0.0.0/4", "reserved (RFC 1112)"),
    )
)
_IPV6 = tuple(
    (IPv6Network(block), what)
    for block, what in (
        ("fd00:ec2::/32", "a cloud's metadata service"),  # Amazon: ::254, and ::23 for EKS
        ("fd20:ce::254/128", "a cloud's metadata service"),  # Google
        ("fd00:42::42/128", "a cloud's metadata service"),  # Scaleway
        ("fe80::a9fe:a9fe/128", "a cloud's metadata service"),  # OpenStack
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("::ffff:0:0/96", "IPv4-mapped (RFC 4291)"),
        ("::ffff:0:0:0/96", "IPv4-translated (RFC 2765)"),
        ("::/96", "IPv4-compatible (RFC 4291)"),
        ("64:ff9b::/96", "NAT64 (RFC 6052)"),
        ("64:ff9b:1::/48", "local NAT64 (RFC 8215)"),
        ("100::/64", "the discard block (RFC 6666)"),
        ("100:0:0:1::/64", "the dummy prefix (RFC 9780)"),
        ("2001::/32", "Teredo (RFC 4380)"),
        ("2001:2::/48", "for benchmarks (RFC 5180)"),
        ("2001:10::/28", "ORCHID (RFC 4843)"),
        ("2001:20::/28", "ORCHIDv2 (RFC 7343)"),
        ("2001::/23", "reserved for protocols (RFC 2928)"),
        ("2001:db8::/32", "for documentation (RFC 3849)"),
        ("2002::/16", "6to4 (RFC 3056)"),
        ("2620:4f:8000::/48", "an AS112 sink (RFC 7534)"),
        ("3ffe::/16", "of the former 6bone (RFC 3701)"),
        ("3fff::/20", "for documentation (RFC 9637)"),
        ("5f00::/16", "for segment routing (RFC 9602)"),
        ("fc00::/7", "unique-local (RFC 4193)"),
        ("fe80::/10", "link-local (RFC 4291)"),
        ("fec0::/10", "site-local (RFC 3879)"),
        ("ff00::/8", "multicast"),
    )
)
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_ISATAP = {0x00005EFE, 0x02005EFE}
"""Upper half of an interface identifier whose lower half is an IPv4 address (RFC 5214, 6.1)."""


def why_not_public(address: Address) -> str | None:
    """Returns why an address is not public, such as "loopback"; None if it is public."""
    if isinstance(address, IPv4Address):
        return next((what for block, what in _IPV4 if address in block), None)
    if address.scope_id is not None:
        return "bound to one network interface"
    named = next((what for block, what in _IPV6 if address in block), None)
    if named:
        return named
    if address not in _GLOBAL_UNICAST:
        return "outside 2000::/3, where all public addresses are"
    bits = int(address)
    if (bits >> 32) & 0xFFFFFFFF in _ISATAP:
        inner = why_not_public(IPv4Address(bits & 0xFFFFFFFF))
        return inner and f"ISATAP around one that is {inner}"
    return None


MAX_HOST = 253  # maximum length of a name (RFC 1035, 2.3.4)
MAX_PORT = 65_535

_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"\d+|0x[0-9a-f]*")  # WHATWG's "ends in a number" check
_PORT = re.compile(r"[1-9][0-9]{0,4}")


def canonical_host(host: str) -> str:
    """Returns the canonical form: a name in lowercase ASCII, or an address without brackets.

    An IPv6 address is given in brackets.
    """
    if host.startswith("[") and host.endswith("]"):
        return _canonical_ipv6(host[1:-1])
    name = _ascii(host).lower()
    if not name:
        raise _odd(host, "is missing", "Write https://host/path.")
    if name.endswith("."):
        raise _odd(host, "ends in a dot", f"Write {name.rstrip('.')!r}.")
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _canonical_ipv4(host, name)
    if len(name) > MAX_HOST or not all(_LABEL.fullmatch(label) for label in labels):
        raise _odd(host, "is not a host name", "Write it as in the DNS, an IPv6 address as [::1].")
    return name


def literal(host: str) -> Address | None:
    """Returns the address that a canonical host is; None for a name."""
    if ":" in host:
        return IPv6Address(host)
    return IPv4Address(host) if host[-1:].isdigit() and _NUMBER.fullmatch(_last(host)) else None


def host_and_port(text: str, default: int | None = None) -> tuple[str, int]:
    """Splits `host:port`, whose port may be left out if it is the default.

    Returns the host in canonical form.
    """
    host, colon, port = text.rpartition(":")
    if default is not None and (not colon or port.endswith("]")):
        return canonical_host(text), default
    return canonical_host(host), parse_port(port)


def join_host_port(host: str, port: int) -> str:
    """Returns `host:port`, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_port(text: str) -> int:
    """Parses a port."""
    if not _PORT.fullmatch(text) or int(text) > MAX_PORT:
        raise InvalidArgumentsError(
            f"The port {text!r} is not valid.",
            next_actions=[
                f"Give one from 1 to {MAX_PORT} in plain digits, or leave it out with its colon."
            ],
        )
    return int(text)


def _ascii(host: str) -> str:
    if host.isascii():
        return host
    # Digits, letters and dots of other widths; only IDNA treats the ideographic full stop as a dot.
    is_numeric = _last(host).isdecimal()
    if is_numeric or "\u3002" in host or unicodedata.normalize("NFKC", host) != host:
        raise _odd(host, "has characters that look like others", "Write it in plain letters.")
    import idna

    try:
        return idna.encode(host.lower()).decode("ascii")
    except idna.IDNAError as error:
        raise _odd(host, f"is not a host name ({error})", "Write its ASCII form, xn--….") from error


def _canonical_ipv4(host: str, name: str) -> str:
    try:
        return str(IPv4Address(name))
    except ValueError:
        raise _odd(
            host,
            "looks like an address, but not in the usual form",
            "Write an IPv4 address as four decimal numbers without leading zeros.",
        ) from None


def _canonical_ipv6(text: str) -> str:
    try:
        address = IPv6Address(text)
    except ValueError:
        address = None
    if address is None or address.scope_id is not None:
        raise _odd(
            f"[{text}]",
            "is not an IPv6 address, or has a zone",
            "Write it without a zone, such as [2606:4700::1111].",
        )
    return str(address)


def _last(host: str) -> str:
    return host.rpartition(".")[2]


def _odd(host: str, wrong: str, advice: str) -> InvalidArgumentsError:
    return InvalidArgumentsError(f"The host {host[:100]!r} {wrong}.", next_actions=[advice])
