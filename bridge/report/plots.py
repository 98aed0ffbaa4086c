"""The pictures of runs, in one place: timeline, Gantt chart, distributions, and saving them."""

from bridge.report.distributions import distributions
from bridge.report.gantt import MOST_JOBS, gantt
from bridge.report.style import save
from bridge.report.timeline import timeline

__all__ = ["MOST_JOBS", "distributions", "gantt", "save", "timeline"]
