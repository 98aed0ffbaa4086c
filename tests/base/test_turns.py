"""One process at a time compiles a kernel; the others wait for it, and then load it."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from bridge.base import jit, turns
from bridge.base.turns import Turn


def test_the_second_waits_until_the_first_has_ended(tmp_path: Path) -> None:
    path, order = tmp_path / "a.kernel", []
    waits: set[str] = set()
    first, second = Turn(path), Turn(path)
    first.wait(on_wait=lambda: waits.add("first"))
    first.wait()  # which it has already

    def wait() -> None:
        second.wait(on_wait=lambda: waits.add("second"))
        order.append("second")

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(4 * turns._PAUSE)
    order.append("first")
    first.end()
    waiting.join(10)
    assert order == ["first", "second"]
    assert waits == {"second"}
    second.end()
    assert not list(tmp_path.iterdir())


def test_one_waits_no_longer_than_until_the_file_is_there_or_patience_ends(tmp_path: Path) -> None:
    """A child that was forked meanwhile has the turn, too, and may live for ever."""
    path = tmp_path / "a.kernel"
    first = Turn(path)
    first.wait()
    begin = time.monotonic()
    Turn(path).wait(patience=3 * turns._PAUSE)
    assert time.monotonic() - begin >= 3 * turns._PAUSE
    path.write_bytes(b"kernel")
    Turn(path).wait()  # at once: pytest would wait for ten minutes


def test_without_a_place_for_it_everyone_has_a_turn(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    turn = Turn(tmp_path / "file" / "a.kernel")
    turn.wait()
    turn.end()


def test_a_turn_ends_with_the_process_that_had_it(tmp_path: Path) -> None:
    path = tmp_path / "a.kernel"
    text = "import sys, time; from bridge.base.turns import Turn; from pathlib import Path\n"
    text += "t = Turn(Path(sys.argv[1])); t.wait(); print('has it', flush=True); time.sleep(600)"
    env = {**os.environ, "PYTHONPATH": str(Path(jit.__file__).parents[2])}
    with subprocess.Popen([sys.executable, "-c", text, str(path)], stdout=subprocess.PIPE, env=env) as other:
        assert other.stdout is not None
        other.stdout.readline()
        other.send_signal(signal.SIGKILL)
        other.wait()
    Turn(path).wait()


KERNEL = """
import sys, time
from numba.core import event
from bridge.base.jit import kernel
class Slow(event.Listener):
    def on_start(self, _event):
        time.sleep(0.5)
    def on_end(self, _event):
        pass
event.register("numba:compile", Slow())
@kernel
def double(x):
    return 2 * x
input()
print(double(21), sum(double.stats.cache_misses.values()))
"""


def test_of_four_processes_that_begin_together_one_compiles(tmp_path: Path) -> None:
    script = tmp_path / "compile.py"
    script.write_text(KERNEL)
    env = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    env |= {"BRIDGE_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(Path(jit.__file__).parents[2])}
    env["NUMBA_DISABLE_JIT"] = "0"
    words = [sys.executable, str(script)]
    pipe = subprocess.PIPE
    together = [subprocess.Popen(words, env=env, stdin=pipe, stdout=pipe, text=True) for _ in range(4)]
    for one in together:
        assert one.stdin is not None
        one.stdin.write("\n")
        one.stdin.flush()
    said = sorted(one.communicate()[0] for one in together)
    assert said == ["42 0\n"] * 3 + ["42 1\n"]
    assert [path.suffix for path in (tmp_path / "cache").glob("kernels-*/*")] == [".kernel"]
