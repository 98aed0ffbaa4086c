"""Slurm's SchedulerParameters by name, with their defaults of 22.05; times in s, `bf_window` too."""

from collections.abc import Mapping
from dataclasses import dataclass

from bridge.base.errors import BridgeError

#: Parameters that decide when or where jobs start and are not modelled: a site that states one is refused.
REFUSED = frozenset(
    (
        *("bf_one_resv_per_job", "bf_topopt_enable", "bf_topopt_iterations", "delay_boot", "Ignore_NUMA"),
        *("ignore_prefer_validation", "max_rpc_cnt", "max_switch_wait", "pack_serial_at_end"),
        *("reduce_completing_frag", "ignore_constraint_validation", "bf_licenses_only"),
        *("spec_cores_first", "whole_pack", "whole_hetjob", "bf_hetjob_immediate", "bf_hetjob_prio"),
        *("preempt_send_user_signal", "preempt_send_user_signal"),
    )
)
#: Parameters that change no start: of users' rights, of logs, of RPCs, of yields that a replay has not.
_SILENT = frozenset(
    (
        *("bf_continue", "bf_yield_interval", "bf_yield_sleep", "bf_max_time", "bf_ignore_newly_avail_nodes"),
        *(
            "batch_sched_delay",
            "build_queue_timeout",
            "defer",
            "defer_batch",
            "enable_user_top",
            "no_env_cache",
        ),
        *("sched_max_job_start", "salloc_wait_nodes", "sbatch_wait_nodes", "time_min_as_soft_limit"),
        *("nohold_on_prolog_fail", "requeue_setup_env_fail", "enable_hetero_jobs", "allow_zero_lic"),
        *("bf_node_space_size", "max_array_tasks", "step_retry_count", "step_retry_time", "sched_interval"),
        *("sched_min_interval", "bf_interval", "max_sched_time", "max_script_size", "default_gbytes"),
        *("enable_job_state_cache", "disable_job_shrink", "disable_hetjob_steps", "extra_constraints"),
        *("bb_array_stage_cnt", "hetjob_immediate", "max_depend_depth", "gs_sched_delay", "allow_all_qos"),
        "enable_stepmgr",
    )
)
_COUNTS = {
    "default_queue_depth": "queue_depth",
    "partition_job_depth": "partition_depth",
    "sched_max_job_start": "max_starts",
    "bf_max_job_test": "bf_max_test",
    "bf_max_job_start": "bf_max_start",
    "bf_max_job_user": "bf_max_user",
    "bf_max_job_part": "bf_max_part",
    "bf_max_job_assoc": "bf_max_assoc",
    "bf_max_job_user_part": "bf_max_user_part",
    "bf_max_job_array_resv": "bf_array_resv",
    "bf_node_space_size": "bf_map_size",
    "bf_resolution": "bf_resolution",
    "bf_window_scale": "bf_window_scale",
    "bf_min_prio_reserve": "bf_min_prio",
    "bf_min_age_reserve": "bf_min_age",
    "bf_job_part_count_reserve": "bf_part_reserve",
    "preempt_reorder_count": "preempt_reorder",
    "bf_interval": "bf_interval",
    "bf_yield_interval": "bf_yield_interval",
    "sched_interval": "sched_interval",
    "batch_sched_delay": "batch_delay",
    "sched_min_interval": "min_interval",
    "max_sched_time": "max_sched_time",
    "bf_max_time": "bf_max_time",
}
_WORDS = {
    "bf_licenses": "bf_licenses",
    "bf_running_job_reserve": "bf_running_reserve",
    "bf_busy_nodes": "bf_busy_nodes",
    "assoc_limit_stop": "limit_stop",
    "preempt_strict_order": "preempt_strict",
    "preempt_youngest_first": "preempt_youngest",
    "bf_continue": "bf_continue",
    "defer": "defer",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What of SchedulerParameters decides; fields by short names, see `_COUNTS` and `_WORDS`."""

    queue_depth: int = 100
    partition_depth: int = 0
    max_starts: int = 0
    bf_max_test: int = 500
    bf_max_start: int = 0
    bf_max_user: int = 0
    bf_max_part: int = 0
    bf_max_assoc: int = 0
    bf_max_user_part: int = 0
    bf_array_resv: int = 20
    bf_map_size: int = 0
    bf_resolution: int = 60
    bf_window: int = 86_400
    bf_window_scale: int = 0
    bf_min_prio: int = 0
    bf_min_age: int = 0
    bf_part_reserve: int = 0
    bf_interval: int = 30
    bf_yield_interval: int = 2_000_000
    bf_max_time: int = 0
    preempt_reorder: int = 1
    sched_interval: int = 60
    batch_delay: int = 3
    min_interval: int = 2
    max_sched_time: int = 2
    bf_licenses: bool = False
    bf_running_reserve: bool = False
    bf_busy_nodes: bool = False
    bf_continue: bool = False
    limit_stop: bool = False
    preempt_strict: bool = False
    preempt_youngest: bool = False
    defer: bool = False


def parameters_of(words: Mapping[str, str], where: str) -> Parameters:
    """Return the parameters; BridgeError at `where`: one is not modelled, not known, or no number."""
    fields: dict[str, int | bool] = {}
    for name, value in words.items():
        place = f"{where}, SchedulerParameters"
        if name in REFUSED:
            remedy = "Leave it out, and know that the site decides otherwise there."
            raise BridgeError(f"{name} is not modelled by the protocol slurm", where=place, remedy=remedy)
        if name in _WORDS:
            fields[_WORDS[name]] = value.lower() not in ("no", "0", "false")
        elif name == "bf_window":
            fields["bf_window"] = 60 * _number(name, value, place)
        elif name in _COUNTS:
            fields[_COUNTS[name]] = _number(name, value, place)
        elif name not in _SILENT:
            remedy = "Mend its name, or leave it out."
            raise BridgeError(f"{name} is not known to the protocol slurm", where=place, remedy=remedy)
    if not fields.get("bf_map_size"):
        fields["bf_map_size"] = fields.get("bf_max_test", 500)
    if fields.get("bf_licenses"):
        fields["bf_running_reserve"] = True
    if fields.get("bf_resolution", 60) < 1:
        raise BridgeError("bf_resolution is at least 1", where=where, remedy="Mend it.")
    return Parameters(**fields)  # type: ignore[arg-type]


def _number(name: str, value: str, place: str) -> int:
    if not value.isdecimal() or len(value) > 12:
        raise BridgeError(f"{name}={value[:40]} is no whole number", where=place, remedy="Mend it.")
    return int(value)
