"""Sites on loopback that answer with whatever bytes a test writes, and names that lead there."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tools.sandbox.web.client import WebClient
from tools.sandbox.web.guard import AddressGuard
from tools.sandbox.web.response import WebResponse

Answer = bytes | Iterable[bytes]


@dataclass
class Asked:
    """One request, as it came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    raw: bytes


@dataclass
class Site:
    """A server whose every answer is written by hand.

    Attributes:
        routes: What is answered to which path: bytes as they go out, or what makes them.
        asked: What came.
        greeting: What is said to whoever connects, without a request.
    """

    context: ssl.SSLContext | None = None
    routes: dict[str, Answer | Callable[[Asked], Answer]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    greeting: bytes | None = None
    closing: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        """Where a path is."""
        scheme = "https" if self.context else "http"
        return f"{scheme}://{host}:{self.port}{path}"

    def drip(self, start: bytes, piece: bytes, seconds: float = 0.02) -> Iterator[bytes]:
        """A beginning, and then a piece now and then, for ever."""
        yield start
        while not self.closing.wait(seconds):
            yield piece

    def endless(self, start: bytes, piece: bytes) -> Iterator[bytes]:
        """A beginning, and then pieces as fast as they are taken."""
        yield start
        while not self.closing.is_set():
            yield piece

    def close(self) -> None:
        self.closing.set()
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(10)
        with suppress(OSError), connection:
            if self.context:
                connection = self.context.wrap_socket(connection, server_side=True)
            with connection:
                self._converse(connection)

    def _converse(self, connection: socket.socket) -> None:
        if self.greeting is not None:
            connection.sendall(self.greeting)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65_536):
                continue
            return
        asked = _receive(connection)
        if asked is None:
            return
        self.asked.append(asked)
        answer = self.routes.get(asked.target.partition("?")[0], NOT_FOUND)
        made = answer(asked) if callable(answer) else answer
        for part in [made] if isinstance(made, bytes) else made:
            connection.sendall(part)


NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


def _receive(connection: socket.socket) -> Asked | None:
    raw = b""
    while b"\r\n\r\n" not in raw:
        more = connection.recv(65_536)
        if not more:
            return None
        raw += more
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {
        name.lower(): value.strip(" \t") for name, _, value in (li.partition(":") for li in lines)
    }
    while len(body) < int(headers.get("content-length", 0)):
        body += connection.recv(65_536)
    method, target, _ = first.split(" ")
    return Asked(method, target, headers, body, raw)


def ok(body: bytes = b"fine", *headers: str) -> bytes:
    """An answer with a body."""
    lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def redirect(location: str, status: int = 302) -> bytes:
    """An answer that leads on."""
    head = f"HTTP/1.1 {status} Moved\r\nContent-Length: 0\r\nLocation: {location}\r\n\r\n"
    return head.encode()


class Web:
    """Sites, the names that lead to them, and clients that may ask them by name."""

    ok = staticmethod(ok)
    redirect = staticmethod(redirect)

    def __init__(self) -> None:
        self.sites: list[Site] = []
        self.looked_up: list[str] = []

    def site(self, context: ssl.SSLContext | None = None) -> Site:
        site = Site(context)
        self.sites.append(site)
        return site

    def resolve(self, host: str, _port: int) -> list[str]:
        """Every name leads to loopback."""
        self.looked_up.append(host)
        return ["127.0.0.1"]

    def client(self, *names: str, **options: Any) -> WebClient:
        """A client that may ask every site by these names, and loopback by no other."""
        private = [f"{name}:{site.port}" for site in self.sites for name in names]
        return WebClient(AddressGuard(private, resolver=self.resolve), **options)

    async def get(self, site: Site, path: str = "/", **options: Any) -> WebResponse:
        """What a client is answered that asks a site as a.test."""
        return await self.client("a.test").request("GET", site.url(path, "a.test"), **options)


@pytest.fixture
def web() -> Iterator[Web]:
    web = Web()
    yield web
    for site in web.sites:
        site.close()


@pytest.fixture
def site(web: Web) -> Site:
    return web.site()


@dataclass
class Authority:
    """A certificate authority of the test's own."""

    certificate: Any
    key: Any
    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / "ca.pem"

    def server(self, *names: str, days: int = 1) -> ssl.SSLContext:
        """The TLS of a server with these names."""
        certificate, key = _certificate(names, self, days)
        path = self.folder / f"{len(list(self.folder.iterdir()))}.pem"
        path.write_bytes(_pem(certificate) + _pem_of_key(key))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    certificate, key = _certificate(("Test authority",), None, 1)
    made = Authority(certificate, key, tmp_path_factory.mktemp("authority"))
    made.file.write_bytes(_pem(certificate))
    return made


@pytest.fixture
def trusted(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """The authority, among those that this machine trusts."""
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    return authority


def _certificate(names: tuple[str, ...], by: Authority | None, days: int) -> tuple[Any, Any]:
    def called(name: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])

    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(called(names[0]))
        .issuer_name(by.certificate.subject if by else called(names[0]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=10))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=by is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(_usage(signs=by is None), critical=True)
    )
    if by:
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(by.key.public_key())
        alternatives = x509.SubjectAlternativeName([_alternative(name) for name in names])
        builder = builder.add_extension(issuer, critical=False)
        builder = builder.add_extension(alternatives, critical=False)
    return builder.sign(by.key if by else key, hashes.SHA256()), key


def _usage(*, signs: bool) -> x509.KeyUsage:
    """What a key may do; without it and the identifiers Python 3.13 trusts no certificate."""
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(name: str) -> Any:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: Any) -> bytes:
    data: bytes = certificate.public_bytes(Encoding.PEM)
    return data


def _pem_of_key(key: Any) -> bytes:
    data: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return data
