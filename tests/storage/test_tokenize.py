import re
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from storage.tokenize import MAX_TERM_CHARS, STOP_WORDS, rough_terms, terms_of, tokenize


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Running engines", ["run", "engin"]),
        ("the cat and THE DOG", ["cat", "dog"]),
        ("Café ANGSTRÖM naïve", ["cafe", "angstrom", "naiv"]),
        ("straße Łódź Ørsted", ["strass", "lodz", "orst"]),
        ("\ufb01ne \uff21\uff22\uff23", ["fine", "abc"]),
        ("3.14", ["314", "3", "14"]),
        ("1,000,000 rows", ["1000000", "row"]),
        ("C++ C# F#", ["cpp", "csharp", "fsharp"]),
        ("e-mail emails", ["email", "e", "mail", "email"]),
        ("don't won\u2019t isn't it's", []),
        ("John's O'Brien", ["john", "obrien", "brien"]),
        ("AT&T R&D", ["att", "t", "rd", "r", "d"]),
        ("", []),
        ("?! -- ...", []),
    ],
)
def test_words_are_folded_stemmed_and_stopped(text: str, terms: list[str]) -> None:
    assert tokenize(text) == terms


@pytest.mark.parametrize(
    ("identifier", "terms"),
    [
        ("HTTPServer2", ["httpserver2", "http", "server", "2"]),
        ("camelCase", ["camelcas", "camel", "case"]),
        ("PascalCase", ["pascalcas", "pascal", "case"]),
        ("snake_case", ["snakecas", "snake", "case"]),
        ("kebab-case", ["kebabcas", "kebab", "case"]),
        ("module.function", ["modulefunct", "modul", "function"]),
        ("__init__", ["init"]),
        ("BM25", ["bm25", "bm", "25"]),
        ("sha256", ["sha256", "sha", "256"]),
        ("PDFs", ["pdfs", "pdf"]),
        ("i18n", ["i18n"]),
        ("a3f9b2c1d4", ["a3f9b2c1d4"]),
    ],
)
def test_an_identifier_gives_itself_and_its_parts(identifier: str, terms: list[str]) -> None:
    assert tokenize(identifier) == terms


@pytest.mark.parametrize("spelling", ["snakeCase", "snake_case", "snake-case", "snake.case"])
def test_every_spelling_of_an_identifier_gives_the_same_terms(spelling: str) -> None:
    assert tokenize(spelling) == ["snakecas", "snake", "case"]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("模型很好", ["模型", "型很", "很好"]),
        ("中", ["中"]),
        ("中。文", ["中", "文"]),
        ("データ", ["デー", "ータ"]),
        ("\uff76\uff9e\uff97\uff7d", ["ガラ", "ラス"]),
        ("한국어", ["한국", "국어"]),
        ("ไทย", ["ไท", "ทย"]),
        ("GPT4模型", ["gpt4", "gpt", "4", "模型"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("Привет мир", ["привет", "мир"]),
    ],
)
def test_scripts_without_spaces_give_pairs_of_characters(text: str, terms: list[str]) -> None:
    assert tokenize(text) == terms


def test_a_composed_and_a_decomposed_accent_are_the_same_word() -> None:
    assert tokenize("caf\u00e9") == tokenize("cafe\u0301") == tokenize("CAFE") == ["cafe"]


def test_terms_of_shows_the_first_word_that_gave_a_term() -> None:
    assert terms_of("Engines of the engine, HTTPServer, café, 模型") == {
        "engin": "Engines",
        "httpserver": "HTTPServer",
        "http": "HTTP",
        "server": "Server",
        "cafe": "café",
        "模型": "模型",
    }


@pytest.mark.parametrize(
    ("some", "others"),
    [
        ("retry", "the retries"),
        ("deploying", "deployed"),
        ("Tabellen", "Tabelle"),
        ("pagos", "pago"),
        ("0042_customers", "0042 customer"),
        ("测试环境", "测试环境"),
    ],
)
def test_rough_terms_are_the_same_for_forms_of_a_word(some: str, others: str) -> None:
    assert list(rough_terms(some)) == list(rough_terms(others)) != []


def test_stop_words_are_written_as_they_are_compared() -> None:
    assert all(word.isascii() and word.isalpha() and word.islower() for word in STOP_WORDS)


def test_a_long_run_is_cut_and_nothing_of_it_is_lost() -> None:
    run = "ab" * 1000
    terms = tokenize(run)
    assert max(map(len, terms)) <= MAX_TERM_CHARS
    assert len(terms) == -(-len(run) // MAX_TERM_CHARS)


@given(st.text())
@example("m\u00bd \ufdfa \u3280 \u0132 x\u00b2 \u0149 \uff9e \u3164")
@example("a\u0301\u0323" * 100 + "\u0e38\u0e48" * 100)
@example("a\u00ad\u200bb_-c'\u2019d..e&f")
def test_a_term_never_needs_quoting(text: str) -> None:
    for term in tokenize(text):
        assert 0 < len(term) <= 2 * MAX_TERM_CHARS  # case folding may lengthen
        assert not re.search(r"\s", term)
        assert all(char.isalnum() or ord(char) > 127 for char in term)
        assert term == term.casefold() or not term.isascii()


@given(st.text())
def test_terms_of_knows_exactly_the_terms_of_tokenize(text: str) -> None:
    assert set(terms_of(text)) == set(tokenize(text))


@given(st.text(), st.text())
def test_texts_apart_are_analysed_apart(left: str, right: str) -> None:
    assert tokenize(f"{left}\n{right}") == tokenize(left) + tokenize(right)


@pytest.mark.parametrize(
    "unit",
    ["-", "a", "a-", "a.'", "\u0e38\u0e48", "a\u0301\u0323", "a_", "1,", "1,000", "中", "aB"],
)
def test_a_megabyte_of_anything_is_analysed(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    assert len(tokenize(text)) <= len(text)


def test_the_stemmer_is_loaded_with_the_first_word_only() -> None:
    program = "import sys, storage.tokenize; print('snowballstemmer' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"False"
