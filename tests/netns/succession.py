#!/usr/bin/env python3
"""Three hosts, as network namespaces of this test's own: the one with the store falls silent.

    succession.py --bin BUILD/bin

No packet says that it is gone. The others must meet at a successor and go on without it, with the restart count kept, and
not before the silent host's workers are gone: every worker writes down when it lives, by the clock that all hosts of this
machine share. The silent host's agent must end with 125, and leave nothing. Then the host of the second store falls silent
as well. The last one has no majority of two: it must end with 125 and a line that says what would have helped. The
other, whose vote counts more, goes on alone, and not before the last one's workers are gone.
Exit code 77: namespaces cannot be made here.
"""
import sys

from hosts import ended, lives, test_of_job, wait_for


def steps(job):
    network, agents = job.network, job.agents
    for host in job.hosts:
        job.start(host, "1:3", f"{network.addresses[0]}:29500", "successors=3,last_call_timeout=5")

    def runs_in(hosts):
        """One round of so many, and no restart is spent."""
        return job.run_together(hosts) and job.last(hosts[0])[2] == 0

    wait_for("all run one round of three", 60, lambda: runs_in([0, 1, 2]))
    before = job.last(0)[0]
    network.silence(0, True)
    took = wait_for("the others go on", 60, lambda: runs_in([1, 2]))
    assert ended(agents[0], 60) == 125, "the silent host's agent"
    left = job.check_gone(0, [1, 2], before)

    second = next(host for host in (1, 2) if job.has_store(host))
    last = 3 - second
    before = job.last(second)[0]
    network.silence(second, True)
    assert ended(agents[last], 90) == 125, "the last agent"
    words = job.said(last)
    assert "no majority of the round's 2 nodes" in words and "quorum=1" in words, words
    assert all(life[0] > 1 for life in lives(job.out[last]).values()), "the last one went on alone"
    # Of two, the one with the store goes on: its vote counts more.
    wait_for("the second host goes on alone", 60, lambda: runs_in([second]))
    job.check_gone(last, [second], before)
    print(f"the others went on {took:.1f} s after the host fell silent, {left:.1f} s after its workers' end")


sys.exit(test_of_job(["127.0.0.1 localhost\n"] * 3, steps))
