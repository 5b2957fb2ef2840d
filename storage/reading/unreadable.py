"""Names the formats that cannot be read, with what to do instead."""

from __future__ import annotations

from storage.errors import UnreadableDocumentError

_OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OCR = "Save it as PDF and install toolcrib[ocr] to have its text recognized, or add the text"
_NOTES = "Add a text that describes it"
_UNPACK = "Unpack it and import the folder"
_TABLES = "Export its tables as CSV"
_PDF = "Export it as PDF"
# What is inside a compound file, by the name of one of its streams.
_COMPOUND = (
    ("EncryptedPackage", "an Office document with a password", "Save a copy without a password"),
    ("WordDocument", "a Word document in the old format (.doc)", "Save it as .docx"),
    ("PowerPoint Document", "a presentation in the old format (.ppt)", "Save it as .pptx"),
    ("__properties_version1.0", "an Outlook message (.msg)", "Save it as .eml"),
    ("VisioDocument", "a Visio drawing", _PDF),
    ("Quill", "a Publisher document", _PDF),
)
# Formats by the bytes at an offset.
_MAGICS = (
    (0, b"\x89PNG\r\n\x1a\n", "a picture (PNG)", _OCR),
    (0, b"\xff\xd8\xff", "a picture (JPEG)", _OCR),
    (0, b"GIF8", "a picture (GIF)", _OCR),
    (0, b"II*\0", "a picture (TIFF)", _OCR),
    (0, b"MM\0*", "a picture (TIFF)", _OCR),
    (8, b"WEBP", "a picture (WebP)", _OCR),
    (4, b"ftypheic", "a picture (HEIC)", _OCR),
    (4, b"ftypavif", "a picture (AVIF)", _OCR),
    (0, b"8BPS", "a Photoshop file", _PDF),
    (0, b"\0\0\1\0", "an icon", _NOTES),
    (0, b"AC10", "a drawing (DWG)", _PDF),
    (0, b"BM", "a picture (BMP)", _OCR),
    (0, b"ID3", "a recording (MP3)", _NOTES),
    (0, b"\xff\xfb", "a recording (MP3)", _NOTES),
    (0, b"\xff\xf3", "a recording (MP3)", _NOTES),
    (0, b"OggS", "a recording or a video (Ogg)", _NOTES),
    (0, b"fLaC", "a recording (FLAC)", _NOTES),
    (8, b"WAVE", "a recording (WAV)", _NOTES),
    (8, b"AVI ", "a video (AVI)", _NOTES),
    (4, b"ftyp", "a recording or a video (MPEG-4)", _NOTES),
    (0, b"\x1aE\xdf\xa3", "a video (Matroska or WebM)", _NOTES),
    (0, b"7z\xbc\xaf'\x1c", "a 7z archive", _UNPACK),
    (0, b"Rar!", "a RAR archive", _UNPACK),
    (0, b"\x1f\x8b", "a gzip archive", _UNPACK),
    (4, b"1AY&SY", "a bzip2 archive", _UNPACK),
    (0, b"\xfd7zXZ", "an xz archive", _UNPACK),
    (0, b"(\xb5/\xfd", "a Zstandard archive", _UNPACK),
    (257, b"ustar", "a tar archive", _UNPACK),
    (0, b"MSCF", "a cabinet archive", _UNPACK),
    (0, b"SQLite format 3\0", "an SQLite database", _TABLES),
    (12, b"\0\x061b", "a Berkeley database", _TABLES),
    (12, b"a\x15\x06\0", "a Berkeley database", _TABLES),
    (12, b"b1\5\0", "a Berkeley database", _TABLES),
    (4, b"Standard Jet DB", "an Access database", _TABLES),
    (4, b"Standard ACE DB", "an Access database", _TABLES),
    (0, b"PAR1", "a Parquet file", _TABLES),
    (0, b"!BDN", "an Outlook mailbox (.pst)", "Export its messages as .eml or .mbox"),
    (60, b"BOOKMOBI", "an e-book for Kindle", "Convert it to EPUB with Calibre"),
    (0, b"\xe4R\\{\x8c\xd8\xa7M", "a OneNote notebook", _PDF),
    (0, b'x\x9f>"', "an Outlook attachment (winmail.dat)", "Ask for the files as they are"),
    (0, b"\x7fELF", "a program", _NOTES),
    (0, b"MZ", "a program", _NOTES),
    (0, b"\xca\xfe\xba\xbe", "a compiled program", _NOTES),
    (0, b"\0asm", "a compiled program", _NOTES),
    (0, b"\0\1\0\0\0", "a font", _NOTES),
    (0, b"OTTO", "a font", _NOTES),
    (0, b"wOF", "a font", _NOTES),
)


def refusal(what: str, remedy: str) -> UnreadableDocumentError:
    """Makes the error for a format that is known but not read."""
    return UnreadableDocumentError(f"It is {what}, which is not read.", suggestions=(f"{remedy}.",))


def is_compound(data: bytes) -> bool:
    """Returns whether bytes are a compound file, as of Office before 2007."""
    return data.startswith(_OLE_MAGIC)


def compound_refusal(data: bytes) -> UnreadableDocumentError | None:
    """Makes the error for a compound file; None if it is a workbook."""
    for stream, what, remedy in _COMPOUND:
        if stream.encode("utf-16-le") in data:
            return refusal(what, remedy)
    if any(stream.encode("utf-16-le") in data for stream in ("Workbook", "Book")):
        return None
    return refusal("a compound file of an old Windows program", "Save it as .docx, PDF or text")


def binary_refusal(data: bytes) -> UnreadableDocumentError | None:
    """Makes the error for bytes in a known binary format; None if the format is unknown."""
    for at, magic, what, remedy in _MAGICS:
        # Words begin with "BM" and "MZ", too.
        if data.startswith(magic, at) and (not magic.isalpha() or b"\0" in data[:1000]):
            return refusal(what, remedy)
    return None
