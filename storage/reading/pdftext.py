"""PDF to text, page by page."""

from __future__ import annotations

import re
from io import BytesIO

from storage.errors import UnreadableDocumentError
from storage.reading.pdfrows import page_text

_HYPHENATED = re.compile(r"(?<=[^\W\d_])-\n(?=[^\W\d_])")


def read(data: bytes) -> tuple[str, str, None]:
    """Returns the title that the file's metadata give, or nothing, and its text.

    Raises:
        UnreadableDocumentError: If it needs a password, or its pages are pictures.
    """
    from pypdf import PasswordType, PdfReader

    reader = PdfReader(BytesIO(data), strict=False)
    # A file that anyone may open is often encrypted too, under the empty password.
    if reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED:
        raise UnreadableDocumentError(
            "It is encrypted with a password.", suggestions=("Save a copy without a password.",)
        )
    pages = [page_text(page).strip() for page in reader.pages]
    text = "\n\n".join(page for page in pages if page)
    if not text:
        raise UnreadableDocumentError(
            "Its pages hold pictures and no text.",
            suggestions=("Run text recognition (OCR) on it first, for example with ocrmypdf.",),
        )
    title = (reader.metadata and reader.metadata.title) or ""
    return str(title), _HYPHENATED.sub("", text), None
