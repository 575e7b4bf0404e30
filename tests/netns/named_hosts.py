#!/usr/bin/env python3
"""Four hosts with names, as network namespaces of this test's own: the agent with the store is killed, twice.

    named_hosts.py --bin BUILD/bin

Three hosts are endpoints by their names, the fourth is known by the name that --local-addr gives. The helpers of a killed
agent look nothing up: they must have the addresses of all who may succeed it, or the others wait for a lease of 82 s. Then a
node comes back, and the agent with the store is killed as soon as that one is in a round.
Exit code 77: namespaces cannot be made here.
"""
import sys

from hosts import lives, test_of_job, wait_for

HOSTS = 4
LISTED = 3
LIMIT = 60  # seconds; far below the lease
NAMES = [f"node{host}.test" for host in range(HOSTS)]
TABLE = "127.0.0.1 localhost\n" + "".join(f"10.77.0.{host + 1} {name}\n" for host, name in enumerate(NAMES))


def steps(job):
    def start(host):
        local = ["--local-addr", NAMES[host]] if host >= LISTED else []
        job.start(host, f"2:{HOSTS}", ",".join(NAMES[:LISTED]),
                  "last_call_timeout=5,keep_alive_interval=20,keep_alive_max_attempt=3", *local)

    def kill(host):
        """Kills the agent; the others must go on without it. How long that takes."""
        before = job.last(host)[0]
        job.kill(host)
        others = [each for each in range(HOSTS) if each != host]
        took = wait_for(f"the others go on without host {host}", LIMIT, lambda: job.run_together(others, before))
        job.check_gone(host, others, before)
        return took

    for host in range(HOSTS):
        start(host)
    wait_for("all four run", 60, lambda: job.run_together(range(HOSTS)))
    first = next(host for host in range(HOSTS) if (job.last(host)[0], 0) in lives(job.out[host]))
    took = [kill(first)]
    second = next(host for host in range(HOSTS) if host != first and job.has_store(host))
    before = job.last(second)[0]
    start(first)
    wait_for("all four run again", 60, lambda: job.run_together(range(HOSTS), before))
    took.append(kill(second))
    print("the others went on " + " and ".join(f"{seconds:.2f} s" for seconds in took) + " after the agent's death")


sys.exit(test_of_job([TABLE] * HOSTS, steps))
