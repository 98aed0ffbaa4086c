"""A finding: what is wrong at one line of a platform file, how bad it is, and the remedy; or SimGrid's own.

What can be said stands in `findings.toml`.
"""

import dataclasses
import json
import re
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from bridge.base.errors import BridgeError
from bridge.base.jsontext import shortened
from bridge.config import read_toml
from bridge.wire.platform_xml import NO_TASKS, TASKS, XmlError, parse_xml, read_bytes, wifi_links

Severity = Literal["error", "warning", "note"]
#: What SimGrid itself says to a file.
Verdict = Literal["loads", "refuses"]
ORDER: dict[str, int] = {"error": 0, "warning": 1, "note": 2}
_DATA = read_toml(Path(__file__).with_name("findings.toml"))
#: "code" or "code/variant" -> (`refused` or severity, message, remedy), with {names} to be filled in.
CATALOGUE: dict[str, tuple[Any, str, str]] = {
    key: (severity, *words) for severity, entries in _DATA.items() for key, words in entries.items()
}


@dataclasses.dataclass(frozen=True, slots=True)
class LintFinding:
    """One remark of the lint.

    Attributes:
        severity: `error` (SimGrid or Batsim stops, or silently simulates something else), `warning` (works,
            but probably not what was meant) or `note`.
        code: a stable name for the kind of finding, e.g. `wattage-missing`.
        simgrid: `refuses` if SimGrid does not load the file because of this.
    """

    path: str
    line: int
    severity: Severity
    code: str
    message: str
    remedy: str
    simgrid: Verdict = "loads"

    @property
    def where(self) -> str:
        return f"{self.path}:{self.line}"


#: A value of the user's file is shown up to so many characters.
_LONGEST = 300


class FindingCollector:
    """Collects findings about one file; `energy`: what matters with -E only is an error, else a warning."""

    def __init__(self, path: str) -> None:
        self.path, self.energy = path, False
        self.findings: list[LintFinding] = []
        #: Findings that matter where energy is simulated, whether it is or not.
        self.powered = 0

    def add(self, line: int, key: str, *, loads: bool = False, **words: Any) -> None:
        severity, message, remedy = CATALOGUE[key]
        words = {k: shortened(v, _LONGEST) if isinstance(v, str) else v for k, v in words.items()}
        refused = severity == "refused"
        texts = key.partition("/")[0], message.format_map(words), remedy.format_map(words)
        simgrid: Verdict = "refuses" if refused and not loads else "loads"
        if severity == "powered":
            self.powered += 1
            severity = "error" if self.energy else "warning"
        self.findings.append(LintFinding(self.path, line, "error" if refused else severity, *texts, simgrid))

    @property
    def errors(self) -> int:
        return sum(finding.severity == "error" for finding in self.findings)

    def sorted(self) -> list[LintFinding]:
        """By line, then severity, then code."""
        return sorted(self.findings, key=lambda f: (f.line, ORDER[f.severity], f.code, f.message))


def verdict(findings: Iterable[LintFinding]) -> Verdict:
    return "refuses" if any(finding.simgrid == "refuses" for finding in findings) else "loads"


# Prints one line of JSON per platform: exit status and what SimGrid said. Each is loaded in a process of its
# own, as SimGrid stops the process on mistakes. The folder goes at once: nothing is left if we are killed.
_PROGRAM = """
import json, os, resource, signal, sys
from simgrid import Engine
os.rmdir(os.getcwd())
files, seconds, memory = json.load(sys.stdin)
def load(path, settings):
    engine = Engine(["load", *[f"--cfg={setting}" for setting in settings], "--log=root.thres:critical"])
    engine.load_platform(path)
    engine.run()
for file in files:
    out, to_parent = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(to_parent, 1)
        os.dup2(to_parent, 2)
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.alarm(seconds)
        try:
            load(*file)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", flush=True)
            os._exit(1)
        os._exit(0)
    os.close(to_parent)
    with os.fdopen(out, "rb") as pipe:
        said = pipe.read().decode("utf-8", "replace")
    print(json.dumps([os.waitpid(child, 0)[1], said]), flush=True)
"""
#: A platform that needs more memory than this is refused (bytes).
_MEMORY = 8 << 30
_TOO_LATE = 14  # what remains of a process that SIGALRM has ended


def findings_of_simgrid(paths: Sequence[str | Path], *, timeout: float = 120.0) -> list[LintFinding | None]:
    """SimGrid's finding about each platform file under the model that it is run with, None if it loads.

    It is waited for `timeout` s for each; BridgeError: no interpreter with its bindings, or no answer.
    """
    from bridge.worlds.simgrid import find_interpreter

    files = [str(Path(path).resolve()) for path in paths]
    interpreter = find_interpreter()
    # Not here, where a module of the user's could shadow another, and SimGrid looks for files.
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [interpreter, "-c", _PROGRAM],
            input=json.dumps([[(file, _settings(file)) for file in files], max(1, round(timeout)), _MEMORY]),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            cwd=folder,
        )
    lines = [
        json.loads(line) for line in done.stdout.splitlines() if line.startswith("[") and line[-1] == "]"
    ]
    if len(lines) != len(files):
        words = done.stderr.strip().splitlines()[-1:] or ["they gave no reason"]
        raise BridgeError(f"SimGrid's bindings stopped: {words[0]}", remedy="See `bridge doctor`.")
    return [
        _finding(str(path), file, status, output, timeout) if status else None
        for path, file, (status, output) in zip(paths, files, lines, strict=True)
    ]


def _settings(file: str) -> tuple[str, ...]:
    with suppress(XmlError):
        root, _ = parse_xml(read_bytes(file))
        return NO_TASKS if wifi_links(root) else TASKS
    return TASKS


def _finding(path: str, file: str, status: int, output: str, timeout: float) -> LintFinding:
    words = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [word for word in words if "Error" in word or "CRITICAL" in word]
    answer = f"SimGrid refuses the platform: {(telling or words or ['it gave no reason'])[-1]}"
    if status == _TOO_LATE:
        answer = f"SimGrid was still loading after {timeout:g} s"
    at = re.search(rf"{re.escape(file)}:(\d+)", answer)
    findings = FindingCollector(path)
    findings.add(int(at[1]) if at else 1, "simgrid-refuses", answer=answer)
    return findings.findings[0]
