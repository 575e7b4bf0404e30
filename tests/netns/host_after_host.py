#!/usr/bin/env python3
"""Five hosts, as network namespaces of this test's own: the agent with the store is killed, and then the host with the next one
falls silent.

    host_after_host.py --bin BUILD/bin

All who may succeed the first store were told of its agent's death, and some of them read that only when they succeed the
second one. It counts from when it came: the others wait for the lease of the silent host, 22 s here, and no second time for
what the first may have let run. And not before the silent host's workers are gone.
Exit code 77: namespaces cannot be made here.
"""
import sys

from hosts import test_of_job, wait_for

HOSTS = 5
LIMIT = 33  # seconds: half as long again as the lease; another wait for it would end 39 s after the silence began


def steps(job):
    for host in range(HOSTS):
        job.start(host, f"1:{HOSTS}", f"{job.network.addresses[0]}:29500",
                  "last_call_timeout=5,keep_alive_interval=5,keep_alive_max_attempt=3")
    wait_for("all run one round of five", 60, lambda: job.run_together(range(HOSTS)))

    job.kill(0)
    others = list(range(1, HOSTS))
    wait_for("four go on", 60, lambda: job.run_together(others))
    second = next(host for host in others if job.has_store(host))
    before = job.last(second)[0]

    job.network.silence(second, True)
    others.remove(second)
    took = wait_for("three go on", 120, lambda: job.run_together(others))
    job.check_gone(second, others, before)
    assert took < LIMIT, f"the others went on {took:.1f} s after the second host fell silent"
    print(f"the others went on {took:.1f} s after the second host fell silent, with a lease of 22 s")


sys.exit(test_of_job(["127.0.0.1 localhost\n"] * HOSTS, steps))
