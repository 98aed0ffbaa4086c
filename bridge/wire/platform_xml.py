"""Platform files as SimGrid itself reads them: elements with their lines, by the rules of its own parser.

That parser is no general one. It refuses what XML allows (a byte-order mark, UTF-16, any document type but
SimGrid's, every entity but the five of XML and numbers), and takes what XML forbids (`--` in comments, white
space before `<?xml`, attributes without space between them). So this module reads in the same way.
"""

import bisect
import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

from bridge.base.errors import BridgeError

#: Larger files are not platform descriptions (SimGrid itself would need minutes).
MAX_BYTES = 256 * 1024 * 1024
DOCTYPE = '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'

_S = r"[ \t\n\r\f]"
_NAME = r"[A-Za-z_:][A-Za-z0-9.:_-]*+"
# Groups are repeated in (?>...), never as (...)*+, which Python 3.11.0 to 3.11.3 match wrongly.
# A comment is read by pairs of dashes: `--->` does not end one.
_COMMENT = r"<!--(?>(?:[^-]++|-(?!-)|--(?!>))*)-->"
_PI = r"<\?(?>(?:[^?]++|\?(?!>))*)\?>"
_CDATA = r"<!\[CDATA\[(?>(?:[^\]]++|\](?!\]>))*)\]\]>"
_ENTITY = r"&(?:amp|lt|gt|apos|quot|#[0-9]++|#x[0-9A-Fa-f]++);"
_SKIP = re.compile(rf"(?>(?:{_S}++|{_COMMENT}|{_PI})*)")
_BEFORE = re.compile(rf"(?>(?:{_S}++|{_COMMENT}|(?!<\?xml){_PI})*)")
_DECLARATION = re.compile(
    rf"<\?xml(?:{_S}+version{_S}*={_S}*(?:'[a-zA-Z0-9_.:-]+'|\"[a-zA-Z0-9_.:-]+\"))?"
    rf"(?:{_S}+encoding{_S}*={_S}*(?:'[^']*'|\"[^\"]*\"))?\?>"
)
_URL = r"(?:https://simgrid\.org|http://simgrid\.gforge\.inria\.fr/simgrid)/simgrid\.dtd"
_DOCTYPE = re.compile(rf"<!DOCTYPE{_S}+platform{_S}+SYSTEM{_S}+(?:'{_URL}'|\"{_URL}\"){_S}*>")
_OTHER_DECLARATION = re.compile(r"<![^>-][^>]*>")
_START = re.compile(rf"<({_NAME})")
_END = re.compile(rf"</({_NAME}){_S}*>")
_ATTRIBUTE = re.compile(rf"({_NAME}){_S}*={_S}*(?:'([^'<]*)'|\"([^\"<]*)\")")
_GLUED = re.compile(rf"{_S}*={_S}*['\"]")
_REFERENCE = re.compile(_ENTITY)
_SPURIOUS = re.compile(rf"&(?!{_ENTITY[1:]})")
_PROFILE = re.compile(rf"((?>(?:[^<&\]]++|\](?!\]>)|{_ENTITY}|{_COMMENT}|{_PI}|{_CDATA})*))</trace{_S}*>")
_PROFILE_MARKUP = re.compile(rf"{_COMMENT}|{_PI}|<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_FIVE = {"amp": "&", "lt": "<", "gt": ">", "apos": "'", "quot": '"'}
_TAGS = """
    platform config prop zone AS host disk host_link cluster cabinet peer router backbone link route
    bypassRoute zoneRoute ASroute bypassZoneRoute bypassASroute link_ctn trace trace_connect actor process
    argument random model_prop storage storage_type mount include
"""
#: All tags that SimGrid's parser has a name for.
TAGS = frozenset(_TAGS.split())
#: By length: SimGrid's parser takes the longest that fits and needs no space before the first attribute.
_LONGEST_FIRST = sorted(TAGS, key=len, reverse=True)


@dataclasses.dataclass(slots=True)
class Element:
    """One XML element with its children in document order.

    Attributes:
        tag, attributes: as SimGrid understands them (entities resolved, cut at a zero byte).
        line: 1-based line of its start tag; `place`: offset in the text, unique to it.
        escaped: attributes written with entities; `repeated`: attributes given twice.
        text_line: line of the first text that is not white space, 0 if there is none.
        profile: the text inside a `<trace>`.
    """

    tag: str
    attributes: dict[str, str]
    line: int
    place: int
    children: list["Element"] = dataclasses.field(default_factory=list)
    escaped: set[str] = dataclasses.field(default_factory=set)
    repeated: set[str] = dataclasses.field(default_factory=set)
    text_line: int = 0
    profile: str = ""

    def walk(self) -> Iterator["Element"]:
        stack = [self]
        while stack:
            yield (element := stack.pop())
            stack += reversed(element.children)


class XmlError(Exception):
    """Not a readable platform file: the line, the code of the finding, what is wrong and the remedy."""

    def __init__(self, line: int, key: str, message: str, remedy: str) -> None:
        super().__init__(message)
        self.line, self.key, self.message, self.remedy = line, key, message, remedy


_ENCODING = "the file begins with a byte-order mark or is UTF-16", "Save it as UTF-8."
_PLAIN = f"Write the text out; the document type is just {DOCTYPE}."


def read_bytes(path: str | Path) -> bytes:
    path = Path(path)
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            what = f"the file has {size} bytes, more than any platform description"
            remedy = "Describe large machines with <cluster>, which needs a few lines."
            raise BridgeError(what, where=str(path), remedy=remedy)
        return path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        what = f"cannot read the platform file: {getattr(error, 'strerror', error)}"
        raise BridgeError(what, where=str(path), remedy="Check the path.") from error


def plain_text(data: bytes) -> str:
    """Bytes as text; what is no UTF-8 stands as `\\xff`, since SimGrid takes any bytes in names."""
    return data.decode("utf-8", "backslashreplace")


def _resolve(reference: re.Match[str]) -> str:
    name = reference[0][1:-1]
    if not name.startswith("#"):
        return _FIVE[name]
    # SimGrid keeps one byte of the number, and of a number beyond 64 bits the largest.
    significant = name[1:].lstrip("x").lstrip("0")[:20] or "0"
    number = min(int(significant, 16 if name[1] == "x" else 10), 2**63 - 1)
    return plain_text(bytes([number & 255]))


def _value(raw: str) -> str:
    if "&" in raw:
        raw = _REFERENCE.sub(_resolve, raw)
    if "\r" in raw:
        raw = re.sub("\r\n|\n\r|\r", "\n", raw)
    return raw.partition("\0")[0]


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.newlines = [match.start() for match in re.finditer("\n", text)]

    def line(self, at: int) -> int:
        return bisect.bisect_left(self.newlines, at) + 1

    def error(self, at: int, message: str, remedy: str = "Mend the XML at this place.") -> XmlError:
        return XmlError(self.line(at), "xml-syntax", message, remedy)

    def skip(self, at: int) -> int:
        match = _SKIP.match(self.text, at)
        assert match is not None
        at = match.end()
        for opening, what in (("<!--", "comment"), ("<?", "processing instruction")):
            if self.text.startswith(opening, at):
                raise self.error(at, f"not well-formed XML: this {what} does not end")
        return at

    def prolog(self) -> tuple[int, bool]:
        """Offset of the root element, and whether SimGrid's document type stands before it."""
        text = self.text
        if text[:1] in ("\ufeff", "\0") or text.startswith(("\\xff\\xfe", "\\xfe\\xff")) or text[1:2] == "\0":
            raise XmlError(1, "xml-encoding", *_ENCODING)
        match = _BEFORE.match(text)
        assert match is not None
        at = match.end()
        if text.startswith("<?xml", at):  # only the first is a declaration, later ones are instructions
            match = _DECLARATION.match(text, at)
            if match is None:
                remedy = "Write <?xml version='1.0'?>."
                raise self.error(at, "SimGrid does not take this XML declaration", remedy)
            at = match.end()
        at = self.skip(at)
        if not text.startswith("<!", at):
            return at, False
        match = _DOCTYPE.match(text, at)
        if match is not None:
            return self.skip(match.end()), True
        if (other := _OTHER_DECLARATION.match(text, at)) is None:
            raise self.error(at, "not well-formed XML before the first element")
        if "[" in other[0]:
            message = "a document type with declarations of its own is refused"
            raise XmlError(self.line(at), "xml-entity", message, _PLAIN)
        message = "this is not SimGrid's document type"
        raise XmlError(self.line(at), "doctype-missing/other", message, f"Write {DOCTYPE}.")

    def tag(self, at: int) -> tuple[str, int]:
        """The tag that begins at `at`, and the offset behind its name."""
        match = _START.match(self.text, at)
        if match is None:
            raise self.error(at, "not well-formed XML: invalid token")
        name = match[1]
        if name not in TAGS and _GLUED.match(self.text, match.end()):
            for tag in _LONGEST_FIRST:
                if name.startswith(tag):
                    return tag, at + 1 + len(tag)
        return name, match.end()

    def start(self, at: int) -> tuple[Element, int, bool]:
        """Read a start tag: the element, the offset behind it, and whether it is empty (`/>`)."""
        tag, here = self.tag(at)
        element = Element(tag, {}, self.line(at), at)
        text = self.text
        while True:
            here = self.skip(here)
            if text.startswith(">", here):
                return element, here + 1, False
            if text.startswith("/>", here):
                return element, here + 2, True
            match = _ATTRIBUTE.match(text, here)
            if match is None:
                raise self.error(here, f"not well-formed XML inside the tag <{tag}>")
            name, quoted = match[1], 2 if match[2] is not None else 3
            raw = match[quoted]
            if "&" in raw:
                if (spurious := _SPURIOUS.search(raw)) is not None:
                    line = self.line(match.start(quoted) + spurious.start())
                    raise XmlError(line, "xml-entity", "an undefined entity is refused", _PLAIN)
                element.escaped.add(name)
            if name in element.attributes:
                element.repeated.add(name)
            element.attributes[name] = _value(raw)
            here = match.end()

    def profile(self, element: Element, at: int) -> int:
        match = _PROFILE.match(self.text, at)
        if match is None:
            raise self.error(at, "not well-formed XML inside <trace>")
        element.profile = _value(_PROFILE_MARKUP.sub(lambda part: part[1] or "", match[1]))
        return match.end()

    def tree(self, at: int) -> tuple[Element, int]:
        """The root element and the offset behind it."""
        text = self.text
        root, at, empty = self.start(at)
        stack = [] if empty else [root]
        while stack:
            top = stack[-1]
            at = self.skip(at)
            if text.startswith("</", at):
                match = _END.match(text, at)
                if match is None or match[1] != top.tag:
                    raise self.error(at, f"not well-formed XML: mismatched tag, </{top.tag}> is expected")
                stack.pop()
                at = match.end()
            elif text.startswith("<", at):
                child, at, empty = self.start(at)
                top.children.append(child)
                if empty:
                    continue
                if child.tag == "trace":
                    at = self.profile(child, at)
                else:
                    stack.append(child)
            elif at >= len(text):
                raise self.error(at, f"not well-formed XML: the file ends before </{top.tag}>")
            else:
                top.text_line = top.text_line or self.line(at)
                behind = text.find("<", at)
                at = behind if behind >= 0 else len(text)
        return root, at


def wifi_links(root: Element) -> list[tuple[str, str]]:
    """Return the links of Wi-Fi, (zone, link): those of zones with that routing.

    SimGrid's model of parallel tasks has none: a platform with one is loaded under SimGrid's default model.
    """
    zones = [element for element in root.walk() if element.attributes.get("routing", "").lower() == "wifi"]
    return [
        (zone.attributes.get("id", ""), child.attributes.get("id", ""))
        for zone in zones
        for child in zone.children
        if child.tag == "link"
    ]


#: SimGrid's settings for the two kinds of platform. Without parallel tasks, messages pass as they do with
#: them: at the latency and bandwidth that are written, unhindered by what goes the other way.
TASKS = ("host/model:ptask_L07",)
NO_TASKS = ("network/model:CM02", "network/crosstraffic:0")


def parse_xml(data: bytes) -> tuple[Element, bool]:
    """Parse a document into (root, whether SimGrid's document type stands before it), or XmlError."""
    scanner = _Scanner(plain_text(data))
    at, doctype = scanner.prolog()
    if at >= len(scanner.text):
        raise scanner.error(at, "not well-formed XML: no element found")
    if not scanner.text.startswith("<", at):
        raise scanner.error(at, "not well-formed XML: text before the first element")
    root, at = scanner.tree(at)
    if scanner.skip(at) < len(scanner.text):
        raise scanner.error(scanner.skip(at), "not well-formed XML: junk after the last element")
    return root, doctype
