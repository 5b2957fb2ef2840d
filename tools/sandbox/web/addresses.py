"""Decides which addresses are on the public internet.

Explicit rules replace `ipaddress.is_global`, which calls several of these global. Every block in
IANA's registries of special-purpose addresses is refused, even those marked as globally reachable,
because they contain no web servers.

- https://www.iana.org/assignments/iana-ipv4-special-registry
- https://www.iana.org/assignments/iana-ipv6-special-registry
- https://www.iana.org/assignments/ipv6-address-space (global unicast is 2000::/3 alone)
- https://www.iana.org/assignments/multicast-addresses
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address

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
