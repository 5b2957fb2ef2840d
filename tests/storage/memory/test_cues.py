import pytest

from storage.memory.cues import (
    Kind,
    is_done,
    is_layout,
    is_place,
    is_specific,
    is_task,
    kind_of,
    without_cues,
    without_marks,
)


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
        ("ok lets go with sqlite then", Kind.DECISION),
        ("nah sqlite is enough", Kind.DECISION),
        ("dont touch the schema", Kind.DECISION),
        ("how do i keep the schema", None),
        ("- [ ] the importer", Kind.OPEN),
        ("**Root cause:** a stale lock", Kind.FOUND),
    ],
)
def test_a_sentence_is_read_in_its_language(sentence: str, kind: Kind | None) -> None:
    assert kind_of(sentence, by_user=True) is kind


def test_only_the_user_speaks_about_the_user() -> None:
    assert kind_of("I use the linter here.", by_user=False) is None


def test_what_the_assistant_offers_is_no_statement() -> None:
    assert kind_of("You could always move it later.", by_user=False) is None
    assert kind_of("It is always moved later.", by_user=False) is Kind.OPEN


@pytest.mark.parametrize(
    ("sentence", "place"),
    [("on 10.0.0.7", True), ("port 8091", True), ("numpy==1.26", True), ("two rows", False)],
)
def test_hosts_ports_and_versions_are_places(sentence: str, place: bool) -> None:
    assert is_place(sentence) is place


def test_a_task_a_heading_and_marks_are_recognized() -> None:
    assert is_task("pls rename the helper")
    assert not is_task("the helper is ours")
    assert is_layout("| a | b |")
    assert without_marks("> - [x] **Host:** db-1") == "Host: db-1"


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
