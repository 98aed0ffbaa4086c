"""A slow, obviously right scheduler of clusters: nodes are dictionaries, and nothing of bridge is used.

`scheduler.simulate(case)` plays a case; `generate.draw_case` draws one; `shrink.shrink` makes a failing one
small; `case_text.format_case` prints it so that it can be pasted into a test.

A case is plain data, times in whole seconds, nodes by their index, jobs by their place:

    nodes       list of {cores, memory, gpus: {type: n}, features: [name], weight, state}
    partitions  {name: {nodes, default, exclusive, state, min_nodes, max_nodes, max_time, default_time,
                 max_cores_per_node, max_memory_per_node, default_memory_per_core, default_memory_per_node,
                 qos, allow_qos, deny_qos, allow_accounts, deny_accounts, tier, preempt, grace, exempt}}
    qos         {name: {limits…, over_partition_qos, deny_on_limit, partition_time_limit, partition_max_nodes,
                 partition_min_nodes, priority, preempts: [name], preempt, grace, exempt}}
    accounts    {name: {parent, limits…, users: {name: limits}}}
    licences    {name: count}
    calendar    list of {time, nodes, state} | {time, set: {…}} | {time, cancel | hold | release: job}
                | {reservation, nodes, begin, end, announced}
    jobs        list of {submit, run, request, estimate, partitions, nodes, tasks, exclusive, features,
                 vector: {cores, memory, gpus: {type or any: n}}, nodelist, exclude, begin, depends, array,
                 array_limit, licences, qos, account, user, name, hold, hold_until, reservation, fails,
                 requeue}
    order, candidate_order, backfill, select, requeue_delay, kill_invalid_dependency
    guard       if false, EASY starts behind the heads whatever fits in what is free

Limits are max_wall, max_jobs, grp_jobs, max_submit, grp_submit, and by cpu, node, mem, gpu: min_tres_per_job,
max_tres_per_job, grp_tres, grp_tres_mins; of a QOS also max_tres (per user), max_tres_per_account,
max_jobs_per_account, max_submit_per_account. Everything but nodes, partitions, jobs, and a job's submit, run,
and nodes or tasks may be left out. Memory that a node does not state is not counted there; memory that a job
does not state is its partition's default, or all that a node has.
"""
