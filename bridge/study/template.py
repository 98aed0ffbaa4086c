"""A study of the user's own log: the commented template, with sizes that the log can bear."""

import json
from pathlib import Path

from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.study.cells import load_log
from bridge.worlds.fast.scheduler_config import SchedulerConfig

#: Jobs a sequence, and sequences, where the log is long enough; fewer jobs than `LEAST` make no study.
LENGTH, SEQUENCES, LEAST = 256, 200, 500


def template_for(log: str) -> str:
    """Return a study's file for a log; raises BridgeError if that cannot be read, or is too short."""
    jobs = len(SchedulerConfig().select(load_log(log)))
    if jobs < LEAST:
        remedy = f"A study needs {LEAST} or more, to learn from some and judge on others."
        raise BridgeError(f"has {counted(jobs, 'job')} only", where=log, remedy=remedy)
    # ten windows apart, at least, in the two fifths that are held out
    length = min(LENGTH, max(16, jobs * 2 // 5 // 10))
    text = Path(__file__).with_name("template.toml").read_text("utf-8")
    return text.format(log=json.dumps([log]), length=length, sequences=SEQUENCES)
