"""What a person is told of words that are not what they look like."""

from __future__ import annotations

import pytest

from tools.conversion.confusables import lookalikes


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("\u0455udo rm x", "'\u0455udo' has U+0455 (cyrillic small letter dze)"),
        ("ls && \u0441\u0430\u0442 x", "has U+0441"),
        ("sudo \u0433m x", "has U+0433"),
        ("\uff52\uff4d -rf x", "has U+FF52 (fullwidth latin small letter r)"),
        ("git push or\u0456gin", "has U+0456"),
        ("curl https://\u0430\u0440\u0440\u04cf\u0435.com/x", "is xn--80ak6aa92e.com"),
        ("url: https://b\xfccher.example:8443/", "'b\xfccher.example' is xn--bcher-kva.example"),
        ("ssh ann@r\u0430y.example", "is xn--ry-7kc.example"),
        ("curl \u0430\u0440\u0440\u04cf\u0435.com", "is xn--80ak6aa92e.com"),
        ("command: \u0440\u0455 aux", "'\u0440\u0455' has U+0440"),
        ("command: A=1 nice -n 5 \u0440\u0455", "'\u0440\u0455' has U+0440"),
        ("timeout 5 \u0440\u0455", "'\u0440\u0455' has U+0440"),
        ("rm \u2013rf x", "'\u2013rf' has U+2013 (en dash)"),
        ("cat a\u2215b", "has U+2215 (division slash)"),
        ("npm install \u0261ulp", "has U+0261"),
        ("npm install \uff4codash", "has U+FF4C"),
        ("curl https://\u0430\u0440\u0440\u04cf\u0435\u3002com/", "is xn--80ak6aa92e.com"),
        ("curl http://\u0455erver/", "is xn--erver-g2e"),
        ("curl https://\U0001f98a.example/", "may be read as xn--9s9h.example"),
    ],
)
def test_words_that_look_like_others_are_described(text: str, told: str) -> None:
    assert told in lookalikes(text)


@pytest.mark.parametrize(
    "text",
    [
        *("git status", "git commit -m '\u0440\u043e\u0441\u0442 \u0446\u0435\u043d'"),
        *("cat r\xe9sum\xe9.pdf", "echo \u201chi\u201d \u2026 caf\xe9", "echo \u4f60\u597d"),
        *("echo '\u2013 a' 1\u20132 a\u2013b", "git commit -m '\u0440\u0443\u043a\u0430 \u0430'"),
    ],
)
def test_other_languages_are_not(text: str) -> None:
    assert lookalikes(text) == ""


def test_many_are_counted() -> None:
    told = lookalikes(" ".join(f"or\u0456gin{number}" for number in range(9)))
    assert told.count("U+0456") == 3
    assert told.endswith("and 6 more.")
