"""A slow, obviously right scheduler of clusters: nodes are dictionaries, and nothing of bridge is used.

`scheduler.simulate(case)` plays a case; `generate.draw_case` draws one; `shrink.shrink` makes a failing one
small; `case_text.format_case` prints it so that it can be pasted into a test.

A case is plain data, times in whole seconds, nodes by their index, jobs by their place:

    nodes       list of {cores, memory, gpus: {type: n}, features: [name], weight, state}
    partitions  {name: {nodes, exclusive, max_time, default_time, min_nodes, max_nodes, state, tier, qos,
                 allow_qos, allow_accounts, default, preempt, grace, exempt}}
    qos         {name: {limits…, priority, preempts: [name], preempt, grace, exempt}}
    accounts    {name: {parent, limits…, users: {name: limits}}}
    users       {name: limits}
    licences    {name: count}
    calendar    list of {time, nodes, state} | {time, set: {…}} | {time, cancel | hold | release: job}
                | {reservation, nodes, begin, end, announced}
    jobs        list of {submit, run, request, estimate, partitions, nodes, tasks, vector, exclusive, features,
                 nodelist, exclude, begin, depends, array, array_limit, licences, qos, account, user, name,
                 hold, reservation, fails, requeue}
    order, candidate_order, backfill, select, requeue_delay

Limits are max_wall, max_jobs, grp_jobs, and by cpu, node, mem, gpu: max_tres_per_job, max_tres, grp_tres.
Everything but nodes, partitions, jobs, and a job's submit, run, and nodes or tasks may be left out.
"""
