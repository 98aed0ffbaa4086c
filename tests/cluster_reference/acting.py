"""Rules of action on a cluster in plain Python, from their definitions: what they add to `Simulation`.

A case has an ``action``: kind, limit, level, restart, resume, guard (seconds), latest; jobs that forbid the
rule have ``permits`` False. A job that speculates runs, but its nodes count as free.
"""

from contextlib import contextmanager

from cluster_reference.scheduler import FOREVER, Simulation

MINUTE = 60


def play_acting(case):
    """Play a case; return its lives in order of their start, and what became of each job."""
    return ActingSimulation(case).play()


class ActingSimulation(Simulation):
    def __init__(self, case):
        self.rule = case["action"]
        self.sees_own_only = False
        super().__init__(case)

    def load(self, job):
        job |= {"done": 0, "overhead": 0, "tried": False, "idle": False, "limit": None, "away": False}
        job |= {"urgent": False, "occupied": 0, "lone": False}
        super().load(job)
        if job["state"] != "refused":
            job["whole"] = job["estimate"]
            self.expect(job)

    # ---- what is believed, and the queue ----------------------------------------------------------------
    def is_new(self, job):
        return self.rule["kind"] == "trial" and job.get("permits", True) and not job["tried"]

    def rest(self, job):
        return max(job["whole"] - job["done"], min(job["whole"], 1))

    def expect(self, job):
        job["estimate"] = self.rest(job) + job["overhead"]
        if self.is_new(job):
            job["estimate"] = min(job["estimate"], self.rule["limit"])

    def attained(self, job):
        if job["state"] != "running":
            return job["done"]
        return job["done"] + max(0, self.now - job["start"] - job["overhead"])

    def level(self, attained):
        if attained < self.rule["limit"]:
            return 0
        return 2 if self.rule["kind"] == "las" and attained >= self.rule["level"] else 1

    def score(self, order, job):
        wait = 0 if job["eligible"] is None else self.now - job["eligible"]
        length = job["whole"] if self.rule["kind"] == "las" else self.rest(job)
        return -order({**job, "estimate": length}, wait)

    def sorted_jobs(self, order):
        def key(job):
            score, last = self.score(order, job), (job["submit"], job["number"])
            if self.is_new(job):
                return (-1, job["tres"]["node"] * job["estimate"], *last)
            if self.rule["kind"] in ("las", "hybrid"):
                level = self.level(job["done"])
                return (level - 0.5, 0, *last) if job["urgent"] else (level, score, *last)
            return (0, score, *last)

        return sorted((job for job in self.in_state("waiting") if not job["away"]), key=key)

    def sorted_candidates(self):
        if self.candidate_order is None:
            return self.sorted_jobs(self.order)
        return sorted(
            self.sorted_jobs(self.order),
            key=lambda job: (self.score(self.candidate_order, job), job["submit"], job["number"]),
        )

    # ---- time -------------------------------------------------------------------------------------------
    def actual_end(self, job):
        return super().actual_end(job) + job["overhead"] - job["done"]

    def believed_end(self, job):
        if job["lone"]:
            return super().believed_end({**job, "estimate": job["whole"]})
        return super().believed_end(job)

    def next_event(self):
        times = [super().next_event()]
        times += [job["limit"] for job in self.in_state("running") if job["limit"] is not None]
        if self.rule["kind"] in ("las", "hybrid") and self.others_wait() and self.in_state("running"):
            times.append((self.now // MINUTE + 1) * MINUTE)
        return min(times)

    def others_wait(self):
        """Tell whether a job waits that may start some time."""
        return any(
            job["eligible"] is not None and not job["away"] and not self.never_starts(job)
            for job in self.in_state("waiting")
        )

    def never_starts(self, job):
        kinds = ("max_wall", "min_tres_per_job", "max_tres_per_job")
        return bool(
            self.barred(job, job["partition"], job["request"], job["tres"]["node"])
            or self.limit(job, [], kinds)
        )

    # ---- who has which nodes ----------------------------------------------------------------------------
    def running(self):
        jobs = self.in_state("running")
        return [job for job in jobs if not job["idle"]] if self.sees_own_only else jobs

    @contextmanager
    def own(self, only=True):
        """Let only jobs on nodes of their own count as running; or all."""
        before, self.sees_own_only = self.sees_own_only, only
        yield
        self.sees_own_only = before

    def free(self, t, removed=(), whatever_state=False):
        with self.own():
            return super().free(t, removed, whatever_state)

    def reserve(self, job):
        with self.own():
            super().reserve(job)

    def conservative(self, queue):
        with self.own():
            super().conservative(queue)

    def least(self, begin, end, bookings):
        with self.own():
            return super().least(begin, end, bookings)

    def limit(self, job, members, *more, **words):
        if self.sees_own_only and members:
            with self.own(only=False):
                members = self.running() + self.suspended()
        return super().limit(job, members, *more, **words)

    def reason(self, job):
        with self.own(only=False):
            return super().reason(job)

    def on_idle(self, c):
        """Return who speculates on a class, in order of start."""
        jobs = [job for job in self.in_state("running") if job["idle"] and c in job["takes"]]
        return sorted(jobs, key=lambda job: job["serial"])

    def idle(self, c):
        """Return what is free of a class without what speculating jobs have."""
        amounts = dict(self.free(self.now)[c])
        for job in self.on_idle(c):
            group = self.classes[c]
            if group["counted"]:
                up = [i for i in job["at"] if i in group["nodes"] and self.nodes[i]["state"] == "up"]
                amounts["nodes"] -= len(up)
            elif self.nodes[group["nodes"][0]]["state"] == "up":
                amounts = {name: n - job["takes"][c].get(name, 0) for name, n in amounts.items()}
        return amounts

    def start(self, job, takes):
        with self.own(only=False):
            if self.backfill != "conservative" and any(other["idle"] for other in self.in_state("running")):
                have = self.available(job, self.now)
                idle = {c: self.idle(c) for c in have}
                both = {c: {n: min(x, idle[c][n]) for n, x in have[c].items()} for c in have}
                takes = self.select(job, both) or takes
            for c, amounts in takes.items():
                while any(self.idle(c).get(name, n) < n for name, n in amounts.items()):
                    self.kill(self.on_idle(c)[-1])
                    self.back[-1]["away"] = True
            is_tried, job["tried"] = self.is_new(job), True
            self.become(job, "going")
            if is_tried and not self.others_wait():
                is_tried, job["lone"] = False, True
            super().start(job, takes)
            if is_tried:
                job["limit"] = self.now + self.rule["limit"]

    # ---- stops ------------------------------------------------------------------------------------------
    def end_early(self, job, outcome, delay=0, overhead=0):
        since, lasted = job["eligible"], self.now - job["start"]
        super().end_early(job, outcome, delay)
        job |= {"limit": None, "idle": False, "lone": False, "overhead": overhead}
        job["occupied"] += lasted
        self.expect(job)
        return since

    def kill(self, job):
        """Stop a job, which runs again from the beginning; it waits since it was eligible first."""
        job["eligible"] = self.end_early(job, "PREEMPTED_REQUEUED", overhead=self.rule["restart"])
        self.back.append(job)

    def preempt(self, job):
        if super().preempt(job):
            return True
        if self.rule["kind"] not in ("las", "hybrid"):
            return False
        graces = [v for v in self.running() if v.get("grace_end") is not None]
        if any(v.get("preemptor") == job["number"] for v in graces):
            return False
        nodes = self.admissible_nodes(job, job["partition"], self.now)
        victims = [v for v in self.running() if v not in graces and set(v["at"]) & nodes]
        victims = sorted((v for v in victims if self.gives_way(v, job)), key=self.rank_by_rule)

        def suffices(removed):
            return self.select(job, self.available(job, self.now, removed)) is not None

        removed = next((victims[:k] for k in range(1, len(victims) + 1) if suffices(victims[:k])), [])
        for victim in list(removed):
            others = [v for v in removed if v is not victim]
            if suffices(others):
                removed = others
        for victim in removed:
            attained = self.attained(victim)
            since = self.end_early(victim, "PREEMPTED_REQUEUED", overhead=self.rule["resume"])
            victim |= {"done": attained, "eligible": since}
            self.expect(victim)
        if removed:
            self.firsts.add(job["number"])
        return bool(removed)

    def area(self, job):
        left = max(job["whole"] - self.attained(job), min(job["whole"], 1))
        return job["tres"]["node"] * left

    def gives_way(self, victim, head):
        if not victim.get("permits", True) or self.now - victim["start"] < MINUTE:
            return False
        level, own = self.level(self.attained(victim)), self.level(head["done"])
        if level > own:
            return True
        if self.rule["kind"] == "las" or not level == own == 1 or victim["urgent"]:
            return False
        return head["urgent"] or 2 * self.area(head) < self.area(victim)

    def rank_by_rule(self, victim):
        if self.rule["kind"] == "las":
            size = 0 if self.rule["latest"] else victim["tres"]["node"]
            return (-self.level(self.attained(victim)), size, -victim["serial"])
        return (-self.area(victim), 0, -victim["serial"])

    # ---- a pass -----------------------------------------------------------------------------------------
    def bring_back(self):
        for job in self.back:
            job["away"] = False
        self.back = []

    back = ()

    def end_limited(self):
        self.bring_back()
        limited = [job for job in self.in_state("running") if job["limit"] is not None]
        for job in sorted(limited, key=lambda job: job["serial"]):
            if job["limit"] <= self.now:
                self.kill(job)
        self.bring_back()

    def scheduling_pass(self):
        for job in self.in_state("waiting"):
            if self.rule["guard"] and job["eligible"] is not None and not self.never_starts(job):
                waited = self.now - job["eligible"] - job["occupied"]
                job["urgent"] = job["urgent"] or waited >= self.rule["guard"]
        super().scheduling_pass()
        if self.firsts:  # the pass was broken off
            return
        self.bring_back()
        if self.rule["kind"] == "speculative":
            self.speculate()

    def speculate(self):
        def chosen(job):
            if self.reason(job) is not None:
                return None
            return self.select(job, {c: self.idle(c) for c in self.admissible(job, self.now)})

        self.heads, self.struck = [], set()
        queue = self.sorted_jobs(self.order)
        fitting = [j for j in queue if j.get("permits", True) and not j["tried"] and chosen(j) is not None]
        if not fitting:
            return
        for job in queue:
            if job["partition"] not in [h["job"]["partition"] for h in self.heads] and not self.reason(job):
                self.reserve(job)
        for job in fitting:
            takes = chosen(job)
            if takes is None:
                continue
            nodes = {self.classes[c]["nodes"][0] for c in takes}
            shadows = [
                h["shadow"] for h in self.heads
                if nodes & self.admissible_nodes(h["job"], h["job"]["partition"])
            ]  # fmt: skip
            until = min([self.now + self.rule["limit"], *shadows, FOREVER])
            if until > self.now:
                job |= {"tried": True, "limit": until}
                heads, self.heads = self.heads, []
                Simulation.start(self, job, takes)
                self.become(job, "running", idle=True)
                self.heads = heads
