"""The page and the JSON API, by Starlette: read-only, without scripts, whatever jobs are called."""

import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import jinja2
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from bridge.base.errors import BridgeError
from bridge.forecasting.bound import RULES
from bridge.forecasting.statefile import document_of
from bridge.report.tables import duration
from bridge.scheduler.names import BACKFILLS
from bridge.serve.snapshot import BusyError, Snapshot, SnapshotCache
from bridge.worlds.slurm.client import SlurmUnreachableError

#: Rules that may be asked about; no other word of a visitor becomes a policy.
OFFERED = tuple(f"{order}+{backfill}" for backfill in BACKFILLS for order in RULES)
#: Rows of the page, and rules of one question.
_ROWS, _RULES = 500, 4
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
#: Seconds after which one may ask again who was not answered.
_RETRY = "5"
_Next = Callable[[Request], Awaitable[Response]]


class _PrivateError(BridgeError):
    """The cluster keeps jobs private."""


def app(
    snapshots: SnapshotCache, refresh: float, hosts: Sequence[str] = ("localhost", "127.0.0.1")
) -> Starlette:
    """Return the application; a browser asks again after `refresh` s.

    `hosts`: names that it may be asked by; others are refused, so that no other site can read it through a
    visitor's browser.
    """
    loader, strict = jinja2.FileSystemLoader(Path(__file__).parent), jinja2.StrictUndefined
    pages = jinja2.Environment(
        loader=loader, autoescape=True, undefined=strict, trim_blocks=True, lstrip_blocks=True
    )
    pages.globals.update(
        partition=snapshots.observer.partition, refresh=round(refresh), offered=OFFERED, until=_until
    )
    pages.filters.update(duration=duration, clock=_clock)

    def html(handle: Callable[[jinja2.Environment, Request, Snapshot], str]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            try:
                return HTMLResponse(handle(pages, request, snapshots.now()))
            except BridgeError as error:
                page = pages.get_template("error.html.j2").render(error=str(error))
                return HTMLResponse(page, status_code=_status(error))

        return answer

    def api(handle: Callable[[Request, Snapshot], Any]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            try:
                document, status = handle(request, snapshots.now()), 200
            except BridgeError as error:
                document, status = {"error": str(error)}, _status(error)
            return Response(json.dumps(document), status, media_type="application/json")

        return answer

    routes = [
        Route("/", html(_page)),
        Route("/whatif", html(_whatif_page)),
        Route("/style.css", _style),
        Route("/futures.svg", partial(_picture, snapshots)),
        Route("/api/queue", api(_queue)),
        Route("/api/forecast", api(_forecast)),
        Route("/api/state", api(_state)),
        Route("/api/whatif", api(_whatif)),
    ]
    middleware = [
        Middleware(BaseHTTPMiddleware, dispatch=_guarded),
        Middleware(TrustedHostMiddleware, allowed_hosts=[*hosts]),
    ]
    return Starlette(routes=routes, middleware=middleware)


async def _guarded(request: Request, go_on: _Next) -> Response:
    response = await go_on(request)
    response.headers.update(_HEADERS)
    if response.status_code == 503:
        response.headers["Retry-After"] = _RETRY
    return response


def _status(error: BridgeError) -> int:
    return (
        403
        if isinstance(error, _PrivateError)
        else 503
        if isinstance(error, (SlurmUnreachableError, BusyError))
        else 400
    )


def _page(pages: jinja2.Environment, _request: Request, shot: Snapshot) -> str:
    jobs = shot.queue()
    return pages.get_template("queue.html.j2").render(
        totals=shot.totals(),
        jobs=jobs[:_ROWS],
        more=max(len(jobs) - _ROWS, 0),
        private=shot.private,
        drawn=not shot.private and shot.forecast() is not None,
    )


def _whatif_page(pages: jinja2.Environment, request: Request, shot: Snapshot) -> str:
    policies, drain = _question(request, shot)
    outcomes = shot.whatif(policies, drain) if len(shot.state.waiting) else []
    return pages.get_template("whatif.html.j2").render(
        totals=shot.totals(), outcomes=outcomes, drain=drain, policies=policies, futures=shot.futures
    )


def _style(_request: Request) -> Response:
    return Response(Path(__file__).with_name("page.css").read_text("utf-8"), media_type="text/css")


def _picture(snapshots: SnapshotCache, _request: Request) -> Response:
    try:
        picture = snapshots.now().picture()
    except BridgeError as error:
        return Response(str(error), _status(error), media_type="text/plain")
    return Response(picture or b"", 200 if picture else 404, media_type="image/svg+xml")


def _queue(_request: Request, shot: Snapshot) -> Any:
    return {**shot.totals(), "private": shot.private, "jobs": shot.queue()}


def _forecast(request: Request, shot: Snapshot) -> Any:
    _refuse_private(shot)
    starts, job = shot.starts(), request.query_params.get("job")
    if job is not None and job not in starts:
        why = shot.present.not_forecast.get(job, "it does not wait")
        raise BridgeError(f"no forecast: {why}", where=f"job {job[:40]!r}")
    rows = [*starts.values()] if job is None else [starts[job]]
    return {"now": shot.present.document["now"], "policy": shot.state.decider, "jobs": rows}


def _state(_request: Request, shot: Snapshot) -> Any:
    _refuse_private(shot)
    if shot.state.site is not None:
        what = "a state's file is of one pool of nodes, and here nodes have names"
        remedy = "Ask /api/forecast or /api/whatif; or serve one partition with --policy fcfs+easy."
        raise BridgeError(what, remedy=remedy)
    return document_of(shot.state)


def _whatif(request: Request, shot: Snapshot) -> Any:
    policies, drain = _question(request, shot)
    if not len(shot.state.waiting):
        raise BridgeError("no job waits: nothing can differ")
    return {"now": shot.state.now / 1e6, "futures": shot.futures, "policies": shot.whatif(policies, drain)}


def _refuse_private(shot: Snapshot) -> None:
    if shot.private:
        raise _PrivateError("jobs are private on this cluster (PrivateData=jobs): only totals are told")


def _question(request: Request, shot: Snapshot) -> tuple[tuple[str, ...], int]:
    """Return the rules and the drained nodes that a visitor asks about, the shown rule first."""
    policies_given = [word for word in request.query_params.getlist("policy") if word]
    if wrong := [word for word in policies_given if word not in OFFERED]:
        where = f"policy {wrong[0][:40]!r}"
        raise BridgeError("is none of the rules on offer", where=where, remedy=", ".join(OFFERED))
    drain = request.query_params.get("drain") or "0"
    most = shot.present.document["capacity"]["nodes"] - 1
    if not (drain.isascii() and drain.isdigit() and len(drain) < 9 and int(drain) <= most):
        raise BridgeError(f"must be a whole number, 0 to {most}", where="drain")
    # Slurm's own schedulers are not played on other nodes
    base = "" if shot.state.own is not None and drain == "0" else shot.state.policy
    policies = tuple(dict.fromkeys((base, *policies_given)))[: _RULES + 1]
    if len(policies) < 2 and drain == "0":
        policies = (*policies, next(rule for rule in OFFERED[1:] if rule not in policies))
    return policies, int(drain)


def _until(time: float | None, now: float) -> str:
    return "never" if time is None else duration(max(round(time - now), 0))


def _clock(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
