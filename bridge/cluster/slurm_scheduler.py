"""What a slurm.conf says of the scheduler: choice of nodes, preemption, priorities, licences."""

import re
from collections.abc import Mapping
from typing import Any

from bridge.cluster.description import PriorityConfig, SchedulerParameters
from bridge.cluster.imported import ImportNotes
from bridge.cluster.limits import License
from bridge.cluster.slurm_partitions import preempt_mode_of, seconds_of
from bridge.cluster.tres import weights_of

#: Setting -> field of `PriorityConfig`.
_WEIGHTS = {
    "priorityweightage": "age",
    "priorityweightfairshare": "fairshare",
    "priorityweightjobsize": "job_size",
    "priorityweightpartition": "partition",
    "priorityweightqos": "qos",
    "priorityweightassoc": "association",
}
#: Settings that are read, in small letters.
READ = frozenset(
    (
        *_WEIGHTS,
        *(
            "priorityweighttres",
            "prioritymaxage",
            "prioritydecayhalflife",
            "prioritycalcperiod",
            "prioritytype",
        ),
        *("priorityfavorsmall", "priorityflags", "preempttype", "preemptmode", "preemptexempttime"),
        *("schedulerparameters", "dependencyparameters", "licenses", "selecttype", "selecttypeparameters"),
        *("schedulertype", "accountingstorageenforce", "clustername", "defmempercpu", "defmempernode"),
        *("maxmempernode", "enforcepartlimits"),
    )
)
#: Settings that the protocol `slurm` reads, or refuses by name, as written.
_OF_SLURM = (
    *(
        "SchedulerType",
        "PriorityType",
        "PriorityFlags",
        "AccountingStorageEnforce",
        "OverTimeLimit",
        "KillWait",
    ),
    *("MessageTimeout", "Epilog", "ResvOverRun", "TopologyPlugin", "BurstBufferType", "SuspendTime"),
    "FederationParameters",
)
#: Settings that decide when or where jobs run and have no place here, in small letters -> as written.
_UNHONOURED = {
    name.lower(): name
    for name in (
        *("BurstBufferType", "CompleteWait", "DefMemPerGPU", "DisableRootJobs", "FairShareDampeningFactor"),
        *(
            "FederationParameters",
            "InactiveLimit",
            "JobRequeue",
            "JobSubmitPlugins",
            "KillWait",
            "MaxArraySize",
        ),
        *(
            "MaxJobCount",
            "MaxMemPerCPU",
            "MaxStepCount",
            "MinJobAge",
            "OverTimeLimit",
            "PrioritySiteFactorPlugin",
        ),
        *("PriorityUsageResetPeriod", "RequeueExit", "RequeueExitHold", "ResvOverRun", "ResvEpilog"),
        *("ReturnToService", "RoutePlugin", "SchedulerTimeSlice", "SuspendExcNodes", "SuspendExcParts"),
        *(
            "SuspendProgram",
            "SuspendTime",
            "ResumeProgram",
            "ResumeTimeout",
            "SuspendTimeout",
            "TopologyParam",
        ),
        *(
            "TopologyPlugin",
            "VSizeFactor",
            "SlurmctldParameters",
            "JobDefaults",
            "PrioritySiteFactorParameters",
        ),
    )
}
#: What such a setting says where it says nothing.
_NOTHING = frozenset({"", "(null)", "none", "no", "0", "infinite", "topology/default", "topology/none"})
#: Settings of ports, files, logs and people, by their names: they decide nothing about schedules.
_ADMINISTRATION = re.compile(
    r"(acct|auth|cli_?filter|communication|comm|cred|cryp?to|debug|default(storage|account)|dbd|epilog|ext|"
    r"firstjobid|getenv|gpufreq|grestypes|group|hash|healthcheck|http|include|interactive|job(acct|checkpoint|"
    r"comp|container|credential|fileappend)|kernel|keepalive|kill|launch|log|lua|mail|max(dbd|job(id|time)|"
    r"nodecount|tasks)|mcs|message|metrics|mpi|msg|node(features)?plugins?|pam|plugin|plugstack|power(save)?|"
    r"prep|private|proctrack|prolog|propagate|reboot|reconfig|ref|resv?plugin|resumefail|resumerate|rpc|"
    r"safe|scron|slurm|srun|state|suspendrate|switch|task|tcp|tls|tmpfs|track|tree|unkillable|use(pam|p)|"
    r"user|x11|accounting|control|backup|batch|bcast|allowspec|enforce|first|node(healthcheck|addr|set)|"
    r"disable|eio|event|launchparameters|namespace|cloud|burst)[a-z0-9_]*",
    re.ASCII,
)


def parameters_of(text: str) -> dict[str, str]:
    """Return the SchedulerParameters by name; a word without a value has ``yes``."""
    pairs = (word.partition("=") for word in filter(None, text.split(",")))
    return {name.strip(): value.strip() if equals else "yes" for name, equals, value in pairs}


def scheduler_of(settings: Mapping[str, str], notes: ImportNotes) -> SchedulerParameters:
    """Return how nodes are chosen and jobs preempted; ValueError: a setting is not what it should be."""
    kinds = {"preempt/none": "none", "preempt/partition_prio": "partition", "preempt/qos": "qos"}
    preempt = settings.get("preempttype", "preempt/none").lower()
    if preempt not in kinds:
        notes.leave(f"PreemptType={preempt}")
    select = {word.strip().upper() for word in settings.get("selecttypeparameters", "").split(",")}
    parameters = parameters_of(settings.get("schedulerparameters", ""))
    if parameters:
        notes.leave(f"SchedulerParameters ({', '.join(parameters)})", len(parameters))
    for word in ("CR_PACK_NODES", "CR_CORE_DEFAULT_DIST_BLOCK", "CR_ONE_TASK_PER_CORE"):
        if word in select:
            notes.leave(f"SelectTypeParameters={word}")
    dependency = settings.get("dependencyparameters", "").lower()
    for word in filter(None, dependency.split(",")):
        if word != "kill_invalid_depend":
            notes.leave(f"DependencyParameters={word}")
    fields: dict[str, Any] = {"preempt": kinds.get(preempt, "none")}
    mode = preempt_mode_of(settings.get("preemptmode", ""), notes)
    exempt = seconds_of(settings.get("preemptexempttime", ""), minutes=False)
    return SchedulerParameters(
        select="least_loaded" if "CR_LLN" in select else "weight",
        preempt_mode=mode or "off",
        preempt_exempt_time=exempt or 0,
        kill_invalid_dependency="kill_invalid_depend" in dependency,
        parameters=parameters,
        settings={name: settings[name.lower()] for name in _OF_SLURM if settings.get(name.lower())},
        **fields,
    )


def counts_memory(settings: Mapping[str, str]) -> bool:
    """Tell whether jobs use up the memory of nodes: so they do unless SelectTypeParameters leaves it out."""
    text = settings.get("selecttypeparameters", "").upper()
    return not re.search(r"CR_", text) or "MEMORY" in text


def priority_of(settings: Mapping[str, str], notes: ImportNotes) -> PriorityConfig:
    """Return the weights of priorities; ValueError: a setting is not what it should be."""
    if settings.get("prioritytype", "").lower() == "priority/basic":
        return PriorityConfig()
    fields: dict[str, Any] = {}
    for name, field in _WEIGHTS.items():
        if text := settings.get(name, ""):
            if not re.fullmatch(r"\d{1,10}", text, re.ASCII):
                raise ValueError(f"{name}={text[:40]} is no whole number")
            fields[field] = int(text)
    for name, field, minutes in (
        ("prioritymaxage", "max_age", True),
        ("prioritydecayhalflife", "half_life", True),
        ("prioritycalcperiod", "calculation_period", True),
    ):
        if (text := settings.get(name, "")) and (seconds := seconds_of(text, minutes=minutes)) is not None:
            fields[field] = seconds
    if text := settings.get("priorityweighttres", ""):
        fields["tres"] = weights_of(text, notes)
    flags = {word for word in settings.get("priorityflags", "").upper().split(",") if word}
    for word in sorted(flags - {"FAIR_TREE", "NO_FAIR_TREE", "SMALL_RELATIVE_TO_TIME"}):
        notes.leave(f"PriorityFlags={word}")
    return PriorityConfig(
        favor_small=settings.get("priorityfavorsmall", "").upper() in ("YES", "1", "TRUE"),
        relative_to_time="SMALL_RELATIVE_TO_TIME" in flags,
        fair_tree="NO_FAIR_TREE" not in flags,
        **fields,
    )


def licenses_of(text: str) -> tuple[License, ...]:
    """Return the licences of ``matlab:10,ansys:5``; ValueError: it is none."""
    from bridge.cluster.request_texts import parse_licenses

    words = "" if text.lower() in ("(null)", "none") else text
    return tuple(License(name=name, count=count) for name, count in parse_licenses(words).items())


def note_others(
    settings: Mapping[str, str], places: Mapping[str, str], notes: ImportNotes, *, has_limits: bool
) -> None:
    """Count settings that decide about jobs and are not honoured, and those that are not known here.

    `places`: where each setting stands; `has_limits`: limits of accounting were read.
    """
    for name in sorted(settings.keys() - READ):
        if name in _UNHONOURED:
            if settings[name].lower() not in _NOTHING:
                notes.leave(_UNHONOURED[name])
        elif not _ADMINISTRATION.fullmatch(name):
            notes.leave(f"{name}, a setting that is not known here ({places[name]})")
    if settings.get("schedulertype", "").lower() == "sched/builtin":
        notes.leave("SchedulerType=sched/builtin: the backfilling rule is that of the command line")
    if settings.get("enforcepartlimits", "no").lower() in ("all", "any", "yes"):
        what = "EnforcePartLimits: a job beyond a partition's limits waits here, and is not refused"
        notes.leave(what)
    enforced = settings.get("accountingstorageenforce", "").lower()
    if has_limits and enforced != "all" and "limits" not in enforced:
        what = "limits of accounting count here, although AccountingStorageEnforce has no 'limits'"
        notes.note(what)
