import json
import shutil
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from storage.errors import StorageUnavailableError
from storage.index.embedders import e5 as module
from storage.index.embedders.bundled import DIMENSIONS, MiniLMEmbedder
from storage.index.embedders.e5 import (
    BEGIN,
    END,
    MAX_TOKENS,
    MODEL_FILE,
    TOKENIZER_FILE,
    UNKNOWN,
    E5Embedder,
    UnigramTokenizer,
)
from storage.index.embedding_models import understands

SIZE = 2 * DIMENSIONS + 2
FOLDER = Path(module.__file__).parent
ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def embedder() -> E5Embedder:
    return E5Embedder()


@pytest.fixture(scope="module")
def tokenizer() -> UnigramTokenizer:
    return UnigramTokenizer((FOLDER / TOKENIZER_FILE).read_bytes())


def test_vectors_are_of_unit_length_and_the_promised_form(embedder: E5Embedder) -> None:
    texts = ["a", "", "   ", "heron " * 700, "白鹭在河边", "🦢", "\n\n\t", "\x00"]
    vectors = embedder.embed_passages(texts)
    assert vectors.shape == (len(texts), SIZE)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert embedder.embed_query("heron").shape == (SIZE,)
    assert embedder.embed_passages([]).shape == (0, SIZE)


@pytest.mark.parametrize(
    ("query", "near", "far"),
    [
        ("白鹭在哪里捕鱼", "白鹭在河边捕鱼。", "法院休庭到星期一。"),
        ("Where does the cat sleep?", "猫在沙发上睡觉。", "法院休庭到星期一。"),
        ("How do I cook rice?", "Boil the rice in water for 12 minutes.", "The court adjourned."),
        ("Wo schläft die Katze?", "Die Katze schläft auf dem Sofa.", "Das Gericht vertagte sich."),
        ("Где спит кошка?", "Кошка спит на диване.", "Суд объявил перерыв."),
    ],
)
def test_texts_of_like_meaning_are_closer_in_any_language(
    embedder: E5Embedder, query: str, near: str, far: str
) -> None:
    likeness = embedder.embed_passages([near, far]) @ embedder.embed_query(query)
    assert likeness[0] > likeness[1] + 0.04
    assert likeness[0] > embedder.floor


def test_a_text_has_the_same_vector_alone_and_in_any_company(embedder: E5Embedder) -> None:
    texts = ["heron", "白鹭在河边捕鱼", "the court adjourned " * 9]
    together = embedder.embed_passages(texts)
    for text, vector in zip(texts, together, strict=True):
        assert np.array_equal(embedder.embed_passages([text])[0], vector)


def test_questions_in_other_languages_are_compared_by_the_multilingual_model_alone(
    embedder: E5Embedder, minilm: MiniLMEmbedder
) -> None:
    [passage] = embedder.embed_passages(["The cat sleeps on the sofa."])
    own, english = passage[:DIMENSIONS], passage[DIMENSIONS:-2]
    for query in ("猫在哪里睡觉", "Где спит кошка?", "Wo schläft die Katze?"):
        asked = embedder.embed_query(query)
        assert not asked[DIMENSIONS:].any()
        alone = asked[:DIMENSIONS] / np.linalg.norm(asked)
        assert np.isclose(passage @ asked, alone @ own / np.linalg.norm(own), atol=1e-5)
    question = "Where does the cat sleep?"
    asked = embedder.embed_query(question)
    same = minilm.embed_query(question) @ (english / np.linalg.norm(english))
    assert np.isclose(
        asked[DIMENSIONS:-2] @ english, same * np.linalg.norm(english) ** 2, atol=1e-5
    )


def test_an_answer_in_english_comes_before_unrelated_text_in_another_language(
    embedder: E5Embedder,
) -> None:
    answer = "The style guide says: no abbreviations in public names."
    unrelated = "Der Nutzer wünscht kurze Antworten ohne Aufzählungen."
    passages = embedder.embed_passages([answer, unrelated])
    near, far = passages @ embedder.embed_query("What do we call public things?")
    assert near > far


def test_queries_and_passages_are_read_differently(embedder: E5Embedder) -> None:
    passage, query = embedder.embed_passages(["heron"])[0], embedder.embed_query("heron")
    assert not np.allclose(query, passage, atol=1e-3)


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        ("Where is the key?", True),
        ("Wo ist der Schlüssel?", True),
        ("钥匙在哪里", True),
        ("鍵はどこですか", True),
        ("열쇠는 어디에 있나요", True),
        ("Где ключ?", True),
        ("أين المفتاح؟", True),
        ("चाबी कहाँ है?", True),
        ("กุญแจอยู่ที่ไหน", False),
        ("சாவி எங்கே?", False),
        ("სად არის გასაღები?", False),
        ("Որտե՞ղ է բանալին", False),
        ("চাবি কোথায়?", False),
    ],
)
def test_scripts_without_tokens_are_not_understood(
    embedder: E5Embedder, tokenizer: UnigramTokenizer, text: str, is_read: bool
) -> None:
    assert understands(embedder, text) == is_read
    unknown = tokenizer.encode(text).count(UNKNOWN) / len(text.split())
    assert (unknown < 0.5) == is_read


@pytest.mark.parametrize("name", ["README.md", "docs/query.md", "benchmarks/sets/translated.json"])
def test_texts_have_the_tokens_that_the_library_tokenizers_gives_them(
    tokenizer: UnigramTokenizer, name: str
) -> None:
    content = json.loads((FOLDER / TOKENIZER_FILE).read_text(encoding="utf-8"))
    special = [(name, 0.0) for name in ("<s>", "<pad>", "</s>", "<unk>")]
    library = Tokenizer(models.Unigram([*special, *content["pieces"].items()], UNKNOWN))
    library.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    characters = str.maketrans(content["characters"])
    for text in (ROOT / name).read_text(encoding="utf-8").splitlines():
        plain = unicodedata.normalize("NFC", text).translate(characters)
        inside = library.encode(plain).ids[: MAX_TOKENS - 2]
        assert tokenizer.encode(text) == [BEGIN, *inside, END]


def test_only_the_first_tokens_are_read(tokenizer: UnigramTokenizer) -> None:
    for text in ("heron " * 700, "鹭" * 9000, "\U0001f9a2 x" * 9000):
        ids = tokenizer.encode(text)
        assert (len(ids), ids[0], ids[-1]) == (MAX_TOKENS, BEGIN, END)


@pytest.mark.parametrize(("name", "what"), [(MODEL_FILE, "model"), (TOKENIZER_FILE, "tokenizer")])
def test_a_file_with_another_checksum_is_refused(tmp_path: Path, name: str, what: str) -> None:
    for each in (MODEL_FILE, TOKENIZER_FILE):
        shutil.copy(FOLDER / each, tmp_path)
    with (tmp_path / name).open("r+b") as file:
        file.seek(1_000_000)
        file.write(b"\x00damaged")
    with pytest.raises(StorageUnavailableError, match=f"{what} is damaged: its SHA-256"):
        E5Embedder(tmp_path).embed_query("heron")
