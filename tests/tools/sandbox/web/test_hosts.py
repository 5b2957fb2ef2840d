import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tools.core.errors import InvalidArgumentsError
from tools.sandbox.web.hosts import (
    canonical_host,
    host_and_port,
    literal,
    parse_port,
    why_not_public,
)

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
        *("", "0", "00", "080", "65536", "99999", "-1", "+1", " 1", "1 ", "1_0", "٨٠"),
        *("\uff18\uff10", "0x50", "8e1", "http", "1\n"),
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


REFUSED = """
0.0.0.0 0.0.0.1 0.255.255.255 10.0.0.0 10.0.0.1 10.255.255.255 100.64.0.0 100.64.0.1
100.100.100.200 100.127.255.255 127.0.0.0 127.0.0.1 127.1.2.3 127.255.255.255 168.63.129.16
169.254.0.0 169.254.1.1 169.254.169.254 169.254.170.2 169.254.255.255 172.16.0.0 172.16.0.1
172.31.255.255 192.0.0.0 192.0.0.1 192.0.0.8 192.0.0.9 192.0.0.10 192.0.0.170 192.0.0.192
192.0.0.255 192.0.2.0 192.0.2.1 192.0.2.255 192.31.196.1 192.52.193.1 192.88.99.1 192.88.99.2
192.168.0.0 192.168.0.1 192.168.255.255 192.175.48.1 198.18.0.0 198.18.0.1 198.19.255.255
198.51.100.1 203.0.113.1 203.0.113.255 224.0.0.0 224.0.0.1 239.255.255.255 240.0.0.0 250.1.2.3
255.255.255.254 255.255.255.255
:: ::1 ::2 ::7f00:1 ::127.0.0.1 ::8.8.8.8 ::ffff:0.0.0.0 ::ffff:127.0.0.1 ::ffff:10.0.0.1
::ffff:169.254.169.254 ::ffff:8.8.8.8 ::ffff:0:127.0.0.1 ::ffff:0:8.8.8.8 64:ff9b::7f00:1
64:ff9b::127.0.0.1 64:ff9b::169.254.169.254 64:ff9b::8.8.8.8 64:ff9b:1::1 64:ff9b:1::a00:1
64:ff9b:1:ffff:ffff:ffff:ffff:ffff 64:ff9b:2::1 100::1 100:0:0:1::1 100::ffff:ffff:ffff:ffff
200::1 400::1 1fff::1 2001::1 2001:0:7f00:1:: 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:1::1
2001:1::2 2001:1::3 2001:2::1 2001:2:0:ffff::1 2001:3::1 2001:4:112::1 2001:5::1 2001:10::1
2001:1f:ffff::1 2001:20::1 2001:2f:ffff::1 2001:30::1 2001:1ff:ffff::1 2001:db8::1
2001:db8:ffff:ffff:ffff:ffff:ffff:ffff 2002::1 2002:7f00:1::1 2002:a00:1::1 2002:c0a8:101::1
2002:a9fe:a9fe::1 2002:808:808::1 2620:4f:8000::1 3ffe::1 3fff::1 3fff:fff:ffff::1 4000::1
5f00::1 5f00:ffff::1 6000::1 8000::1 c000::1 e000::1 f000::1 fb00::1 fc00::1 fd00::1
fd00:42::42 fd00:ec2::23 fd00:ec2::254 fd20:ce::254 fdff:ffff::1 fe00::1 fe80::1 fe80::a9fe:a9fe
febf::1 fec0::1 fec0:0:0:ffff::1 feff::1 ff00::1 ff01::1 ff02::1 ff02::fb ff05::2 ff0e::1 ffff::1
2600::5efe:7f00:1 2600::5efe:a00:1 2600::200:5efe:a9fe:a9fe 2600::200:5efe:192.168.1.1
fe80::1%eth0 2606:4700::1111%1
""".split()  # noqa: SIM905  # a table reads best as text

PUBLIC = """
1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 93.184.216.34 100.63.255.255 100.128.0.0 126.255.255.255
128.0.0.1 168.63.129.15 168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0
191.255.255.255 192.0.1.0 192.0.3.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0
198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0 223.255.255.255
2000::1 2001:200::1 2001:4860:4860::8888 2003::1 2400:cb00::1 2600:: 2606:4700:4700::1111
2620:4f:8001::1 2620:fe::fe 2a00:1450:4001::200e 3ffd::1 3fff:1000::1 2600::5efe:808:808
""".split()  # noqa: SIM905  # a table reads best as text


@pytest.mark.parametrize("text", REFUSED)
def test_an_address_with_a_purpose_of_its_own_is_refused(text: str) -> None:
    assert why_not_public(ip_address(text))


@pytest.mark.parametrize("text", PUBLIC)
def test_an_address_of_the_internet_is_public(text: str) -> None:
    assert why_not_public(ip_address(text)) is None


def test_the_standard_library_calls_some_of_them_global() -> None:
    wrong = [text for text in REFUSED if ip_address(text).is_global]
    assert {"224.0.0.1", "64:ff9b::127.0.0.1", "168.63.129.16"} <= set(wrong)


def test_the_reason_is_the_exact_one() -> None:
    assert why_not_public(ip_address("169.254.169.254")) == "a cloud's metadata service"
    assert why_not_public(ip_address("169.254.1.1")) == "link-local (RFC 3927)"
    assert why_not_public(ip_address("64:ff9b::1.1.1.1")) == "NAT64 (RFC 6052)"
    assert why_not_public(ip_address("2600::5efe:7f00:1")) == "ISATAP around one that is loopback"


@given(st.ip_addresses(v=4))
def test_what_the_standard_library_refuses_is_refused_of_ipv4(address: IPv4Address) -> None:
    if not address.is_global or address.is_multicast or address.is_reserved:
        assert why_not_public(address)


@given(st.ip_addresses(v=6))
def test_what_the_standard_library_refuses_is_refused_of_ipv6(address: IPv6Address) -> None:
    if not address.is_global or address.is_multicast or address.is_reserved:
        assert why_not_public(address)


@given(st.ip_addresses(v=6))
def test_nothing_outside_global_unicast_is_public(address: IPv6Address) -> None:
    assume(address not in IPv6Network("2000::/3"))
    assert why_not_public(address)


@given(st.ip_addresses(v=4), st.sampled_from(["::", "::ffff:0:0", "::ffff:0:0:0", "64:ff9b::"]))
def test_an_ipv4_address_is_not_reached_within_one_of_ipv6(inner: IPv4Address, into: str) -> None:
    assert why_not_public(IPv6Address(int(IPv6Address(into)) | int(inner)))


@given(st.ip_addresses(v=4), st.integers(0, 2**80 - 1))
def test_no_relay_is_asked(inner: IPv4Address, rest: int) -> None:
    sixtofour = (0x2002 << 112) | (int(inner) << 80) | rest
    teredo = (0x20010000 << 96) | (int(inner) << 64) | (rest & (2**64 - 1))
    local_nat64 = (0x64FF9B0001 << 80) | rest
    for bits in (sixtofour, teredo, local_nat64):
        assert why_not_public(IPv6Address(bits))


@given(
    st.ip_addresses(v=6, network="2600::/12"),
    st.ip_addresses(v=4),
    st.sampled_from([0x5EFE, 0x0200_5EFE]),
)
def test_isatap_is_judged_by_what_it_is_around(
    prefix: IPv6Address, inner: IPv4Address, mark: int
) -> None:
    around = IPv6Address(((int(prefix) >> 64) << 64) | (mark << 32) | int(inner))
    assert bool(why_not_public(around)) is bool(why_not_public(inner))


@pytest.mark.parametrize("block", ["10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12"])
@given(data=st.data())
def test_a_whole_block_is_refused(block: str, data: st.DataObject) -> None:
    assert why_not_public(data.draw(st.ip_addresses(v=4, network=IPv4Network(block))))
