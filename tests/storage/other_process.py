"""Another process on a data directory, told on stdin what to do; it answers each line with one.

The tests import its embedder and its documents, so that both processes speak of the same things.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storage.contexts.contexts import ContextRepository
from storage.contexts.ingestion import PreparedChunk
from storage.keeping.backup import back_up
from storage.library import Library
from storage.models import ContextType, Identity, NewContext, SearchFilter
from storage.tokenize import tokenize

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

ANN = Identity(user_id="ann")


class HashEmbedder:
    """A vector for each word, by its hash; a text's is their sum. Thousands a second."""

    unread = ""
    floor = 0.25

    def __init__(self, model_id: str = "hash", dimensions: int = 64) -> None:
        self.model_id = model_id
        self.dimensions = dimensions
        self.embedded = 0

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        import numpy as np  # as in the real embedder

        self.embedded += len(texts)
        sums = np.array(
            [
                np.sum([_vector_of(word, self.dimensions) for word in text.split() or [""]], axis=0)
                for text in texts
            ],
            dtype=np.float32,
        )
        unit: Vectors = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        return unit

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self.embed_passages([text])[0]
        self.embedded -= 1
        return vector


@lru_cache(maxsize=1 << 16)
def _vector_of(word: str, dimensions: int) -> Vectors:
    import numpy as np  # as in the real embedder

    seed = int.from_bytes(sha256(word.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).normal(size=dimensions).astype(np.float32)


def new_document(raw_id: str, text: str, **given: Any) -> NewContext:
    """A document that is what its text says."""
    return NewContext(
        **{
            "raw_type": "text",
            "raw_id": raw_id,
            "title": raw_id,
            "text": text,
            "markdown": True,
            "media_type": "text/markdown",
            "sha256": sha256(text.encode()).hexdigest(),
            **given,
        }
    )


def content_of(prefix: str, number: int) -> str:
    return f"{prefix}x{number} lies beside {prefix}y{number // 7} and {prefix}z{number // 50}"


def add_many(library: Library, prefix: str, count: int, identity: Identity = ANN) -> None:
    """Stores one document of that many chunks: `content_of(prefix, 0)` and so on."""
    chunks = [
        PreparedChunk(
            heading="",
            content=content,
            start=0,
            title_terms=(),
            body_terms=tuple(tokenize(content)),
        )
        for content in (content_of(prefix, number) for number in range(count))
    ]
    document = new_document(prefix, prefix, title="")
    ContextRepository(library.database).replace_document(identity, document, chunks)


def drain(library: Library) -> None:
    """Does all the work that is queued."""
    while library.indexer.step():
        pass


def embed(library: Library) -> None:
    """Embeds all that is queued for the current model, and tells the vector index nothing."""
    model, _ = library.models.current()
    while library.indexer._embed_batch(model):
        pass


def lost(library: Library, prefix: str, count: int, every: int) -> list[str]:
    """Which of the chunks are not their own nearest neighbour in the vector index, of every nth."""
    with library.database.read() as connection:
        rows = connection.execute(
            "SELECT content, seq FROM chunks WHERE user_id = ?", (ANN.user_id,)
        )
        seq_of = {str(row[0]): int(row[1]) for row in rows}
    model, embedder = library.models.current()
    missing = []
    for number in range(0, count, every):
        content = content_of(prefix, number)
        vector = embedder.embed_query(content)
        if library.vectors.nearest(model.seq, ANN.user_id, vector, 1) != [seq_of[content]]:
            missing.append(content)
    return missing


def lost_in_search(library: Library, prefix: str, count: int, every: int) -> list[str]:
    """Which of the chunks are not their own first hit, of every nth."""
    contents = [content_of(prefix, number) for number in range(0, count, every)]
    shelf = library.shelf(ANN)
    found = {each: shelf.search(each, SearchFilter(), 1).hits[0].chunk.content for each in contents}
    return [each for each in contents if found[each] != each]


def _ingest(library: Library, prefix: str, count: int) -> None:
    """Acknowledges each addition, replacement and deletion on a line of its own."""
    shelf = library.shelf(ANN)
    library.indexer.start()
    for number in range(count):
        raw_id = f"{prefix}{number}"
        text = f"{raw_id} first. " + " ".join(f"{raw_id}w{word}" for word in range(400))
        shelf.add(new_document(raw_id, text))
        _say({"added": raw_id})
        if number % 3 == 1:
            shelf.add(new_document(raw_id, f"{raw_id} second"))
            _say({"replaced": raw_id})
        if number % 5 == 4:
            shelf.delete_document("text", raw_id)
            _say({"deleted": raw_id})


def churn(library: Library, prefix: str, seed: int, count: int) -> None:
    """Does whatever can be done, mixed; says what it is about to take away, and what it did."""
    chance = random.Random(seed)  # noqa: S311  # any mixture
    shelf = library.shelf(ANN)
    library.indexer.start()
    there: dict[str, str] = {}
    for number in range(count):
        word = f"{prefix}w{number}"
        doing = chance.choices(
            ["add", "replace", "know", "forget", "backup", "rebuild"], [8, 4, 6, 4, 1, 1]
        )[0]
        if doing in {"replace", "forget"} and there:
            gone = chance.choice(sorted(there))
            _say({"leaving": gone})
            if doing == "forget":
                shelf.forget_all(SearchFilter(ids=(there.pop(gone),)))
                _say({"gone": gone})
            else:
                del there[gone]
                shelf.add(new_document(gone, f"{gone} is now {word}"))
                _say({"there": word})
        elif doing == "know":
            shelf.add(
                NewContext(
                    context_type=ContextType.KNOWLEDGE,
                    title="rope",
                    text=f"the rope and the wind and the sea and the tide and the boat {word}",
                )
            )
            _say({"there": word})
        elif doing == "backup":
            target = library.directory.parent / f"{word}.backup"
            back_up(library.database, target)
            _say({"backup": str(target)})
        elif doing == "rebuild":
            library.indexer.rebuild_words()
            library.indexer.rebuild_vectors()
            _say({"rebuilt": word})
        else:
            context = shelf.add(new_document(word, f"{word} lies here")).context
            there[word] = context.id
            _say({"there": word})


def _find(library: Library, query: str) -> dict[str, Any]:
    result = library.shelf(ANN).search(query, SearchFilter(), 100)
    return {
        "mode": result.mode,
        "hits": [[hit.context.raw_id, hit.chunk.content, hit.dense] for hit in result.hits],
    }


def _say(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def main(directory: str, model_id: str = "hash", dimensions: str = "64") -> None:
    library = Library(Path(directory), HashEmbedder(model_id, int(dimensions)))
    _say("ready")
    for line in sys.stdin:
        command, *given = json.loads(line)
        match command:
            case "add":
                add_many(library, *given)
                _say("added")
            case "drain":
                drain(library)
                _say("drained")
            case "step":
                _say(library.indexer.step())
            case "count":
                _say(library.vectors.count(library.models.current()[0].seq, ANN.user_id))
            case "lost":
                _say(lost(library, *given))
            case "find":
                _say(_find(library, *given))
            case "ingest":
                _ingest(library, *given)
                _say("ingested")
            case "churn":
                churn(library, *given)
                _say("churned")
    library.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
