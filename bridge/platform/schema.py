"""What SimGrid allows in a platform file, from `simgrid.toml`: attributes, order, settings, profiles.

Source: simgrid.dtd of SimGrid 3.32 and the parser made from it. The parser enforces it to the letter: an
unknown attribute or a link after a route stops the simulation.
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from bridge.config import read_toml
from bridge.platform.units import SPEED, c_double, read_as_simgrid

_DATA = read_toml(Path(__file__).with_name("simgrid.toml"))
#: Tags that make SimGrid stop -> what replaced them; old names of tags -> new ones.
REMOVED: Mapping[str, str] = _DATA["removed"]
RENAMED: Mapping[str, str] = _DATA["renamed"]
#: Tags that SimGrid reads but that Batsim or this program does not model -> the finding.
REMARKS: Mapping[str, str] = dict.fromkeys(RENAMED, "deprecated") | _DATA["remarks"]
#: Value of `routing` in small letters -> `Zone.routing`.
ROUTINGS: Mapping[str, str] = _DATA["routings"]


@dataclasses.dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute: SimGrid's parser of its text, whether it is required, whether it may be empty."""

    kind: str
    required: bool
    may_be_empty: bool
    choices: tuple[str, ...]


def _words(text: str) -> list[str]:
    """The words of a text, groups of words written out."""
    return " ".join(_DATA["groups"].get(word, word) for word in text.split()).split()


def _attribute(word: str) -> tuple[str, Attribute]:
    name, _, kind = word.partition("=")
    choices = tuple(kind.split("|")) if "|" in kind else ()
    kind = "choice" if choices else kind or "text"
    return name.strip("!?"), Attribute(kind, name.endswith("!"), name.endswith("?"), choices)


#: tag -> name -> attribute.
ATTRIBUTES: Mapping[str, Mapping[str, Attribute]] = {
    tag: dict(map(_attribute, _words(text))) for tag, text in _DATA["attributes"].items()
}
_Automaton = Mapping[str, Mapping[str, str]]  # state -> child -> next state


def _automaton(states: Mapping[str, str]) -> _Automaton:
    transitions: dict[str, dict[str, str]] = {state: {} for state in states}
    for state, text in states.items():
        for children, target in (rule.split(">") for rule in text.split(";")):
            transitions[state] |= dict.fromkeys(_words(children), target.strip())
    return transitions


_CONTENT = {tag: _automaton(states) for tags, states in _DATA["content"].items() for tag in _words(tags)}


class ContentModel:
    """Checks the order of an element's children; explains why one is not allowed."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.states: _Automaton = _CONTENT.get(tag, {"start": {}})
        self.state = "start"

    def refuse(self, child: str) -> str:
        """Empty if `child` may come next, else the reason."""
        if child in self.states[self.state]:
            self.state = self.states[self.state][child]
            return ""
        if not any(child in row for row in self.states.values()):
            return f"<{child}> is not allowed inside <{self.tag}>"
        if self.tag == "platform":
            return f"<{child}> comes too late in <platform>: settings, then zones, then actors"
        return (
            f"<{child}> comes too late in <{self.tag}>, or cannot stand in one that begins as this does: "
            "hosts and zones do not mix; properties, then members and links (after inner zones), then routes"
        )


def _takes(kind: str, text: str) -> bool:
    try:
        if kind == "whole":
            number = int(text, 16 if "x" in text.lower() else 10)
            return re.fullmatch(r"[+-]?\w+", text, re.ASCII) is not None and -(2**31) <= number < 2**31
        if kind == "speed":
            return all(read_as_simgrid(part, SPEED) is not None for part in text.split(","))
        return kind != "real" or c_double(text)[1] == ""
    except ValueError:
        return False


_FLAG = ("yes", "on", "true", "1", "no", "off", "false", "0")
_KINDS = {key: kind for kind, keys in _DATA["settings"].items() for key in keys.split()}
_CHOICES = dict(_DATA["choices"]) | {key: _FLAG for key, kind in _KINDS.items() if kind == "flag"}


class ConfigElements:
    """Settings of the `<config>` elements of a file so far: SimGrid ignores repeated ones."""

    def __init__(self) -> None:
        self.settable = {key for key, kind in _KINDS.items() if kind == "set_before"}

    def mistakes(self, properties: Mapping[str, str]) -> Iterator[str]:
        """Yield the properties of one `<config>` at which SimGrid stops."""
        for key, value in sorted(properties.items()):
            if key not in _KINDS and key not in _CHOICES:
                yield f"'{key}' is no setting of SimGrid 3.32"
            elif key not in self.settable:
                # White space and commas end a value; what follows is another `key:value`.
                for word in re.split(r"[ \t\n,]+", f"{key}:{value}".strip(" \t\n,")):
                    name, colon, text = word.partition(":")
                    is_valid = name in _KINDS or name in _CHOICES
                    takes = text in _CHOICES[name] if name in _CHOICES else _takes(_KINDS.get(name, ""), text)
                    if not (colon and is_valid and takes):
                        yield f"SimGrid does not take the setting {key} = '{value}'"
                        break
                    self.settable.add(name)


def check_profile(text: str, period: float) -> None:
    """Check an availability profile: lines of date and value, comments, and orders such as PERIODICITY.

    Of stochastic profiles (NORM, UNIF, EXP, DET before each number) only the plain lines are read. It begins
    again after `period` seconds, unless the text says otherwise; not positive: never.

    Raises ValueError: SimGrid stops at it.
    """
    last = 0.0
    for words in (line.split() for line in re.split("[\n\r]", text)):
        if words and words[0] == "PERIODICITY":
            period = c_double("".join(words[1:2]))[0]
        elif words and re.match("[^A-Z#%]", words[0]):
            if len(words) < 2:
                raise ValueError(f"the line '{words[0][:80]}' has a date without a value")
            date, _ = c_double(words[0])[0], c_double(words[1])
            if not last <= date:
                raise ValueError(f"dates must not fall, but {date:g} follows {last:g}")
            last = date
    if 0 < period < last:
        raise ValueError("the profile is longer than its period")
