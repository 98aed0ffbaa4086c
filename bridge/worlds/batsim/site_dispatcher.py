"""The dispatcher on a cluster: the scheduler names nodes; jobs that can never start are rejected."""

from bridge.scheduler.cluster_session import ClusterSession, NodeDemand, SiteJobs
from bridge.scheduler.timed_session import TimedSession
from bridge.wire import events as ev
from bridge.worlds.batsim.dispatcher import Dispatcher, DispatcherConfig
from bridge.worlds.batsim.jobs import DispatchedJob
from bridge.worlds.batsim.machine_view import MachineView, NamedHosts
from bridge.worlds.batsim.site import SiteHosts, SiteRules


class SiteDispatcher(Dispatcher):
    """See `Dispatcher`. `rules`: what the referee checks starts by, once the simulation has begun."""

    session: ClusterSession
    _machine: NamedHosts

    def __init__(self, setup: DispatcherConfig) -> None:
        super().__init__(setup)
        self._site: SiteJobs
        self.hosts: SiteHosts

    def _view(self, names: list[str]) -> MachineView:
        return NamedHosts(names)

    def _begin(self, begin: ev.SimulationBegins) -> None:
        assert self._setup.site is not None
        self._site = self._setup.site(self._setup.window)
        self.hosts = SiteHosts(self._site, begin)
        super()._begin(begin)
        self.rules = SiteRules(
            self._site,
            self.hosts,
            self._demand_of,
            lambda job_id: self.session.units(self.jobs[job_id].index),
        )

    def _new_session(self) -> ClusterSession:
        return ClusterSession(self._site) if self._site.lives is None else TimedSession(self._site)

    def _demand_of(self, job_id: str) -> NodeDemand:
        return self._site.demands[int(self._site.shape[self.jobs[job_id].index])]

    def _make_decisions(self) -> None:
        self._opens |= self._apply_calendar()
        super()._make_decisions()
        if not self._more_jobs and self._unfinished and self.session.is_idle():
            for job in [job for job in self._index if job is not None and job.state == "waiting"]:
                self._give_up(
                    job, "can never start: limits, dependencies or nodes that are down hold it for ever"
                )

    def _apply_calendar(self) -> bool:
        """Let graces end, and what the calendar has for now happen; tell whether there was anything."""
        session = self.session
        if not isinstance(session, TimedSession):
            return False
        happened = session.apply_due()
        self._note_stops()
        for j in session.cancelled():
            if (job := self._index[j]) is not None:
                self._give_up(job, "is cancelled by the calendar, or its dependency can never be met")
        return happened

    def _pass(self) -> None:
        session = self.session
        while True:
            for job in self._start_jobs():  # the lives that this pass has stopped are no starts
                nodes = session.nodes(job.index)
                job.hosts = self.hosts.hosts(nodes)
                if len(nodes) != job.n_hosts:  # as many as its tasks need now
                    job.mapping = {rank: rank % len(nodes) for rank in range(job.n_hosts)}
                self._machine.note(job.hosts)
                self._granted.append(job)
            self._note_stops()
            due = False  # what the pass lets become eligible is a further pass of the same instant
            while session.wake_at <= self._now and not due:
                due = self._apply_calendar() or session.is_due()
            if not due:
                break
        for event in self._arrivals:
            job = self.jobs[event.job_id]
            if job.state == "waiting" and job.index >= 0 and session.was_refused(job.index):
                self._give_up(job, "is refused by its partition or a limit when it is submitted")

    def _note_stops(self) -> None:
        """Take note of the lives that were cut short: on such a site there are none."""
        if isinstance(self.session, TimedSession):
            assert not self.session.stops()

    def _give_up(self, job: DispatchedJob, why: str) -> None:
        """Reject a job that the scheduler does not queue, or will never start."""
        self._reject(job, why)
        job.by_rule = True
        self._index[job.index] = None
        self._unfinished -= 1
        self.jobs.close(job)
