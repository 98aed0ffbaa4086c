"""A small SWF log of 21 fields with its site beside it, for tests."""

from pathlib import Path

FILES = {
    "machines": ";cl_id\tname\tnodes\tCPUs\tspeed\tGB_RAM\tproperties\tGPUs\n;---\n"
    "0\tded\t2\t8\t1\t256\tdedicated\t4\n"
    "1\tnorm\t4\t8\t1\t128\tnormal\t0\n",
    "queues": "; id\tqueue_name\tCPU_quota\tpriority\n0\turgent\t48\t50\n1\tusual\t32\t20\n",
    "users": ";user_id\tuser_name\tshares\tCPU_quota\n0\teve\t2\t48\n1\tbob\t1\t16\n",
    "groups": ";group_id\tgroup_name\tshares\tCPU_quota\n0\tphys\t2\t48\n1\tbio\t1\t32\n",
}
#: job, submit, run, cores, memory in KB, user, group, queue, GPUs, soft walltime, property
ROWS = (
    (1, 0, 100, 16, 2097152, 0, 0, 0, 8, 90, "dedicated:excl:2x8"),
    (2, 5, 50, 4, 1048576, 1, 1, 1, 0, 40, "normal:1x4"),
    (3, 9, 10, 3, 1048576, 1, 1, 1, 0, -1, "all"),
)


def write_site(folder: Path, rows: tuple[tuple[object, ...], ...] = ROWS, **files: str) -> Path:
    """Return the log's path."""
    path = folder / "site.swf"
    lines = (
        f"{j} {s} 0 {r} {n} {r} {m} {n} 600 {m} 1 {u} {g} -1 {q} -1 -1 -1 {gpus} {soft} {word}\n"
        for j, s, r, n, m, u, g, q, gpus, soft, word in rows
    )
    path.write_text("; UnixStartTime: 0\n" + "".join(lines))
    for kind, text in (FILES | files).items():
        if text:
            (folder / f"site.swf.{kind}").write_text(text)
    return path
