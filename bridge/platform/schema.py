"""What SimGrid allows in a platform file, from `simgrid.toml`: attributes, order, settings, profiles.

Source: simgrid.dtd of SimGrid 3.32 and the parser made from it. The parser enforces it to the letter: an
unknown attribute or a link after a route stops the simulation.
"""

import dataclasses
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from bridge.platform.units import SPEED, c_double, read_as_simgrid

_DATA = tomllib.loads(Path(__file__).with_name("simgrid.toml").read_text("utf-8"))
#: Tags that make SimGrid stop -> what replaced them; old names of tags -> new ones.
REMOVED: Mapping[str, str] = _DATA["removed"]
RENAMED: Mapping[str, str] = _DATA["renamed"]


@dataclasses.dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute: what SimGrid makes of its text, whether it must be there, whether it may be empty."""

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
    rules = [(state, *rule.split(">")) for state, text in states.items() for rule in text.split(";")]
    found: dict[str, dict[str, str]] = {state: {} for state in states}
    for state, children, target in rules:
        found[state] |= dict.fromkeys(_words(children), target.strip())
    return found


_CONTENT = {tag: _automaton(states) for tags, states in _DATA["content"].items() for tag in _words(tags)}


class ContentModel:
    """Follows the children of one element and says why the next one may not stand there."""

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
    """Whether SimGrid takes the text for a setting of this kind."""
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


class Settings:
    """What the `<config>` of one file have set so far: SimGrid passes over what is set already."""

    def __init__(self) -> None:
        self.known = {key for key, kind in _KINDS.items() if kind == "set_before"}

    def mistakes(self, properties: Mapping[str, str]) -> Iterator[str]:
        """What SimGrid stops at among the properties of one `<config>`."""
        for key, value in sorted(properties.items()):
            if key not in _KINDS and key not in _CHOICES:
                yield f"'{key}' is no setting of SimGrid 3.32"
            elif key not in self.known:
                # White space and commas end a value; what follows is another `key:value`.
                for word in re.split(r"[ \t\n,]+", f"{key}:{value}".strip(" \t\n,")):
                    name, colon, text = word.partition(":")
                    known = name in _KINDS or name in _CHOICES
                    takes = text in _CHOICES[name] if name in _CHOICES else _takes(_KINDS.get(name, ""), text)
                    if not (colon and known and takes):
                        yield f"SimGrid does not take the setting {key} = '{value}'"
                        break
                    self.known.add(name)


_LAWS = dict.fromkeys(("DET", "EXP", "EXPONENTIAL"), 1)
_LAWS |= dict.fromkeys(("NORM", "NORMAL", "GAUSS", "GAUSSIAN", "UNIF", "UNIFORM"), 2)


def _drawn(words: list[str], stochastic: bool) -> tuple[float, list[str]]:
    """One date or value at the start of a profile's line: its first number, and the words after it."""
    count = _LAWS.get(words[0]) if words else None
    if count is None and stochastic:
        raise ValueError("a stochastic profile needs DET, NORM, UNIF or EXP before each number")
    numbers, rest = (words[:1], words[1:]) if count is None else (words[1 : 1 + count], words[1 + count :])
    if len(numbers) < (count or 1):
        raise ValueError(f"the line '{' '.join(words)[:80]}' is too short")
    first, *_ = [c_double(number)[0] for number in numbers]
    return first, rest


def check_profile(text: str, period: float) -> None:
    """Check an availability profile: lines of date and value, comments, and orders such as PERIODICITY.

    Args:
        text: the profile.
        period: seconds after which it begins again, unless the text says so; not positive: never.

    Raises:
        ValueError: SimGrid stops at it.
    """
    stochastic, pause, last = False, 0.0, 0.0
    for line in (part.strip(" \t\v\f") for part in re.split("[\n\r]", text)):
        order, _, number = line.partition(" ")
        if not line or line[0] in "#%":
            continue
        if order == "PERIODICITY":
            period = c_double(number)[0]
        elif order == "LOOPAFTER":
            pause = c_double(number)[0]
        elif line in ("STOCHASTIC", "STOCHASTIC LOOP"):
            stochastic = True
        else:
            date, rest = _drawn(line.split(), stochastic)
            _drawn(rest, stochastic)
            if not stochastic and not max(0.0, last) <= date:
                raise ValueError(f"dates must not fall, but {date:g} follows {last:g}")
            last = 0.0 if stochastic else date
    if period > 0 and (stochastic or pause != 0):
        raise ValueError("PERIODICITY goes neither with STOCHASTIC nor with LOOPAFTER")
    if (period - last if period > 0 else pause) < 0:
        raise ValueError("the profile is longer than its period")
