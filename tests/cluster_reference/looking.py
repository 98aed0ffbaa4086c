"""The order `lookahead` on a cluster: at each pass the whole simulation is copied and played on."""

import copy

import numpy as np

from cluster_reference.scheduler import FOREVER, Simulation

#: A roll-out ends after so many times T.
REACH = 10


class RollOut(Simulation):
    """What comes of one order of the queue, as far as anybody can foresee it."""

    def forget(self, now):
        """Forget what nobody can foresee: arrivals, the calendar, true run times, and how jobs ended."""
        known = [r for r in self.reservations.values() if r.get("announced", 0) <= now]
        for entry in self.reservations.values():
            if entry not in known:
                entry.update(announced=FOREVER, begin=FOREVER, end=FOREVER)
        moments = sorted({time for entry in known for time in (entry["begin"], entry["end"]) if time > now})
        self.events = [(time, {"reservation": ""}) for time in moments]
        for job in self.jobs:
            job["believed_run"] = job.get("estimate", 0)
            if job["state"] == "future":
                job["submit"] = FOREVER
            if job["state"] in ("running", "suspended"):
                until = job["suspended_at"] if job["state"] == "suspended" else now
                elapsed = until - job["start"] - job["stood"]
                job["believed_run"] = max(job["estimate"], elapsed + 1)

    def next_event(self):
        event = super().next_event()
        return event if event <= self.until else FOREVER

    def next_cancellations(self):
        return [time for time in super().next_cancellations() if time <= self.until]

    def actual_end(self, job):
        return job["start"] + job["believed_run"] + job["stood"]

    def finish(self, job):
        self.close_life(job, "COMPLETED")
        self.become(job, "ended", end=self.now, outcome="COMPLETED")

    def sorted_jobs(self, _order):
        """Return the queue in the frozen order; whoever came to it since stands behind."""
        places = {number: place for place, number in enumerate(self.frozen)}
        waiting = [job for job in self.jobs if job["state"] == "waiting"]
        return sorted(
            waiting, key=lambda job: (places.get(job["number"], FOREVER), job["submit"], job["number"])
        )

    def growth(self, judged, begin, seconds):
        """Return the discounted growth of the slowdowns of some jobs."""
        after, weight = [], []
        for number in judged:
            job = self.jobs[number]
            since = self.until
            if job["state"] in ("running", "ended") and job["start"] is not None:
                since = job["start"] + job["stood"]
            elif job["state"] == "suspended":
                since = job["start"] + job["stood"] + self.until - job["suspended_at"]
            after.append(min(since, self.until) - begin)
            weight.append(1.0 / max(job["estimate"], 10.0))
        return float((np.array(weight) * seconds * -np.expm1(-np.array(after, float) / seconds)).sum())


class Looking(Simulation):
    """A simulation under ``lookahead(ORDER, T=…, margin=…, deviations=…)``; `case["order"]` is the rule."""

    def __init__(self, case, seconds, margin, deviations):
        super().__init__(case)
        self.seconds, self.margin, self.deviations = seconds, margin, deviations
        self.ranked, self.moves = None, 0

    def scheduling_pass(self):
        if not self.firsts:
            self.resume()
        self.ranked = None
        self.ranked = self.best_order()
        super().scheduling_pass()

    def sorted_jobs(self, order):
        jobs = super().sorted_jobs(order)
        if self.ranked is not None:
            places = {number: place for place, number in enumerate(self.ranked)}
            jobs.sort(key=lambda job: places.get(job["number"], FOREVER))  # stable
        return jobs

    def waits_for_resources(self, job):
        """Tell whether nothing but resources, or its partition, holds a job."""
        partition = self.partitions[job["partition"]]
        state = partition.get("state", "up")
        partition["state"] = "up"
        reason = self.reason(job)
        partition["state"] = state
        return reason is None

    def best_order(self):
        queue = [job for job in super().sorted_jobs(self.order) if job["eligible"] is not None]
        judged = [job["number"] for job in queue if self.waits_for_resources(job)]
        rest = [job["number"] for job in queue if job["number"] not in judged]
        least = self.cost(judged, rest) * (1.0 - self.margin)
        best = judged
        if least > 0:
            for k in range(1, min(len(judged), self.deviations + 1)):
                moved = [judged[k], *judged[:k], *judged[k + 1 :]]
                cost = self.cost(judged, rest, moved)
                if cost < least:
                    least, best = cost, moved
        self.moves += best != judged
        return best + rest

    def cost(self, judged, rest, order=None):
        future = copy.deepcopy(self)
        future.__class__ = RollOut
        future.until = self.now + REACH * self.seconds
        future.frozen = (judged if order is None else order) + rest
        future.forget(self.now)
        future.touch()
        future.scheduling_pass()
        future.play()
        return future.growth(judged, self.now, self.seconds)
