"""Why a job waits, in Slurm's words: the reasons of limits, by whose limit and which."""

from typing import Literal

Scope = Literal["QOS", "Assoc"]

#: Resources of limits, in the order in which they are tested.
TRES = ("cores", "nodes", "memory", "gpus")
_WORDS = {"cores": "Cpu", "nodes": "Node", "memory": "Mem", "gpus": "GRES"}

HELD, BEGIN_TIME, DEPENDENCY = "JobHeldUser", "BeginTime", "Dependency"
DEPENDENCY_NEVER = "DependencyNeverSatisfied"
PARTITION_DOWN, PARTITION_INACTIVE = "PartitionDown", "PartitionInactive"
QOS_NOT_ALLOWED, ACCOUNT_NOT_ALLOWED = "QOSNotAllowed", "AccountNotAllowed"
#: Its reservation has not begun; it names one of other users (which Slurm refuses, without a reason's word).
RESERVATION, RESERVATION_NOT_ALLOWED = "Reservation", "ReservationNotAllowed"
PARTITION_TIME_LIMIT, PARTITION_NODE_LIMIT = "PartitionTimeLimit", "PartitionNodeLimit"
ARRAY_LIMIT, LICENSES = "JobArrayTaskLimit", "Licenses"
#: It never fits the nodes: sbatch refuses it.
NEVER_FITS = "Requested node configuration is not available"
#: An event of the calendar has cancelled the job.
CANCELLED = "Cancelled"
#: Nothing but resources holds the job: it is its partition's head, or another one is.
RESOURCES, PRIORITY = "Resources", "Priority"

_OTHERS: dict[tuple[Scope, str], str] = {
    ("QOS", "max_wall"): "QOSMaxWallDurationPerJobLimit",
    ("QOS", "max_jobs_per_user"): "QOSMaxJobsPerUserLimit",
    ("QOS", "max_jobs_per_account"): "MaxJobsPerAccount",
    ("QOS", "grp_jobs"): "QOSGrpJobsLimit",
    ("QOS", "max_submit_jobs_per_user"): "QOSMaxSubmitJobPerUserLimit",
    ("QOS", "max_submit_jobs_per_account"): "MaxSubmitJobsPerAccount",
    ("QOS", "grp_submit_jobs"): "QOSGrpSubmitJobsLimit",
    ("Assoc", "max_wall"): "AssocMaxWallDurationPerJobLimit",
    ("Assoc", "max_jobs"): "AssocMaxJobsLimit",
    ("Assoc", "grp_jobs"): "AssocGrpJobsLimit",
    ("Assoc", "max_submit_jobs"): "AssocMaxSubmitJobLimit",
    ("Assoc", "grp_submit_jobs"): "AssocGrpSubmitJobsLimit",
}


def reason_of_limit(scope: Scope, limit: str, resource: str = "") -> str:
    """Return the reason of a limit, by its name in `bridge.cluster.limits`; of amounts by the resource."""
    if (scope, limit) in _OTHERS:
        return _OTHERS[scope, limit]
    if resource.startswith("license"):
        word, suffix = "License", ""
    else:
        word = _WORDS[resource if resource in _WORDS else "gpus"]
        suffix = "Limit" if word in ("Cpu", "Node") else ""
    match limit:
        case "grp_tres":
            return f"{scope}Grp{word}{'Limit' if word == 'Mem' else suffix}"
        case "grp_tres_mins":
            return f"{scope}Grp{'CPU' if word == 'Cpu' else word}Minutes{'Limit' if word == 'Cpu' else ''}"
        case "max_tres_per_user":
            return f"{scope}Max{'Memory' if word == 'Mem' else word}PerUser{suffix}"
        case "max_tres_per_account":
            return f"Max{'Memory' if word == 'Mem' else word}PerAccount"
        case "min_tres_per_job":
            return f"{scope}Min{'Memory' if word == 'Mem' else word}{'NotSatisfied' if suffix else ''}"
    memory = "Memory" if scope == "QOS" else "Mem"
    return f"{scope}Max{memory if word == 'Mem' else word}PerJob{suffix}"
