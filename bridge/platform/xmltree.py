"""XML elements with line numbers, read by expat; entity tricks and outside references are refused."""

import dataclasses
import re
from pathlib import Path
from xml.parsers import expat

from bridge.errors import BridgeError

#: Larger files are not platform descriptions (SimGrid itself would need minutes).
MAX_BYTES = 256 * 1024 * 1024
MAX_DEPTH = 64


_COMMENT = re.compile(rb"<!--.*?-->|<!\[CDATA\[.*?\]\]>", re.DOTALL)
_FOREIGN_ENTITY = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos|#[0-9]+|#x[0-9A-Fa-f]+);)")


@dataclasses.dataclass(slots=True)
class Element:
    """One XML element: tag, attributes, 1-based line of its start tag, and children in document order."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list["Element"] = dataclasses.field(default_factory=list)
    text_line: int = 0  # line of the first text that is not white space, 0 if there is none


class XmlError(Exception):
    """Not a readable platform file: (line, code, message, remedy)."""

    def __init__(self, line: int, code: str, message: str, remedy: str) -> None:
        super().__init__(message)
        self.line = line
        self.code = code
        self.message = message
        self.remedy = remedy


def _refused(line: int, what: str) -> XmlError:
    return XmlError(
        line,
        "xml-entity",
        f"{what} is refused",
        'Write the text out; the document type is just <!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">.',
    )


def read_bytes(path: str | Path) -> bytes:
    """Contents of the file. Raises BridgeError if it is missing, a folder, or absurdly large."""
    path = Path(path)
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise BridgeError(
                f"the file has {size} bytes, more than any platform description",
                where=str(path),
                remedy="Describe large machines with <cluster>, which needs a few lines.",
            )
        return path.read_bytes()
    except OSError as error:
        raise BridgeError(
            f"cannot read the platform file: {error.strerror}", where=str(path), remedy="Check the path."
        ) from error


def parse_xml(data: bytes) -> tuple[Element, str]:
    """Parse a document into (root element, system id of its document type or '').

    Raises:
        XmlError: malformed XML, an internal document type subset, any entity but the five of XML, or nesting
            deeper than `MAX_DEPTH`.
    """
    parser = expat.ParserCreate()
    parser.buffer_text = True
    stack: list[Element] = []
    root: list[Element] = []
    doctype = [""]

    def refuse(what: str) -> None:
        raise _refused(parser.CurrentLineNumber, what)

    def start_doctype(_name: str, system: str | None, _public: str | None, internal: int) -> None:
        if internal:
            refuse("a document type with declarations of its own")
        doctype[0] = system or "-"

    def start(tag: str, attributes: dict[str, str]) -> None:
        if len(stack) >= MAX_DEPTH:
            raise XmlError(
                parser.CurrentLineNumber,
                "xml-depth",
                f"elements are nested more than {MAX_DEPTH} deep",
                "Flatten the zones.",
            )
        element = Element(tag, attributes, parser.CurrentLineNumber)
        (stack[-1].children if stack else root).append(element)
        stack.append(element)

    def end(_tag: str) -> None:
        stack.pop()

    def text(data: str) -> None:
        if stack and not stack[-1].text_line and not data.isspace():
            stack[-1].text_line = parser.CurrentLineNumber

    def external(*_args: object) -> int:
        refuse("an external entity")
        return 0

    parser.StartDoctypeDeclHandler = start_doctype
    parser.EntityDeclHandler = lambda *_: refuse("an entity declaration")
    parser.SkippedEntityHandler = lambda *_: refuse("an undefined entity")
    parser.ExternalEntityRefHandler = external
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        message = expat.ErrorString(error.code) or "malformed XML"
        raise XmlError(
            error.lineno, "xml-syntax", f"not well-formed XML: {message}", "Mend the XML at this place."
        ) from error
    # Expat passes over unknown entities in attributes, since the document type could have declared them.
    plain = _COMMENT.sub(lambda match: b"\n" * match[0].count(b"\n"), data)
    if (entity := _FOREIGN_ENTITY.search(plain)) is not None:
        raise _refused(plain[: entity.start()].count(b"\n") + 1, "an undefined entity")
    return root[0], doctype[0]
