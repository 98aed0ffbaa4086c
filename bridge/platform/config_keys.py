"""The settings of SimGrid 3.32 that a `<config>` may hold, and the values that it takes for them."""

import re
from collections.abc import Callable, Iterator, Mapping

from bridge.platform import units

#: Set by everyone who loads a platform (Batsim, the embedded model), so what the file says is passed over.
_SET_BEFORE = ("host/model", "contexts/factory")
_TRUE, _FALSE = "yes on true 1", "no off false 0"
_OPTIM, _SOLVER = "Lazy TI Full", "maxmin fairbottleneck bmf"

_WHOLE = (
    "bmf/max-iterations cmonkey/host cmonkey/link contexts/guard-size contexts/nthreads contexts/stack-size "
    "maxmin/concurrency-limit plugin/dvfs/max-pstate plugin/dvfs/min-pstate smpi/async-small-thresh "
    "smpi/list-leaks smpi/map smpi/np smpi/send-is-detached-thresh tracing/precision"
)
_REAL = (
    "bmf/precision cmonkey/time debug/breakpoint maxmin/precision network/TCP-gamma network/bandwidth-factor "
    "network/latency-factor network/loopback-bw network/loopback-lat network/weight-S "
    "plugin/dvfs/sampling-rate smpi/auto-shared-malloc-thresh smpi/cpu-threshold smpi/init smpi/iprobe "
    "smpi/iprobe-cpu-usage smpi/test smpi/wtime surf/precision"
)
_YES_OR_NO = (
    "cmonkey/tell debug/clean-atexit debug/verbose-exit exception/cutpath help-nostop network/crosstraffic "
    "network/maxmin-selective-update smpi/display-allocs smpi/errors-are-fatal smpi/grow-injected-times "
    "smpi/pedantic smpi/simulate-computation smpi/trace-call-location smpi/trace-call-use-absolute-path "
    "tracing tracing/actor tracing/basic tracing/categorized tracing/disable-destroy tracing/disable_link "
    "tracing/disable_power tracing/platform tracing/platform/topology tracing/smpi tracing/smpi/computing "
    "tracing/smpi/display-sizes tracing/smpi/format/ti-one-file tracing/smpi/group tracing/smpi/internals "
    "tracing/smpi/sleeping tracing/uncategorized tracing/vm"
)
_TEXT = (
    "ns3/TcpModel path smpi/IB-penalty-factors smpi/bw-factor smpi/hostfile smpi/lat-factor smpi/replay "
    "tracing/comment tracing/comment-file tracing/filename tracing/smpi/format"
)
_CHOICES = {
    "contexts/synchro": "posix futex busy_wait",
    "cpu/maxmin-selective-update": _TRUE,
    "cpu/model": "Cas01",
    "cpu/optim": _OPTIM,
    "cpu/solver": _SOLVER,
    "disk/model": "default",
    "disk/solver": _SOLVER,
    "host/solver": "fairbottleneck bmf",
    "model-check/timeout": "",
    "network/model": "LV08 CM02 SMPI IB ns-3 Constant",
    "network/optim": _OPTIM,
    "network/solver": _SOLVER,
    "plugin/dvfs/governor": "performance powersave ondemand conservative adagio",
    "smpi/shared-malloc": "yes no on off 0 1 global local",
}
#: An empty text is taken as well.
_OPTIONAL = {
    "model-check/replay": "",
    "plugin": "cmonkey host_dvfs host_energy host_load link_energy link_energy_wifi link_load",
    "smpi/comp-adjustment-file": "",
}


def _whole(text: str) -> bool:
    return re.fullmatch(r"\s*[+-]?(0x[0-9a-f]+|[0-9]+)", text, re.IGNORECASE | re.ASCII) is not None and (
        -(2**31) <= int(text, 16 if "x" in text.lower() else 10) < 2**31
    )


def _real(text: str) -> bool:
    try:
        return units.c_double(text)[1] == ""
    except ValueError:
        return False


def _seed(text: str) -> bool:
    return text in ("", "time") or re.fullmatch(r"[+-]?[0-9]+", text) is not None


def _speeds(text: str) -> bool:
    try:
        return all(units.read_as_simgrid(part, units.SPEED) is not None for part in text.split(","))
    except ValueError:
        return False


def _one_of(words: str) -> Callable[[str], bool]:
    return words.split().__contains__


#: key -> whether SimGrid takes a value.
_KEYS: Mapping[str, Callable[[str], bool]] = {
    **dict.fromkeys(_WHOLE.split(), _whole),
    **dict.fromkeys(_REAL.split(), _real),
    **dict.fromkeys(_YES_OR_NO.split(), _one_of(f"{_TRUE} {_FALSE}")),
    **dict.fromkeys(_TEXT.split(), lambda _text: True),
    **{key: _one_of(words) for key, words in _CHOICES.items()},
    **{key: ["", *words.split()].__contains__ for key, words in _OPTIONAL.items()},
    "ns3/seed": _seed,
    "smpi/host-speed": _speeds,
    **dict.fromkeys(_SET_BEFORE, lambda _text: True),
}


class Settings:
    """What the `<config>` of one file have set so far: SimGrid passes over what is set already."""

    def __init__(self) -> None:
        self.known = set(_SET_BEFORE)

    def mistakes(self, properties: Mapping[str, str]) -> Iterator[str]:
        """What SimGrid stops at among the properties of one `<config>`."""
        for key, value in sorted(properties.items()):
            if key not in _KEYS:
                yield f"'{key}' is no setting of SimGrid 3.32"
            elif key not in self.known:
                # White space and commas end a value; what follows is another `key:value`.
                for word in re.split(r"[ \t\n,]+", f"{key}:{value}".strip(" \t\n,")):
                    name, colon, text = word.partition(":")
                    if not colon or name not in _KEYS or not _KEYS[name](text):
                        yield f"SimGrid does not take the setting {key} = '{value}'"
                        break
                    self.known.add(name)
