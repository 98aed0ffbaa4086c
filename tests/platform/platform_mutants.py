"""Platforms with mistakes: random edits of good ones, as a person, a program or an editor makes them."""

import random
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

TAG = re.compile(r"<(/?)([A-Za-z_]+)([^<>]*?)(/?)>")
ATTRIBUTE = re.compile(r'([A-Za-z_]+)="([^"]*)"')
POOLS = tomllib.loads(Path(__file__).with_name("mutants.toml").read_text("utf-8"))

Edit = Callable[[random.Random, str], str]


class NothingThere(Exception):  # noqa: N818
    """A file holds nothing that an edit could change: it stays as it is."""


def _one(draw: random.Random, found: Iterable[re.Match[str]]) -> re.Match[str]:
    if listed := list(found):
        return draw.choice(listed)
    raise NothingThere


def _some_tag(draw: random.Random, text: str, *, opening: bool = True) -> re.Match[str]:
    """One tag, the rare kinds as often as the frequent ones."""
    found: dict[str, list[re.Match[str]]] = {}
    for match in TAG.finditer(text):
        if not (opening and match[1]):
            found.setdefault(match[2], []).append(match)
    if not found:
        raise NothingThere
    return draw.choice(found[draw.choice(sorted(found))])


def _some_attribute(draw: random.Random, text: str) -> re.Match[str]:
    tag = _some_tag(draw, text)
    return _one(draw, ATTRIBUTE.finditer(text, *tag.span()))


def _cut(text: str, start: int, end: int, new: str = "") -> str:
    return text[:start] + new + text[end:]


def delete_attribute(draw: random.Random, text: str) -> str:
    found = _some_attribute(draw, text)
    return _cut(text, *found.span())


def double_attribute(draw: random.Random, text: str) -> str:
    found = _some_attribute(draw, text)
    return _cut(text, found.end(), found.end(), draw.choice([" ", "", "\n"]) + found[0])


def rename_attribute(draw: random.Random, text: str) -> str:
    found = _some_attribute(draw, text)
    name = found[1]
    new = draw.choice(
        [draw.choice(POOLS["attributes"]), name.upper(), name + "x", name[:-1], "x:" + name, name[::-1]]
    )
    return _cut(text, *found.span(1), new)


def swap_values(draw: random.Random, text: str) -> str:
    first, second = _some_attribute(draw, text), _some_attribute(draw, text)
    if draw.random() < 0.5:
        tag = text.rindex("<", 0, first.start()), text.index(">", first.end())
        first, second = (_one(draw, ATTRIBUTE.finditer(text, *tag)) for _ in range(2))
    a, b = sorted((first, second), key=lambda match: match.start())
    if a.span() == b.span():
        return text
    return text[: a.start(2)] + b[2] + text[a.end(2) : b.start(2)] + a[2] + text[b.end(2) :]


def wrong_value(draw: random.Random, text: str) -> str:
    found = _some_attribute(draw, text)
    return _cut(text, *found.span(2), draw.choice(POOLS["values"]))


def copied_value(draw: random.Random, text: str) -> str:
    """The value of another attribute of the same name: duplicate ids, other hosts, other links."""
    found = _some_attribute(draw, text)
    others = [
        m[2] for m in ATTRIBUTE.finditer(text) if m[1] == found[1] or found[1] in POOLS["attributes"][:14]
    ]
    return _cut(text, *found.span(2), draw.choice(others))


def touched_value(draw: random.Random, text: str) -> str:
    found = _some_attribute(draw, text)
    value = found[2]
    at = draw.randint(0, len(value))
    new = draw.choice(
        [value[:at] + draw.choice("0-,:;. x\"'&<>eGs%") + value[at:], value[:at] + value[at + 1 :]]
    )
    return _cut(text, *found.span(2), draw.choice([new, new, value.upper(), value.lower(), value * 2]))


def other_quotes(draw: random.Random, text: str) -> str:
    found = _some_attribute(draw, text)
    name, value = found[1], found[2]
    forms = [
        f"{name}='{value}'",
        f'{name} = "{value}"',
        f'{name}\n=\n"{value}"',
        f"{name}={value}",
        f"{name}=\"{value}'",
        f'{name}="{value}',
        f'{name}""',
        f'{name}="&#32;{value}"',
        f'{name}="' + "".join(f"&#{ord(c)};" for c in value) + '"',
        f'<!-- x -->{name}="{value}"',
    ]
    return _cut(text, *found.span(), draw.choice(forms))


def delete_tag(draw: random.Random, text: str) -> str:
    found = _some_tag(draw, text, opening=False)
    return _cut(text, *found.span())


def _some_element(draw: random.Random, text: str) -> tuple[int, int]:
    """Offsets of one whole element."""
    tag = _some_tag(draw, text)
    if tag[4]:
        return tag.span()
    depth = 0
    for match in re.finditer(rf"<(/?){tag[2]}\b[^<>]*?(/?)>", text[tag.start() :]):
        depth += -1 if match[1] else 0 if match[2] else 1
        if depth == 0:
            return tag.start(), tag.start() + match.end()
    return tag.span()


def delete_element(draw: random.Random, text: str) -> str:
    return _cut(text, *_some_element(draw, text))


def double_element(draw: random.Random, text: str) -> str:
    start, end = _some_element(draw, text)
    return _cut(text, end, end, text[start:end]) if end - start < 5000 else text


def move_element(draw: random.Random, text: str) -> str:
    start, end = _some_element(draw, text)
    taken, rest = text[start:end], _cut(text, start, end)
    return _into(draw, rest, taken) if len(taken) < 5000 else text


def swap_lines(draw: random.Random, text: str) -> str:
    lines = text.split("\n")
    a = draw.randrange(len(lines))
    b = draw.choice([draw.randrange(len(lines)), min(a + 1, len(lines) - 1)])
    lines[a], lines[b] = lines[b], lines[a]
    return "\n".join(lines)


def delete_line(draw: random.Random, text: str) -> str:
    lines = text.split("\n")
    del lines[draw.randrange(len(lines))]
    return "\n".join(lines)


def _into(draw: random.Random, text: str, new: str) -> str:
    """Put a piece before or after some tag, or inside it."""
    found = _some_tag(draw, text, opening=False)
    if found[4] and draw.random() < 0.4:
        return _cut(text, found.start(4), found.end(), f">{new}</{found[2]}>")
    at = draw.choice(found.span())
    return _cut(text, at, at, new)


def insert_element(draw: random.Random, text: str) -> str:
    return _into(draw, text, draw.choice(POOLS["elements"]))


def insert_comment(draw: random.Random, text: str) -> str:
    comment = draw.choice(POOLS["comments"])
    if draw.random() < 0.5:
        return _into(draw, text, comment)
    at = draw.randrange(len(text) + 1)
    return _cut(text, at, at, comment)


def insert_config(draw: random.Random, text: str) -> str:
    pairs = draw.sample(POOLS["config"], draw.randint(1, 2))
    props = "".join(f'<prop id="{key}" value="{value}"/>' for key, value in pairs)
    config = f"<config>{props}</config>"
    found = re.search(r"<platform[^>]*>", text)
    if found is None or draw.random() < 0.15:
        return _into(draw, text, config)
    return _cut(text, found.end(), found.end(), config)


def rename_tag(draw: random.Random, text: str) -> str:
    found = _some_tag(draw, text, opening=False)
    new = draw.choice([draw.choice(POOLS["tags"]), found[2] + "s", found[2][:-1], found[2].upper()])
    if draw.random() < 0.4:
        return _cut(text, *found.span(2), new)
    start, end = found.start(), text.find(f"</{found[2]}>", found.end())
    if end < 0 or found[4]:
        return _cut(text, *found.span(2), new)
    text = _cut(text, end + 2, end + 2 + len(found[2]), new)
    return _cut(text, start + 1, start + 1 + len(found[2]), new)


def rename_all(draw: random.Random, text: str) -> str:
    pairs = ["zone AS", "zoneRoute ASroute", "host router", "bypassRoute route", "route bypassRoute"]
    old, new = draw.choice(pairs).split()
    return re.sub(rf"(</?){old}\b(?!_)", rf"\g<1>{new}", text)


def change_form(draw: random.Random, text: str) -> str:
    """Open for closed, closed for open, odd spaces, attributes without space."""
    found = _some_tag(draw, text)
    tag, rest = found[2], found[3]
    forms = [
        f"<{tag}{rest}>",
        f"<{tag}{rest}/>",
        f"<{tag}{rest}></{tag}>",
        f"<{tag}{rest}>\n</{tag}\n>",
        f"<{tag}{rest} / >",
        f"< {tag}{rest}/>",
        f"<{tag}{rest.strip()}{found[4]}>",
        f"<{tag}\n{rest.replace(' ', '')}{found[4]}>",
        f"<{tag}{rest.replace('  ', ' ')} {found[4]}>",
        f"<{tag}{rest}{found[4]}",
        f"{tag}{rest}{found[4]}>",
        f"<{tag}{rest}{found[4]}>>",
    ]
    return _cut(text, *found.span(), draw.choice(forms))


def change_routing(draw: random.Random, text: str) -> str:
    new = draw.choice(POOLS["routings"])
    return _cut(text, *_one(draw, re.finditer(r'routing="(\w+)"', text)).span(1), new)


def change_route(draw: random.Random, text: str) -> str:
    route = _one(draw, re.finditer(r"<(route|zoneRoute|bypassRoute)( [^<>]*)>(.*?)</\1>", text))
    tag, ends, links = route[1], route[2], route[3]
    src, dst = re.search(r'src="[^"]*"', ends), re.search(r'dst="[^"]*"', ends)
    if src is None or dst is None:
        raise NothingThere
    turned = ends.replace(src[0], "\0").replace(dst[0], src[0].replace("src", "dst")).replace("\0", dst[0])
    new = draw.choice(
        [
            f"<{tag}{ends}/>",
            f"<{tag}{ends}>{links}{links}</{tag}>",
            f'<{tag}{ends} symmetrical="{draw.choice(["NO", "no", "YES", "nO"])}">{links}</{tag}>',
            f"<{tag}{turned}>{links}</{tag}>",
            f"<{tag}{turned}>{links}</{tag}>{route[0]}",
            f'{route[0]}<{tag}{ends} symmetrical="NO">{links}</{tag}>',
            f"<{tag}{ends}>" + re.sub(r' direction="\w+"', "", links) + f"</{tag}>",
            f"<{tag}{ends}>" + links.replace("/>", ' direction="UP"/>') + f"</{tag}>",
            f"<{tag}{ends}>" + links.replace('"/>', '_UP"/>') + f"</{tag}>",
        ]
    )
    return _cut(text, *route.span(), new)


def change_prolog(draw: random.Random, text: str) -> str:
    body = text[max(0, text.find("<platform")) :]
    return (
        draw.choice(POOLS["prologs"]) + draw.choice([*POOLS["doctypes"], *[POOLS["doctypes"][1]] * 12]) + body
    )


def change_space(draw: random.Random, text: str) -> str:
    forms: list[Callable[[str], str]] = [
        lambda t: t.replace("\n", ""),
        lambda t: t.replace("\n", " "),
        lambda t: t.replace("\n", "\r\n"),
        lambda t: t.replace("\n", "\r"),
        lambda t: t.replace(" ", "\n"),
        lambda t: t.replace(" ", "\t"),
        lambda t: t.replace(" <", "<"),
        lambda t: t.replace("\n", "\f\n"),
        lambda t: t.replace("\n", "\v\n"),
        lambda t: t.replace("\n", "\u00a0\n"),
        lambda t: "\n" + t,
        lambda t: t + "\n \t",
        lambda t: re.sub(r">\s+<", "><", t),
    ]
    return draw.choice(forms)(text)


def change_ending(draw: random.Random, text: str) -> str:
    if draw.random() < 0.3:
        return text[: draw.randrange(len(text) + 1)]
    return text + draw.choice(POOLS["endings"])


def change_character(draw: random.Random, text: str) -> str:
    at = draw.randrange(len(text) + 1)
    new = draw.choice([*"<>&'/=- \0\x01\"xé\udce9\ufeff", "", "]]>"])
    return _cut(text, at, at + draw.randint(0, 1), new)


def change_property(draw: random.Random, text: str) -> str:
    found = list(re.finditer(r'<prop id="([^"]*)" value="([^"]*)"/>', text))
    if not found:
        return _into(draw, text, '<prop id="wattage_per_state" value="x"/>')
    prop = draw.choice(found)
    parts = prop[2].split(draw.choice(",:"))
    draw.shuffle(parts)
    new = draw.choice(
        [":".join(parts), ",".join(parts), prop[2] + ",", prop[2].replace(":", ";"), "-" + prop[2], ""]
    )
    return _cut(text, *prop.span(2), new)


#: Edits, the more telling ones several times.
EDITS: Sequence[Edit] = (
    *(delete_attribute, double_attribute, rename_attribute, swap_values, touched_value, other_quotes),
    *(wrong_value, wrong_value, wrong_value, copied_value, copied_value, change_property),
    *(delete_tag, delete_element, double_element, move_element, swap_lines, delete_line),
    *(insert_element, insert_element, insert_comment, insert_config, rename_tag, rename_all),
    *(change_form, change_routing, change_route, change_prolog, change_space, change_ending),
    change_character,
)


def encoded(draw: random.Random, text: str) -> bytes:
    """The bytes of a text, now and then in an encoding that SimGrid does not read."""
    data = text.encode("utf-8", "surrogateescape")
    if draw.random() < 0.97:
        return data
    plain = data.decode("utf-8", "replace")
    forms = [
        b"\xef\xbb\xbf" + data,
        plain.encode("utf-16"),
        plain.encode("utf-16-le"),
        plain.encode("utf-32"),
        plain.encode("latin-1", "replace"),
        data.replace(b"compute", b"comp\xfcte"),
    ]
    return draw.choice(forms)


def mutants(seed: int, count: int, bases: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    """`count` mutants, the same for the same seed: what was done to which file, and the bytes."""
    draw = random.Random(seed)
    texts = {path.name: path.read_text() for path in bases}
    names = sorted(texts)
    for _ in range(count):
        name = draw.choice(names)
        text, done = texts[name], [name]
        for _ in range(draw.choice([1, 1, 1, 1, 2, 3])):
            edit = draw.choice(EDITS)
            with suppress(NothingThere):
                text = edit(draw, text)
            done.append(edit.__name__)
        yield " ".join(done), encoded(draw, text)
