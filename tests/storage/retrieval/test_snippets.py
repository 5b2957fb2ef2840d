import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.retrieval.snippets import LEFT_OUT, Passage, snippets


def shown(question: str, text: str, characters: int, heading: str = "", file: str = "a.md") -> str:
    passage = Passage.of(text, "Title", heading, file)
    return snippets(question, [passage], characters)[0]


FILLER = "Nothing of interest is said in this sentence, which is long. "


def test_what_fits_is_shown_whole() -> None:
    assert shown("anything", "# Title\n\nOne **word**. Two.", 100) == "One word. Two."


STORED = [
    "if [[ -f x && ! -d y ]]; then\n    echo  'a'  # *b*\nfi",
    "grid = [[1, 2], [3, 4]]; row = [[x]]; cell = grid[i][j]; handlers[0](y)",
    "[[note|that]] &amp; \\*kept\\* <b>bold</b> [^1] _x_ **y**",
    "# A comment\n\n- one\n+ two\n> three\n| a | b |\n|---|---|\n| c | d |",
]


@pytest.mark.parametrize("file", ["", "a.sh", "a.txt", "a.rst", "a.pdf", "a.py"])
@pytest.mark.parametrize("text", STORED)
def test_what_is_not_markdown_is_shown_as_it_is_stored(text: str, file: str) -> None:
    assert shown("a shell's test", text, 500, file=file) == text
    stored = f"{FILLER * 9}\n\n{text}\n\nThe heron eats fish.\n"
    found = shown("heron", stored, 400, file=file)
    assert "The heron eats fish." in found
    assert all(" ".join(part.split()) in " ".join(stored.split()) for part in found.split(LEFT_OUT))


@pytest.mark.parametrize(
    ("stored", "told"),
    [
        ("Ask [[people/Grace|Grace]] of [[Plan]] on [[2024-05-01]] ![[x.png]]", None),
        ("run [[ -f x ]] with a = [[1, 2]], [['b']], grid[[i]] and rows[i][j]", 0),
        ("`[[ -f x ]]` and `[[y]]`", 0),
        ("```sh\n[[ -f x ]]\n[[y]]\n```", "[[ -f x ]]\n[[y]]"),
        ("\\[\\[Plan]]", "[[Plan]]"),
        ("grep [[:alpha:]] where [[a == b]] or [[http://a][b]]", 0),
    ],
)
def test_wiki_links_of_notes_are_resolved_and_nothing_else(stored: str, told: object) -> None:
    expected = "Ask Grace of Plan on 2024-05-01 x.png" if told is None else told or stored
    assert shown("anything", stored, 500) == expected
    assert shown("anything", stored, 500, file="") == stored


@pytest.mark.parametrize("file", ["a.docx", "a.html"])
def test_pages_and_word_documents_have_no_wiki_links(file: str) -> None:
    stored = "Add [[package]] to **the** file | [[x]]"
    assert shown("anything", stored, 500, file=file) == stored.replace("**", "")


def test_the_sentences_that_answer_are_shown_in_their_order_with_what_is_left_out_marked() -> None:
    text = FILLER * 4 + "The heron eats fish. " + FILLER * 4 + "A heron is grey."
    answer = shown("What do herons eat?", text, 100)
    assert answer.startswith("… ")
    assert "The heron eats fish." in answer
    both = shown("grey herons that eat fish", text, 60)
    assert both == "… The heron eats fish. … A heron is grey."


def test_a_sentence_that_answers_in_other_words_is_shown() -> None:
    text = (
        "The changing rooms were painted last summer. "
        "Towels are handed out at the entrance every day. "
        "You may cancel your membership with a notice of thirty days. "
        "Dogs have to wait outside, whatever their size."
    )
    assert "cancel your membership" in shown("How can someone quit the club?", text, 90)


def test_a_heading_says_what_its_sentences_are_about_unless_it_is_shown_already() -> None:
    text = f"{FILLER * 3}\n\n## Tyres\n\nSix to eight bar.\n\n## Oil\n\n{FILLER * 3}"
    assert "Tyres: Six to eight bar." in shown("pressure of tyres", text, 80)
    assert "Tyres:" not in shown("pressure of tyres", text, 80, "Tyres")


def test_an_item_brings_the_line_that_leads_to_it() -> None:
    plants = "Without water it dies:\n\n- cactus\n- fern with long leaves"
    text = f"{FILLER * 3}\n\n{plants}\n\n{FILLER * 3}"
    assert "Without water it dies:\n• fern with long leaves" in shown("long fern leaves", text, 55)


def test_a_sentence_that_is_too_long_is_cut_at_whole_words() -> None:
    words = "word " * 60 + "the heron eats fish " + "word " * 60
    cut = shown("heron fish", words.strip() + ".", 60)
    assert "the heron eats fish" in cut
    assert set(cut.split()) <= {"…", *words.split()}
    assert len(cut) <= 60


def test_a_script_without_spaces_has_half_the_characters() -> None:
    text = (
        "这句话没有什么意思\uff0c而且很长很长。" * 6
        + "苍鹭吃鱼。"
        + "这句话没有什么意思\uff0c而且很长很长。" * 6
    )
    cut = shown("苍鹭吃什么", text, 80)
    assert "苍鹭吃鱼。" in cut
    assert len(cut) <= 40


def test_rare_words_of_all_passages_count_more() -> None:
    text = "The pump is of the mill. " + FILLER * 3 + "The governor is of the mill."
    other = Passage("The pump is there. The pump is old. The pump is red. " * 3)
    first = snippets("pump governor", [Passage(text), other], 60)[0]
    assert "governor" in first


@given(
    st.text(alphabet="ab# *_|`-.!。1 \n中文", max_size=300),
    st.text(alphabet="ab 中文", max_size=20),
    st.integers(20, 200),
)
def test_no_more_is_shown_than_there_is_room(text: str, question: str, room: int) -> None:
    assert len(shown(question, text, room)) <= room
