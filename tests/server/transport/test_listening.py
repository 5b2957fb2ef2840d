import socket

import pytest
from pydantic import SecretStr

from server.settings import SettingsError
from server.settings.http import HttpSettings, TokenSettings
from server.transport.listening import address_of, allowed_callers, listen

TOKEN = SecretStr("9J4xk-Qm2vZt7RbYw_aL3uHd")
WEAK = {
    "one character": "a",
    "a short one": "9J4xk-Qm2vZt7RbYw_aL3uH",
    "one character, often": "a" * 64,
    "few characters": "abababcc" * 8 + "a",
    "a word, often": "Tr0ub4dor-" * 5,
}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "0", "192.0.2.1"])  # noqa: S104  # must be refused
def test_an_address_that_others_can_reach_needs_a_token(host: str) -> None:
    with pytest.raises(SettingsError) as caught:
        listen(HttpSettings(host=host, port=0))
    assert f"http.host = {host!r}" in caught.value.message
    assert "TOOLCRIB_HTTP__TOKEN" in caught.value.message


def test_with_an_issuer_such_an_address_needs_the_url_that_clients_use() -> None:
    http = HttpSettings(host="0.0.0.0", port=0, issuer="https://id.example/")  # noqa: S104  # must be refused
    with pytest.raises(SettingsError, match=r"set http\.resource, for example https://name/mcp"):
        listen(http)
    http = http.model_copy(update={"resource": "https://crib.example:8443/mcp"})
    with listen(http) as listener:
        assert "crib.example:8443" in allowed_callers(http, listener).allowed_hosts


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1"])
def test_a_loopback_address_needs_no_token(host: str) -> None:
    with listen(HttpSettings(host=host, port=0)) as listener:
        assert listener.getsockname()[0].startswith("127.")


def test_with_a_token_every_address_may_be_listened_on() -> None:
    with listen(HttpSettings(host="0.0.0.0", port=0, token=TOKEN)) as listener:  # noqa: S104  # what the test is about
        assert address_of(listener).startswith("0.0.0.0:")


@pytest.mark.parametrize("weak", WEAK.values(), ids=WEAK)
def test_a_token_that_can_be_guessed_is_refused_where_others_can_reach(weak: str) -> None:
    ann = {"ann": TokenSettings(token=SecretStr(weak), user_id="ann")}
    for name, http in {
        "http.token": HttpSettings(host="0.0.0.0", port=0, token=SecretStr(weak)),  # noqa: S104  # must be refused
        "http.tokens.ann.token": HttpSettings(host="::", port=0, token=TOKEN, tokens=ann),
    }.items():
        with pytest.raises(SettingsError, match=rf"{name} \({len(weak)} characters") as caught:
            listen(http)
        assert "secrets.token_urlsafe(32)" in caught.value.message
        assert f" {weak} " not in caught.value.message
    with listen(HttpSettings(port=0, token=SecretStr(weak), tokens={})):
        pass


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError, match=f"127.0.0.1 port {port} is in use.*--port"):
            listen(HttpSettings(port=port))


def test_an_address_of_another_machine_is_named() -> None:
    with pytest.raises(SettingsError, match=r"192\.0\.2\.1 port 0 failed: "):
        listen(HttpSettings(host="192.0.2.1", port=0, token=TOKEN))


@pytest.mark.parametrize("host", ["no..host", "a" * 300, "no host"])
def test_a_host_that_is_no_address_is_named(host: str) -> None:
    with pytest.raises(SettingsError) as caught:
        listen(HttpSettings(host=host, port=0))
    assert f"http.host = {host!r} is not an address" in caught.value.message


def test_loopback_names_the_own_address_and_those_of_the_settings_are_answered() -> None:
    http = HttpSettings(
        host="127.1",
        port=0,
        allowed_hosts=("crib.example",),
        allowed_origins=("https://app.example",),
    )
    with listen(http) as listener:
        callers = allowed_callers(http, listener)
    for host in ("localhost", "localhost:*", "[::1]:*", "127.0.0.1", "127.1:*", "crib.example"):
        assert host in callers.allowed_hosts
    for origin in ("http://localhost:*", "http://127.1", "https://app.example"):
        assert origin in callers.allowed_origins
    assert callers.enable_dns_rebinding_protection


def test_no_piece_of_an_answer_waits_for_the_acknowledgement_of_the_one_before() -> None:
    with (
        listen(HttpSettings(port=0)) as listener,
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
