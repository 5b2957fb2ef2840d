import pytest

from storage.memory.cues import Kind, is_done, is_specific, kind_of, without_cues


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("We decided to use SQLite.", Kind.DECISION),
        ("Never edit anything in legacy/.", Kind.DECISION),
        ("The addresses are not moved yet.", Kind.OPEN),
        ("TODO: fix the rounding.", Kind.OPEN),
        ("I use the Neo layout.", Kind.PERSON),
        ("Wir haben uns für WeasyPrint entschieden.", Kind.DECISION),
        ("Das Protokoll fehlt noch.", Kind.OPEN),
        ("我们决定改用 SQLite。", Kind.DECISION),
        ("待办:修复库存同步。", Kind.OPEN),
        ("Prefiero mensajes cortos.", Kind.DECISION),
        ("Nous avons décidé d'attendre.", Kind.DECISION),
        ("The build takes two minutes.", None),
        ("Should we use SQLite from now on?", None),
    ],
)
def test_a_sentence_is_read_in_its_language(sentence: str, kind: Kind | None) -> None:
    assert kind_of(sentence, by_user=True) is kind


def test_only_the_user_speaks_about_the_user() -> None:
    assert kind_of("I use the linter here.", by_user=False) is None


@pytest.mark.parametrize(
    ("sentence", "done"),
    [("The rounding is fixed.", True), ("库存修好了。", True), ("Is it done?", False)],
)
def test_a_report_of_what_is_done_is_recognized(sentence: str, done: bool) -> None:
    assert is_done(sentence) is done


@pytest.mark.parametrize(
    ("sentence", "specific"),
    [
        ("It runs on Hetzner.", True),
        ("Use port 80.", True),
        ("Call `make`.", True),
        ("See src/app for it.", True),
        ("Nothing else changed.", False),
    ],
)
def test_names_numbers_and_code_make_a_sentence_specific(sentence: str, specific: bool) -> None:
    assert is_specific(sentence) is specific


def test_what_a_statement_is_about_is_left_without_its_cues() -> None:
    assert without_cues("We decided to use tabs from now on.") == "we to use tabs"
