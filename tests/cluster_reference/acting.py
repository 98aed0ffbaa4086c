"""Rules of action on a cluster in plain Python, from their definitions: what they add to `Simulation`.

A case has an ``action``: kind, limit, level, restart, host, resume, guard (seconds), latest; jobs that forbid
the rule have ``permits`` False. A job that speculates runs, but its nodes count as free; a guest runs on
nodes of jobs that run, but stand. Jobs, QOS, partitions may have their own costs and ``suspended_memory``.
"""

import math
from contextlib import contextmanager

from cluster_reference.scheduler import FOREVER, Simulation, taken_by, times

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
        job |= {"guest": None, "visits": False, "lent": 0, "lent_since": None, "works_from": 0}
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
        until = self.now if job["guest"] is None else job["lent_since"]
        return job["done"] + max(0, until - job["start"] - job["overhead"] - job["lent"])

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
        if job["guest"] is not None:
            return FOREVER
        return super().actual_end(job) + job["overhead"] - job["done"] + job["lent"]

    def believed_end(self, job):
        stands = 0 if job["guest"] is None else self.rule["limit"] + self.cost(job, "host")
        estimate = job["whole"] if job["lone"] else job["estimate"]
        return super().believed_end({**job, "estimate": estimate + job["lent"] + stands})

    def stated(self, job, name, default):
        """Return what a job says, or else its QOS, or its partition."""
        of_qos = self.qos.get(job.get("qos"), {})
        return job.get(name, of_qos.get(name, self.partitions[job["partition"]].get(name, default)))

    def cost(self, job, name):
        return self.stated(job, name + "_cost", self.rule[name])

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
        own = [job for job in jobs if not job["idle"] and not job["visits"]]
        return own if self.sees_own_only else jobs

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
        if job["guest"] is not None:
            self.kill(self.jobs[job["guest"]])
        since, lasted = job["eligible"], self.now - job["start"]
        super().end_early(job, outcome, delay)
        job |= {"limit": None, "idle": False, "lone": False, "overhead": overhead, "lent": 0}
        job["occupied"] += lasted
        self.let_hosts_return(job)
        self.expect(job)
        return since

    def kill(self, job):
        """Stop a job, which runs again from the beginning; it waits since it was eligible first."""
        job["eligible"] = self.end_early(job, "PREEMPTED_REQUEUED", overhead=self.cost(job, "restart"))
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
            since = self.end_early(victim, "PREEMPTED_REQUEUED", overhead=self.cost(victim, "resume"))
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
        if self.rule["kind"] == "guest":
            self.admit_guests()

    def could_have(self, job):
        """Return the nodes that admit a job, and would hold some of it if they were empty."""
        nodes = self.admissible_nodes(job, job["partition"])
        return {
            i
            for c, group in enumerate(self.classes)
            for i in group["nodes"]
            if i in nodes and self.tasks_held(job, c) > 0
        }

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
                if nodes & self.could_have(h["job"])
            ]  # fmt: skip
            until = min([self.now + self.rule["limit"], *shadows, FOREVER])
            if until > self.now:
                job |= {"tried": True, "limit": until}
                heads, self.heads = self.heads, []
                Simulation.start(self, job, takes)
                self.become(job, "running", idle=True)
                self.heads = heads

    # ---- guests -----------------------------------------------------------------------------------------
    def finish(self, job):
        super().finish(job)
        self.let_hosts_return(job)

    def let_hosts_return(self, guest):
        for host in self.in_state("running") if guest["visits"] else ():
            if host["guest"] == guest["number"]:
                cost = self.cost(host, "host")
                host["lent"] += self.now - host["lent_since"] + cost
                host |= {"guest": None, "works_from": self.now + cost}
        guest["visits"] = False
        self.touch()

    def apply_calendar(self, entry):
        if entry.get("state") == "down":
            for job in self.in_state("running"):
                if job["visits"] and set(job["at"]) & set(entry["nodes"]):
                    outcome = "REQUEUED" if job.get("requeue", True) else "NODE_FAIL"
                    self.end_early(job, outcome, self.requeue_delay)
        super().apply_calendar(entry)

    def check_nodes(self):
        with self.own():
            super().check_nodes()

    def may_lend(self, host):
        ready = host.get("permits", True) and host["guest"] is None and host["works_from"] <= self.now
        enough = self.attained(host) >= 4 * (host["lent"] + self.rule["limit"])
        return ready and enough and host.get("grace_end") is None

    def tasks_of_node(self, job, c):
        """Return how many tasks of a job a whole node of a class may have; 1: it knows none."""
        return self.tasks_held(job, c) if "tasks" in job else 1

    def tasks_held(self, job, c):
        """Return how many vectors of a job an empty node of a class holds."""
        partition, capacity = self.partitions[job["partition"]], self.classes[c]["capacity"]
        bounds = [
            partition[limit] // job["vector"][name]
            for name, limit in (("cores", "max_cores_per_node"), ("memory", "max_memory_per_node"))
            if limit in partition and job["vector"][name] not in (0, "all")
        ]
        return min([times(job["vector"], capacity, capacity), *bounds])

    def memory_of(self, job, c, tasks):
        """Return the memory that a job asks for of a node with so many tasks."""
        capacity = self.classes[c]["capacity"]
        return min(taken_by(job["vector"], tasks, capacity).get("memory", 0), capacity["memory"])

    def memory_kept(self, host, c):
        if self.classes[c]["counted"] or self.is_exclusive(host):
            memory = self.memory_of(host, c, self.tasks_of_node(host, c))
        else:
            memory = host["takes"][c].get("memory", 0)
        return math.ceil(memory * self.stated(host, "suspended_memory", 1))

    def lent_by(self, host, guest):
        """Return what a host lends to a guest, by class, and the nodes."""
        lent, nodes = {}, []
        for c in self.admissible(guest, self.now):
            group = self.classes[c]
            at = [i for i in host["at"] if i in group["nodes"] and self.nodes[i]["state"] == "up"]
            if c not in host["takes"] or not at:
                continue
            if group["counted"] or self.is_exclusive(guest):
                if self.lends_whole(host, guest, c):
                    lent[c] = {"nodes": len(at)} if group["counted"] else dict(group["capacity"])
                    nodes += at
                continue
            amounts = dict.fromkeys(group["capacity"], 0) | {"cores": host["takes"][c]["cores"]}
            if "memory" in group["capacity"]:
                amounts["memory"] = host["takes"][c].get("memory", 0) - self.memory_kept(host, c)
            lent[c] = amounts
            nodes += at
        return lent, nodes

    def lends_whole(self, host, guest, c):
        """Tell whether a host lends whole nodes of a class."""
        capacity = self.classes[c]["capacity"]
        if not self.classes[c]["counted"] and not self.is_exclusive(host):
            return False
        if any(amount for name, amount in guest["vector"].items() if name.startswith("gpu")):
            return False
        if "memory" not in capacity:
            return True
        needs = self.memory_of(guest, c, self.tasks_of_node(guest, c))
        return needs <= capacity["memory"] - self.memory_kept(host, c)

    def takes_of(self, guest, hosts):
        """Return what a guest takes of what these hosts lend; None: they do not suffice."""
        have = {
            c: {"nodes": 0} if self.classes[c]["counted"] else dict.fromkeys(self.classes[c]["capacity"], 0)
            for c in self.admissible(guest, self.now)
        }
        for host in hosts:
            for c, amounts in self.lent_by(host, guest)[0].items():
                for name, amount in amounts.items():
                    have[c][name] += amount
        return self.select(guest, have)

    def hosts_for(self, guest):
        hosts = [job for job in self.running() if not job["visits"] and self.may_lend(job)]
        for host in sorted(hosts, key=lambda job: (job["tres"]["node"], job["submit"], job["number"])):
            if self.takes_of(guest, [host]) is not None:
                return [host]
        hosts = [host for host in hosts if self.lent_by(host, guest)[1]]
        hosts.sort(key=lambda job: (-job["tres"]["node"], job["submit"], job["number"]))
        firsts = (hosts[:k] for k in range(1, len(hosts) + 1))
        chosen = next((few for few in firsts if self.takes_of(guest, few) is not None), [])
        for host in list(chosen):
            others = [other for other in chosen if other is not host]
            if self.takes_of(guest, others) is not None:
                chosen = others
        return chosen

    def admit_guests(self):
        self.heads, self.struck = [], set()
        for job in self.sorted_jobs(self.order):
            if job["tried"] or not job.get("permits", True) or self.reason(job) is not None:
                continue
            hosts = self.hosts_for(job)
            if not hosts:
                continue
            takes = self.takes_of(job, hosts)
            lent = {i for host in hosts for i in self.lent_by(host, job)[1]}
            at = []
            for c, amounts in takes.items():
                nodes = [i for i in self.classes[c]["nodes"] if i in lent]
                at += nodes[: amounts["nodes"]] if self.classes[c]["counted"] else nodes
            for host in hosts:
                host |= {"guest": job["number"], "lent_since": self.now}
            self.serial = getattr(self, "serial", -1) + 1
            job |= {"tried": True, "visits": True, "limit": self.now + self.rule["limit"], "grace_end": None}
            self.become(
                job, "running", start=self.now, takes=takes, at=sorted(at), stood=0, serial=self.serial
            )
            if job["first_start"] is None:
                job["first_start"] = self.now
            self.note(job, None)
