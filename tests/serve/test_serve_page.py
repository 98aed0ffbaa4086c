"""The page of a live partition: what it tells, to whom, and that no job's name runs in a browser."""

import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
from own_slurm import read, state_of_queue
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from bridge.base.errors import BridgeError
from bridge.forecasting.state import OWN_SCHEDULERS, MachineState
from bridge.serve import snapshot
from bridge.serve.app import app
from bridge.serve.observer import PartitionState, warm_up
from bridge.serve.snapshot import SnapshotCache
from bridge.worlds.slurm.client import QueueEntry, SlurmUnreachableError

NOW = 1_800_000_000.0
HOSTILE = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"


def row(label: str, state: str, nodes: int, start: int = -1) -> QueueEntry:
    texts = dict.fromkeys(
        ("reason", "dependency", "features", "gres", "reservation", "licenses", "required", "excluded"), ""
    )
    return QueueEntry(
        label=label,
        raw=int(label),
        state=state,
        priority=1,
        submit=int(NOW) - 100,
        start=start,
        limit=600.0,
        nodes=nodes,
        cores=nodes,
        memory="1M",
        user=HOSTILE,
        **{**texts, "hosts": "", "partition": "batch"},  # type: ignore[arg-type]
    )


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    """Compile what forecasts need before anybody waits for an answer."""
    warm_up()


class Observed:
    """What stands for Slurm: four nodes, three of them in use, one job that waits and one that is held."""

    partition = "batch"
    asked = 0

    def __init__(self, *, private: bool = False, away: bool = False) -> None:
        self.private, self.away = private, away

    @property
    def client(self) -> "Observed":
        return self

    def names_and_comments(self, _partition: str) -> dict[str, tuple[str, str]]:
        return {"7": (HOSTILE, HOSTILE), "8": (HOSTILE + "\nx", ""), "9": ("x" * 500, "")}

    def read(self) -> PartitionState:
        self.asked += 1
        if self.away:
            raise SlurmUnreachableError("slurmctld does not answer")
        job = {"submit": NOW - 100, "user": HOSTILE, "request": 600}
        document = {
            "format": "bridge-state",
            "version": 1,
            "now": NOW,
            "policy": "fcfs+easy",
            "capacity": {"nodes": 4},
            "free": {"nodes": 1},
            "running": [{**job, "id": "7", "start": NOW - 50, "demand": {"nodes": 3}}],
            "waiting": [{**job, "id": "8", "demand": {"nodes": 2}}],
        }
        rows = (row("7", "RUNNING", 3, int(NOW) - 50), row("8", "PENDING", 2), row("9", "PENDING", 1))
        return PartitionState(document, rows, {"9": "held by its user or an operator"})


@contextmanager
def served(made: Starlette) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        server = uvicorn.Server(uvicorn.Config(made, log_level="error"))
        thread = threading.Thread(target=server.run, args=([sock],), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
        server.should_exit = True
        thread.join(10)


def make_app(observed: Observed, every: float = 60.0) -> Starlette:
    snapshots = SnapshotCache(observed, every, futures=20)  # type: ignore[arg-type]
    return app(snapshots, refresh=60)


def get(address: str, host: str = "") -> tuple[int, str, dict[str, str]]:
    """Return status, body and headers of an answer."""
    request = urllib.request.Request(address, headers={"Host": host} if host else {})
    try:
        with urllib.request.urlopen(request, timeout=300) as answer:
            return answer.status, answer.read().decode(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), dict(error.headers)


def test_what_programs_are_told() -> None:
    with served(make_app(Observed())) as address:
        status, text, _ = get(f"{address}/api/forecast?job=8")
        found: dict[str, Any] = json.loads(text)
        assert (status, found["policy"], len(found["jobs"])) == (200, "fcfs+easy", 1)
        (job,) = found["jobs"]
        assert job["job"] == "8"
        assert job["reserved"] == NOW + 550  # the running job's limit
        assert job["low90"] <= job["low50"] <= job["median"] <= job["high50"] <= job["high90"]
        queue = json.loads(get(f"{address}/api/queue")[1])
        assert [one["job"] for one in queue["jobs"]] == ["7", "8", "9"]
        assert queue["jobs"][1]["forecast"] == job
        assert queue["jobs"][2]["why"] == "held by its user or an operator"
        assert (queue["running"], queue["waiting"], queue["left"], queue["free"]) == (1, 1, 1, 1)
        status, text, _ = get(f"{address}/api/whatif?policy=sjf%2Beasy&drain=1")
        expected = ["fcfs+easy", "fcfs+easy", "sjf+easy"]
        assert [one["policy"] for one in json.loads(text)["policies"]] == expected
        assert json.loads(get(f"{address}/api/state")[1])["waiting"][0]["id"] == "8"


@pytest.mark.parametrize(
    ("path", "status", "what"),
    [
        ("/api/forecast?job=9", 400, "held by its user"),
        ("/api/forecast?job=%3Cb%3E", 400, "it does not wait"),
        ("/api/whatif?policy=os:system", 400, "none of the rules on offer"),
        ("/api/whatif?drain=4", 400, "0 to 3"),
        ("/api/whatif?drain=-1", 400, "0 to 3"),
        ("/whatif?policy=%3Cscript%3E", 400, "&lt;script&gt;"),
        ("/nothing", 404, "Not Found"),
    ],
)
def test_questions_that_are_none(path: str, status: int, what: str) -> None:
    with served(make_app(Observed())) as address:
        found = get(address + path)
        assert found[0] == status
        assert what in found[1]
        assert "<script>" not in found[1]


def test_other_sites_cannot_read_it_through_a_visitor() -> None:
    with served(make_app(Observed())) as address:
        status, text, headers = get(f"{address}/api/queue", host="elsewhere.example")
        assert (status, text) == (400, "Invalid host header")
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "script" not in headers["content-security-policy"]
        request = urllib.request.Request(f"{address}/", method="POST", data=b"x")
        with pytest.raises(urllib.error.HTTPError, match="405"):
            urllib.request.urlopen(request, timeout=300)


def test_private_jobs_are_not_told() -> None:
    with served(make_app(Observed(private=True))) as address:
        for path in ("/api/forecast", "/api/forecast?job=8", "/api/state"):
            assert get(address + path)[0] == 403
        assert get(f"{address}/futures.svg")[0] == 404
        queue = json.loads(get(f"{address}/api/queue")[1])
        assert (queue["jobs"], queue["private"], queue["waiting"]) == ([], True, 1)
        assert "only totals are told" in get(f"{address}/")[1]
        assert get(f"{address}/api/whatif?policy=sjf%2Beasy")[0] == 200


def test_slurm_is_asked_once_however_many_look() -> None:
    observed = Observed()
    with served(make_app(observed)) as address:
        for path in ("/", "/api/queue", "/futures.svg", "/whatif?drain=1", "/"):
            assert get(address + path)[0] == 200
    assert observed.asked == 1


def test_slurm_that_is_away_is_not_asked_at_once_again() -> None:
    observed = Observed(away=True)
    with served(make_app(observed)) as address:
        assert [get(f"{address}/")[0] for _ in range(3)] == [503] * 3
        assert "does not answer" in get(f"{address}/api/queue")[1]
    assert observed.asked == 1


def test_many_questions_do_not_silence_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, playing = threading.Event(), threading.Semaphore(0)

    def slow(*_: object, **__: object) -> list[object]:
        playing.release()
        assert go_on.wait(60)
        return []

    monkeypatch.setattr(snapshot, "whatif", slow)
    answers: list[int] = []

    def ask(drain: int) -> None:
        answers.append(get(f"{address}/api/whatif?drain={drain}")[0])

    with served(make_app(Observed())) as address:
        visitors = [threading.Thread(target=ask, args=(k,)) for k in range(2)]
        for visitor in visitors:
            visitor.start()
            assert playing.acquire(timeout=60)
        for k in range(50):
            status, text, headers = get(f"{address}/api/whatif?drain={k % 4}")
            assert status == 503 and "busy" in text and "Try again" in text and headers["retry-after"] == "5"
        assert get(f"{address}/whatif?drain=1")[0] == 503
        assert get(f"{address}/")[0] == 200 and get(f"{address}/api/forecast")[0] == 200
        go_on.set()
        for visitor in visitors:
            visitor.join()
        assert answers == [200, 200]
        assert get(f"{address}/api/whatif?drain=2")[0] == 200


def test_no_jobs_name_runs_in_a_browser(look: Callable[[str], str]) -> None:
    bare = make_app(Observed())
    page = HTMLResponse(f"<!DOCTYPE html><title>bare</title>{HOSTILE}")
    bare.routes.append(Route("/bare", lambda _: page))  # as if a name had not been escaped
    with served(Starlette(routes=[Route("/", lambda _: page)])) as address:
        assert "<title>taken</title>" in look(address)  # this is what the browser would do
    with served(bare) as address:
        assert "<title>bare</title>" in look(f"{address}/bare")
        found = look(f"{address}/")
    assert "<title>partition batch</title>" in found
    assert "&lt;script&gt;document.title='taken'&lt;/script&gt;" in found
    assert "<script" not in found
    assert found.count("<img") == 1
    assert "Until when running jobs run" in found
    assert found.count("<tr>") == 4


def test_errors_of_reading_name_the_matter() -> None:
    observed = Observed()
    snapshots = SnapshotCache(observed, 0.0)  # type: ignore[arg-type]
    assert snapshots.now() is not snapshots.now()
    observed.away = True
    with pytest.raises(BridgeError, match="does not answer"):
        snapshots.now()


class OwnState(PartitionState):
    def machine_state(self) -> MachineState:
        return state_of_queue(read())


class BySlurm(Observed):
    """A partition for which Slurm's own schedulers decide."""

    def read(self) -> PartitionState:
        document = {"now": 1100.0, "policy": OWN_SCHEDULERS, "capacity": {"nodes": 4}}
        return OwnState(document, (), {})


def test_without_a_policy_slurm_s_own_schedulers_decide() -> None:
    with served(make_app(BySlurm())) as address:
        document = json.loads(get(f"{address}/api/forecast?job=4")[1])
        assert document["policy"] == OWN_SCHEDULERS
        assert 1100 < document["jobs"][0]["reserved"] <= 1131  # backfill comes within 30 s

        def policies(query: str) -> list[str]:
            answer = json.loads(get(f"{address}/api/whatif?{query}")[1])
            return [one["policy"] for one in answer["policies"]]

        assert policies("policy=saf%2Beasy") == [OWN_SCHEDULERS, "saf+easy"]
        # they are not played on other nodes
        assert policies("policy=saf%2Beasy&drain=1") == ["fcfs+easy", "fcfs+easy", "saf+easy"]
