"""Converts mail to Markdown: single messages (EML, MHTML) and mailboxes (MBOX)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC
from email import message_from_bytes, policy
from email.header import decode_header, make_header
from email.message import Message
from email.utils import getaddresses, parsedate_to_datetime
from typing import Any, cast

from storage.errors import UnreadableDocumentError
from storage.reading.content import Attachment, Content
from storage.reading.decode import decode, decode_marking

# The line before a message of a mailbox, with the time at which it came; then its first header.
_SENDER_LINE = re.compile(
    rb"^From \S[^\n]{0,200}\d\d:\d\d[^\n]{0,60}\n(?=[A-Za-z][\w-]*:|>From )", re.MULTILINE
)
_EMLX_LENGTH = re.compile(rb"\d{1,10}[ ]*\n")
_MOST_NAMES = 50
_MOST_MESSAGES = 20_000
# A line that is an underline in Markdown, which would make the line above it a heading.
_RULE = re.compile(r"^(?= {0,3}(?:=+|-+)[ \t]*$)", re.MULTILINE)
_ARMOR = re.compile(r"-----BEGIN PGP ([A-Z ]+)-----\n(?!Hash:).*?-----END PGP \1-----", re.DOTALL)
_FORWARDED = re.compile(r"\s*(?:fwd?|wg|tr|rv|i|转发|轉寄)\s*:", re.IGNORECASE)
_FORWARD_LINE = re.compile(r"^-+ ?(?:forwarded|weitergeleitet|début du message)", re.IGNORECASE)
_HISTORY = re.compile(
    r"^(?:-{3,} ?(?:original|ursprüngliche|message d.origine|mensaje original|原始邮件|邮件原件)"
    r"[^\n]{0,40}-{3,}|_{20,}\n\s*(?:from|von|de|发件人)\b.*)$"
    r"|^\*?(?:from|von|de|发件人)\*?[:\uff1a][^\n]+\n"
    r"(?:\*?(?:sent|date|gesendet|datum|envoyé|enviado|发送时间)\*?[:\uff1a])",
    re.IGNORECASE | re.MULTILINE,
)
_ATTRIBUTION = re.compile(r"(?:\n(?!>)[^\n]{1,200}){0,2}\n(?!>)[^\n]{1,300}[:\uff1a][ \t]*\Z")
_SAID = re.compile(r"wrote|writes|schrieb|écrit|escribi|scri(?:tto|sse)|写道|寫道|\d{4}|@")


def read_message(data: bytes) -> Content:
    """Reads one message, with its attachments still to be read."""
    if length := _EMLX_LENGTH.match(data):  # Apple Mail writes the length first
        data = data[length.end() : length.end() + int(length[0])]
    if b"\0" in data[:100]:  # saved as UTF-16
        data = decode(data).text.encode()
    message = message_from_bytes(data, policy=policy.compat32)
    sender, recipients = _people(message, "from"), _people(message, "to", "cc")
    subject, when = _header(message, "subject"), _date(message)
    texts: list[str] = []
    attachments: list[Attachment] = []
    for part in _leaves(message):
        _take(part, texts, attachments, is_forward=_FORWARDED.match(subject) is not None)
    shown = {
        "From": _header(message, "from"),
        "To": _header(message, "to"),
        "Cc": _header(message, "cc"),
        "Date": "" if when is None else when.isoformat(" ", "minutes"),
    }
    head = "  \n".join(f"{name}: {value}" for name, value in shown.items() if value)
    if not message.keys():
        raise UnreadableDocumentError(
            "It is not a mail message.", suggestions=("Rename it to .txt, and add that.",)
        )
    if message.get_content_type() == "multipart/encrypted":
        texts.append("The message is encrypted.")
    metadata = {
        "subject": subject,
        "sender": ", ".join(address for _, address in sender[:_MOST_NAMES]),
        "recipients": [address for _, address in recipients][:_MOST_NAMES],
        "date": "" if when is None else when.isoformat(),
    }
    return Content(
        "\n\n".join(filter(None, (head, *texts))),
        subject,
        event_time=None if when is None else when.timestamp(),
        entities=tuple(name for name, _ in (*sender, *recipients) if name)[:_MOST_NAMES],
        metadata={name: value for name, value in metadata.items() if value},
        attachments=tuple(attachments),
    )


def read_mailbox(data: bytes) -> Content:
    """Reads a mailbox: each message is a section."""
    starts = [match.span() for match in _SENDER_LINE.finditer(data)]
    if len(starts) < 2:  # noqa: PLR2004  # a message that was saved with the line before it
        return read_message(data.partition(b"\n")[2])
    ends = [start for start, _ in starts[1:]] + [len(data)]
    sections: list[str] = []
    dates: list[float] = []
    names: dict[str, None] = {}
    attachments: list[Attachment] = []
    for (_, start), end in list(zip(starts, ends, strict=True))[:_MOST_MESSAGES]:
        raw = re.sub(rb"^>(>*From )", rb"\1", data[start:end], flags=re.MULTILINE)
        try:
            message = read_message(raw)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001, S112  # one message must not hide the others
            continue
        sections.append(f"## {message.title or 'No subject'}\n\n{message.text}")
        dates += [message.event_time] if message.event_time is not None else []
        attachments += message.attachments
        names |= dict.fromkeys(message.entities)
    left = len(starts) - len(sections)
    return Content(
        "\n\n".join(sections),
        event_time=max(dates, default=None),
        entities=tuple(names)[:_MOST_NAMES],
        metadata={"messages": len(sections)},
        attachments=tuple(attachments),
        notes=(f"{left} of its {len(starts)} messages were not read.",) if left else (),
    )


def _header(message: Message, name: str) -> str:
    """Returns a decoded header; of one that is malformed, its raw text."""
    return " ".join(_decode_words(str(message.get(name, ""))).split())


def _people(message: Message, *names: str) -> list[tuple[str, str]]:
    raw = [str(value) for name in names for value in message.get_all(name, ())]
    return [(" ".join(_decode_words(name).split()), address) for name, address in getaddresses(raw)]


def _date(message: Message) -> Any:  # noqa: ANN401  # a datetime, or None
    with suppress(TypeError, ValueError, OverflowError):
        when = parsedate_to_datetime(str(message.get("date", "")))
        when = when.replace(tzinfo=when.tzinfo or UTC)  # "-0000" is UTC
        when.timestamp()  # fails if it is out of range
        return when
    return None


def _leaves(message: Message) -> Iterator[Message]:
    """Yields the parts that are text or files; of alternatives, the plainest with a text."""
    kind = message.get_content_type()
    parts = message.get_payload()
    if kind == "message/rfc822" or not isinstance(parts, list):
        yield message
        return
    if kind == "multipart/encrypted":
        return
    inner = [leaf for part in parts for leaf in _leaves(cast("Message", part))]
    if kind == "multipart/alternative":
        texts = [leaf for leaf in inner if leaf.get_content_type() in {"text/plain", "text/html"}]
        best = min(texts, key=_rank, default=None)
        inner = [leaf for leaf in inner if leaf is best or leaf not in texts]
    yield from inner


def _rank(part: Message) -> tuple[bool, bool]:
    return not _bytes(part).strip(), part.get_content_type() == "text/html"


def _bytes(part: Message) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _take(
    part: Message, texts: list[str], attachments: list[Attachment], *, is_forward: bool
) -> None:
    """Adds a part to the texts or the attachments; signatures and inline pictures are left out."""
    kind, name = part.get_content_type(), part.get_filename() or ""
    if kind == "message/rfc822":
        inner = part.get_payload()
        for each in inner if isinstance(inner, list) else ():
            message = cast("Message", each)
            title = _header(message, "subject") or "message"
            attachments.append(Attachment(f"{title}.eml", message.as_bytes()))
    elif part.get_content_disposition() == "attachment" or (name and kind != "text/html"):
        is_picture = kind.startswith("image/") and part.get("content-id")
        if not is_picture and "signature" not in kind:
            raw = _bytes(part)
            attachments.append(Attachment(_decode_words(name) or "attachment", raw))
    elif kind == "text/html":
        from storage.reading.htmltext import page_text

        texts.append(without_history(page_text(_html(part)), is_forward=is_forward))
    elif kind == "text/calendar":
        attachments.append(Attachment("invitation.ics", _bytes(part)))
    elif part.get_content_maintype() not in {"text", "message"}:
        attachments.append(Attachment("attachment", _bytes(part)))
    else:
        body = without_history(_plain_text(part), is_forward=is_forward)
        texts.append(_RULE.sub("\n", body))


def _decode_words(text: str) -> str:
    """Decodes the encoded words of a header; a malformed one stays as it is."""
    with suppress(LookupError, ValueError):
        return str(make_header(decode_header(text)))
    return text


def _plain_text(part: Message) -> str:
    data = _bytes(part) or str(part.get_payload() or "").encode(errors="replace")
    charset = part.get_content_charset("")
    with suppress(LookupError, UnreadableDocumentError):
        return decode(data, charset or None).text.replace("\r\n", "\n")
    with suppress(UnreadableDocumentError):
        return decode_marking(data).text.replace("\r\n", "\n")
    return data.decode("cp1252", "replace").replace("\r\n", "\n")


def _html(part: Message) -> bytes:
    """Returns a part's HTML in UTF-8, without the messages that it quotes."""
    from lxml import etree, html

    text = _plain_text(part)
    try:
        tree = html.document_fromstring(text.encode(), parser=html.HTMLParser(encoding="utf-8"))
    except etree.ParserError:
        return text.encode()
    quotes = tree.xpath("//blockquote[@type='cite']|//div[@class='gmail_quote']")
    if any(each.strip() for each in tree.xpath("//body//text()[not(ancestor::blockquote)]")):
        for quote in quotes:
            if not _FORWARD_LINE.search(quote.text_content().strip()):
                quote.drop_tree()
    return cast("bytes", html.tostring(tree, encoding="utf-8"))


def without_history(text: str, *, is_forward: bool = False) -> str:
    """Cuts the earlier messages quoted at the end; quotes that are answered in place stay."""
    kept = _ARMOR.sub("", text).rstrip()
    if is_forward:
        return kept
    if match := _HISTORY.search(kept):
        before = kept[: match.start()].rstrip()
        if before and not _FORWARD_LINE.search(before.rpartition("\n")[2]):
            kept = before
    lines = kept.split("\n")
    while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith(">")):
        lines.pop()
    if (shorter := "\n".join(lines)) != kept:
        lead = _ATTRIBUTION.search("\n" + shorter)
        if lead and _SAID.search(lead[0]):
            shorter = ("\n" + shorter)[: lead.start()].strip("\n")
        kept = shorter or kept
    return kept.strip()
