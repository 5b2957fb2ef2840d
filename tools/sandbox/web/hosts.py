"""Hosts as written: converted to one spelling, or refused.

Never guesses at spellings that resolvers, proxies, certificates and rules may read differently
(`0x7f.1`, `2130706433`, `127.0.0.1.`, digits of other scripts).
"""

from __future__ import annotations

import re
import unicodedata
from ipaddress import IPv4Address, IPv6Address

from tools.core.errors import InvalidArgumentsError
from tools.sandbox.web.addresses import Address

MAX_HOST = 253
"""Maximum length of a name (RFC 1035, 2.3.4)."""

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


def host_and_port(text: str) -> tuple[str, int]:
    """Splits `host:port`, and returns the host in canonical form."""
    host, _, port = text.rpartition(":")
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
