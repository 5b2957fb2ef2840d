"""What is recorded has no secrets, is bounded, and comes of any arguments whatever."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.reading.shorten import clip
from tools.core.audit.redact import REDACTED, redacted, redacted_text

SECRET = "hunter2-Zq81xyzZq81xyz"  # noqa: S105  # it opens nothing

SECRET_KEYS = [
    *(
        "password",
        "db_pass",
        "Passwd",
        "db_password",
        "TOKEN",
        "access_token",
        "x-auth-token",
        "secret",
    ),
    *("client_secret", "api_key", "apiKey", "X-Api-Key", "Authorization", "cookie", "Set-Cookie"),
    *("AWS_SECRET_ACCESS_KEY", "private_key", "credentials", "auth", "pin", "passphrase"),
]

SECRET_TEXTS = [
    f"Authorization: Bearer {SECRET}",
    f"curl -H 'Authorization: Basic {SECRET}' https://example.com",
    f'{{"headers": {{"authorization": "Bearer {SECRET}"}}}}',
    f"Cookie: sid={SECRET}; theme=dark",
    f"use bearer {SECRET} here",
    f"password={SECRET}&user=ann",
    f"MY_PASSWORD: {SECRET}",
    f'{{"api_key": "{SECRET}"}}',
    f'{{\\"token\\": \\"{SECRET}\\"}}',
    f"export OPENAI_API_KEY='{SECRET} with blanks'",
    f"--client-secret={SECRET}",
    f"https://ann:{SECRET}@example.com/path",
    f"sk-{SECRET}",
    f"eyJhbGciOiJIUzI1NiJ9.{SECRET}.abc",
    f"deploy --password {SECRET} --host db",
    f"deploy --api-key '{SECRET} with blanks' --token-file t",
    f"openssl rsa -passin pass:{SECRET}",
    f"curl -s -u ann:{SECRET} https://example.com",
    f"curl --proxy-user 'ann:{SECRET}' --user=bob:{SECRET} https://example.com",
    f"mysql -u root -p{SECRET} shop",
    f"mysqldump -p'{SECRET} xyzZq81' shop",
    f"sshpass -p {SECRET} ssh host",
    f"docker login -u ann -p {SECRET} registry.example.com",
    f"redis-cli -a {SECRET} ping",
    f"echo {SECRET} | sudo -S true",
    f"echo -n 'ann:{SECRET}' | chpasswd",
    f"printf '{SECRET}' | docker login --password-stdin",
    f"sudo -S true <<< '{SECRET}'",
    f"MY_PASSWORD=a' b'\\ {SECRET} ./run",
    f'MY_PASSWORD="a\\"b {SECRET}" ./run',
    f"unzip -P {SECRET} a.zip",
    f"7z x -p{SECRET} a.7z",
    f"ldapsearch -x -w {SECRET}",
    f"keytool -list -storepass {SECRET}",
    f"curl -b 'session={SECRET}' https://example.com",
    f"wget 'https://example.com/a?x=1&key={SECRET}'",
    f"DB_PASS={SECRET} ./run",
    f"curl -sSu ann:{SECRET} https://example.com",
    f"curl --cert c.pem --pass {SECRET} https://example.com",
    f"curl -F pin={SECRET} https://example.com",
    f"http --auth ann:{SECRET} https://example.com",
    f"http -a 'ann:{SECRET}' https://example.com",
    f"npm login --auth={SECRET}",
    f"npm config set //registry.example.com/:_authToken {SECRET}",
    f"aws configure set aws_secret_access_key {SECRET}",
    f"gh auth login --with-token <<< {SECRET}",
    f"echo {SECRET} | gh auth login --with-token",
    f"echo {SECRET} | su -c id",
    f"echo -e '{SECRET}\\n{SECRET}' | passwd ann",
    f"printf '%s\\n' '{SECRET}' | sudo -S id",
    f"cryptsetup luksOpen disk name <<< {SECRET}",
    f"read -rs PIN <<< {SECRET}",
    f"redis-cli -a{SECRET} ping",
    f"SSHPASS={SECRET} sshpass -e ssh host",
    f"mosquitto_pub -u ann -P {SECRET} -t a -m b",
    f"usermod -p {SECRET} ann",
    f"7za a '-p{SECRET}' a.7z",
    f"rar a -hp{SECRET} a.rar b",
    f"cmdkey /add:host /user:ann /pass:{SECRET}",
    f"xfreerdp /u:ann /p:{SECRET} /v:host",
    f"smbclient //host/share -U ann%{SECRET}",
    f"sqlplus ann/{SECRET}@db",
    f"psql -c \"ALTER USER ann WITH PASSWORD '{SECRET}'\"",
    f"CREATE USER ann IDENTIFIED BY '{SECRET}'",
    f"mysqladmin -u root password {SECRET}",
    f"nmcli dev wifi connect net password {SECRET}",
    f"neo4j-admin dbms set-initial-password {SECRET}",
    f"rabbitmqctl add_user ann {SECRET}",
    f"htpasswd -bc users ann {SECRET}",
    f"wpa_passphrase net {SECRET}",
    f"vault login {SECRET}",
    f"bw unlock {SECRET}",
    f"rclone obscure {SECRET}",
    f"PGPASSWORD={SECRET} psql -h db",
    f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET.replace('-', '')}\n-----END RSA PRIVATE KEY-----",
]


@pytest.mark.parametrize("key", SECRET_KEYS)
@pytest.mark.parametrize("value", [SECRET, [SECRET], {"deep": {"er": SECRET}}, 123_456])
def test_what_a_key_calls_secret_is_left_out_at_any_depth(key: str, value: Any) -> None:
    kept = redacted({"a": {"b": [{key: value}]}}, 500)
    assert kept == {"a": {"b": [{key: REDACTED}]}}


@pytest.mark.parametrize("text", SECRET_TEXTS)
def test_what_looks_like_a_secret_in_a_text_is_left_out(text: str) -> None:
    for kept in (redacted_text(text, 500), json.dumps(redacted({"command": text}, 500))):
        assert "hunter2" not in kept
        assert "xyzZq81" not in kept
        assert REDACTED in kept


@pytest.mark.parametrize(
    "text",
    [
        "my secret is out",
        "the token count",
        "a cookie recipe",
        "https://example.com/a@b",
        "a:b@c",
        "docker run -u 1000:1000 -p 80:80 nginx",
        "docker login --password-stdin registry.io",
        "mysql -h db -P 3306",
        "git bypass=1",
        "sort --key 2",
        "echo hello | cat",
        "make pass: all",
        "mkdir -p library/rare",
        "git log --author ann | cat",
        "grep -u pattern a:b",
        "echo a | sort | uniq",
        "change your password soon",
        "identified by name",
        "cat <<< hello",
        "docker login registry.io",
        "ls -a http/x",
        "redis-cli --scan",
    ],
)
def test_what_only_speaks_of_secrets_stays(text: str) -> None:
    assert redacted_text(text, 500) == text


@pytest.mark.parametrize("value", [None, "", True])
def test_the_lack_of_a_secret_stays(value: Any) -> None:
    assert redacted({"token": value}, 500) == {"token": value}


def test_a_secret_that_the_end_cuts_in_two_is_left_out() -> None:
    for length in range(300, 700):
        assert "hunter2" not in redacted_text(f"{'a ' * (length // 2)}password={SECRET} b", 400)


def test_what_is_too_much_is_cut() -> None:
    assert redacted_text("a" * 100, 10) == clip("a" * 100, 10) == "a" * 9 + "…"
    kept = redacted({"long": "b" * 5_000, "more": [0] * 5_000, "last": "never"}, 900)
    assert len(json.dumps(kept, ensure_ascii=False)) < 1_100
    assert kept["long"].startswith("bbb")
    deep: dict[str, Any] = {}
    for _ in range(5_000):
        deep = {"in": deep}
    assert json.dumps(redacted(deep, 900)).count("in") < 10


def test_numbers_that_are_none_to_json_are_told() -> None:
    kept = redacted(
        {"nan": float("nan"), "big": 10**5_000, "bytes": b"\0", "one": 1, "x": 0.5}, 500
    )
    assert kept == {
        "nan": "nan",
        "big": "a number of 16610 bits",
        "bytes": "bytes",
        "one": 1,
        "x": 0.5,
    }


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner),
    max_leaves=50,
)


@given(value=st.dictionaries(st.text(st.characters()), anything), budget=st.integers(16, 900))
def test_any_arguments_become_json_within_their_bounds(value: Any, budget: int) -> None:
    kept = redacted(value, budget)
    assert len(json.dumps(kept, ensure_ascii=False, allow_nan=False)) < 8 * budget + 500
