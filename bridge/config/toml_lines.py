"""In which line of a TOML text a field stands, by its path: ``nodes[2].cores``."""

import re
import tomllib
from dataclasses import dataclass, field

_PART = re.compile(r'\s*("(?:[^"\\]|\\.)*"|\'[^\']*\'|[A-Za-z0-9_-]+)\s*(\.|$)')
_HEADER = re.compile(r"\s*(\[\[|\[)(.*?)(\]\]|\])\s*(#.*)?$")
_KEY = re.compile(r'\s*((?:"(?:[^"\\]|\\.)*"|\'[^\']*\'|[A-Za-z0-9_.\s-])+?)\s*=')


@dataclass(frozen=True)
class TomlLines:
    """Line numbers, from 1, of a TOML file's tables and keys, by path."""

    where: str
    lines: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of_text(cls, text: str, where: str) -> "TomlLines":
        lines = cls(where)
        table, counts = "", dict[str, int]()
        rest = text.replace("\r\n", "\n").split("\n")
        number = 0
        while number < len(rest):
            line = rest[number]
            at, number = number + 1, number + 1
            if (header := _HEADER.match(line)) and len(header[1]) == len(header[3]):
                parts = _parts(header[2])
                table = ""
                for k, part in enumerate(parts):
                    last = k == len(parts) - 1
                    path = f"{table}.{part}" if table else part
                    if last and header[1] == "[[":
                        counts[path] = counts.get(path, -1) + 1
                    table = f"{path}[{counts[path]}]" if path in counts else path
                    lines.lines.setdefault(table, at)
            elif key := _KEY.match(line):
                path = table
                for part in _parts(key[1]):
                    path = f"{path}.{part}" if path else part
                    lines.lines.setdefault(path, at)
                # A value of several lines: up to the first with which the text is valid.
                value = line[key.end() :]
                while number < len(rest) and not _is_value(value):
                    value += "\n" + rest[number]
                    number += 1
        return lines

    def place(self, path: str) -> str:
        """Return ``file:line`` of a field, or of the nearest table around it; the file if it has none."""
        while path and path not in self.lines:
            path = around(path)
        return f"{self.where}:{self.lines[path]}" if path else self.where


def around(path: str) -> str:
    """Return the path of a field's table: ``nodes[2]`` of ``nodes[2].cores``; empty at the top."""
    return re.sub(r"(?:\.[^.\[\]]*|\[\d+\]|^[^.\[\]]*)$", "", path)


def _parts(text: str) -> list[str]:
    parts, at = [], 0
    while match := _PART.match(text, at):
        name = match[1]
        parts.append(str(tomllib.loads(f"k = {name}")["k"]) if name[0] in "\"'" else name)
        at = match.end()
        if not match[2]:
            break
    return parts


def _is_value(text: str) -> bool:
    try:
        tomllib.loads(f"k = {text}")
    except (ValueError, RecursionError):
        return False
    return True
