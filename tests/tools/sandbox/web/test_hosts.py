from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.core.errors import InvalidArgumentsError
from tools.sandbox.web.hosts import canonical_host, host_and_port, literal, parse_port

TARGETS = ["127.0.0.1", "10.0.0.1", "169.254.169.254", "192.168.1.1", "0.0.0.0"]  # noqa: S104  # they are refused


DIGITS = [0xFF10, 0x24EA, 0x1D7CE, 0x660, 0x966, 0x1D7D8, 0x2080]
"""Zeros of other scripts and styles, each followed by its one to nine."""

LONG_S, SMALL_L, DOT = "\u017f", "\uff4c", "\uff0e"


def _in_digits_of(zero: int, address: str) -> str:
    ones = [zero, *(zero + n if zero != 0x24EA else 0x2460 + n - 1 for n in range(1, 10))]
    return address.translate({ord("0") + n: one for n, one in enumerate(ones)})


def _spellings(address: str) -> list[str]:
    """Ways to write an IPv4 address that some resolver or other understands."""
    a, b, c, d = (int(part) for part in address.split("."))
    whole = int(IPv4Address(address))
    return [
        str(whole),
        f"0{whole:o}",
        f"0x{whole:x}",
        f"0X{whole:X}",
        f"0x{whole:08x}",
        f"0x0000{whole:x}",
        f"{a}.{(b << 16) | (c << 8) | d}",
        f"{a}.{b}.{(c << 8) | d}",
        f"0{a:o}.0{b:o}.0{c:o}.0{d:o}",
        f"00{a:o}.{b}.{c}.{d}",
        f"0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}",
        f"0x{a:x}.{b}.{c}.{d}",
        f"{a}.{b}.{c}.0x{d:x}",
        f"{a}.{b}.{c}.0{d:o}",
        f"{a:03d}.{b:03d}.{c:03d}.{d:03d}",
        f"{a:04d}.{b}.{c}.{d}",
        f"0x{a:x}.{(b << 16) | (c << 8) | d}",
        f"0{a:o}.0x{b:x}.{(c << 8) | d}",
        f"{a + 256}.{b}.{c}.{d}",
        f"{whole + 2**32}",
        address + ".",
        address + "..",
        f"{whole}.",
        "." + address,
        address.replace(".", ".."),
        address.replace(".", "。"),
        address.replace(".", DOT),
        address.replace(".", "｡"),
        *(_in_digits_of(zero, address) for zero in DIGITS),
        address.replace(".", "%2e"),
        "".join(f"%{ord(each):02x}" for each in address),
        f"%{ord(address[0]):02X}{address[1:]}",
        f"[{address}]",
        f"[::ffff:{address}%1]",
        f"[::{address}%25lo]",
        f"[::ffff:{address}",
        f"::ffff:{address}",
        f"[::ffff:{_in_digits_of(0xFF10, address)}]",
        f"[::ffff:{a}.{b}.{c}.0{d}]",
        f"-{address}",
        f"+{address}",
        f"{address} ",
        f" {address}",
        f"{address}\t",
        f"{address}\n",
        f"{address}\0",
        f"{address}\u00ad",
        f"{address}\u200b",
        f"{address}\u2060",
        f"{address}/",
        f"{address}\\",
        f"{address}#",
        f"{address}?",
        f"{address}@",
        f"{address},",
        f"{address};",
        f"a@{address}",
        f"{address}%00.example.com",
        f"{address}%0d%0a",
        f"{a}.{b}.{c}",
        f"{a}.{b}.{c}.{d}.{d}",
        f"{a}.{b}.{c}.0x",
        f"{a}_0.{b}.{c}.{d}",
    ]


ODD = [spelling for address in TARGETS for spelling in _spellings(address) if spelling != address]
ODD += [
    *("", ".", "..", "-", "_." * 3, "a..b", ".a", "a.", "-a.com", "a-.com", "a b", "a/b", "a:b"),
    *("*", "*.com", "a%", "a%41", "a'b", 'a"b', "a<b", "a>b", "a|b", "a^b", "a`b", "a{b", "a}b"),
    *("[", "]", "[]", "[::1", "::1]", "[[::1]]", "[::1]]", "[::g]", "[1]", "[:::1]", "[1::2::3]"),
    *("[fe80::1%eth0]", "[fe80::1%25eth0]", "[::1%]", "[v1.fe80::a]", "[12345::1]", "[ ::1]"),
    *(
        "localhost.",
        "LOCALHOST.",
        f"{SMALL_L}ocalhost",
        "loca\u00adlhost",
        "ⓛocalhost",
        f"localho{LONG_S}t",
    ),
    *("a" * 64, f"{'a' * 63}.{'b' * 63}.{'c' * 63}.{'d' * 63}", "a\u2024com", "0x", "0xg.0x1"),
    *("a.1", "a.0x1f", "example.0", "example.00", "1.2.3.4.5", "999.1.1.1", "256.0.0.0"),
    *("xn--\u00e4", "a\ud800b", "\u0301a.com", "a\u202eb.com", "a\u3000b", "\ufeffa.com", "a。b"),
]


@pytest.mark.parametrize("host", ODD)
def test_an_odd_host_is_refused_with_what_to_do(host: str) -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        canonical_host(host)
    assert caught.value.next_actions


def test_the_system_understands_many_of_them_as_addresses() -> None:
    def understood(host: str) -> bool:
        try:
            return bool(socket.inet_aton(host))
        except (OSError, ValueError):
            return False

    naively_public = [
        host
        for host in ODD
        if understood(host)
        and urlsplit(f"http://{host}/").hostname
        and not host.startswith(("127.0.0.1", "10.0.0.1", "169.254.169.254", "192.168.1.1"))
    ]
    assert len(naively_public) > 50
    assert len(ODD) > 300


@pytest.mark.parametrize(
    ("given_as", "canonical"),
    [
        ("example.com", "example.com"),
        ("EXAMPLE.Com", "example.com"),
        ("a-b.example", "a-b.example"),
        ("_dmarc.example.com", "_dmarc.example.com"),
        ("localhost", "localhost"),
        ("3com.com", "3com.com"),
        ("1.2.3.4", "1.2.3.4"),
        ("[::1]", "::1"),
        ("[2606:4700:0:0::1111]", "2606:4700::1111"),
        ("[::FFFF:1.2.3.4]", "::ffff:102:304"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("例え.テスト", "xn--r8jz45g.xn--zckzah"),
    ],
)
def test_a_host_has_one_spelling(given_as: str, canonical: str) -> None:
    assert (
        IPv6Address(canonical_host(given_as)) == IPv6Address(canonical)
        if (":" in canonical)
        else canonical_host(given_as) == canonical
    )


@given(st.ip_addresses())
def test_an_address_is_its_own_literal(address: IPv4Address | IPv6Address) -> None:
    written = f"[{address}]" if address.version == 6 else str(address)
    assert literal(canonical_host(written)) == address


@given(st.text(max_size=40))
def test_any_text_is_a_plain_host_or_refused(text: str) -> None:
    try:
        host = canonical_host(text)
    except InvalidArgumentsError:
        return
    assert host.isascii()
    assert not set(host) - set("abcdefghijklmnopqrstuvwxyz0123456789-_.:")
    if literal(host) is None:
        with pytest.raises(OSError, match="illegal IP address"):
            socket.inet_aton(host)


@pytest.mark.parametrize(
    "port",
    [
        "",
        "0",
        "00",
        "080",
        "65536",
        "99999",
        "-1",
        "+1",
        " 1",
        "1 ",
        "1_0",
        "٨٠",
        "\uff18\uff10",
        "0x50",
        "8e1",
        "http",
        "1\n",
    ],
)
def test_an_odd_port_is_refused(port: str) -> None:
    with pytest.raises(InvalidArgumentsError):
        parse_port(port)


@pytest.mark.parametrize("port", [1, 22, 80, 443, 6379, 8080, 65_535])
def test_any_port_may_be_asked(port: int) -> None:
    assert parse_port(str(port)) == port


def test_host_and_port_are_taken_apart() -> None:
    assert host_and_port("LocalHost:8000") == ("localhost", 8000)
    assert host_and_port("[::1]:80") == ("::1", 80)
    for odd in ("localhost", "localhost:", "::1:80", "*.a:1", ":80", "[::1]"):
        with pytest.raises(InvalidArgumentsError):
            host_and_port(odd)
