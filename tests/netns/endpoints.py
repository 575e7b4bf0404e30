#!/usr/bin/env python3
"""Four hosts, as network namespaces of this test's own, and a job with three endpoints.

    endpoints.py --bin BUILD/bin

The first of the list is not to be reached when the job begins: it must begin with the others, and take that one in when it
comes. Then the host with the store falls silent, until the others go on without it. When it is back its agent, which
looks for them, must join: the same process, and no second job. At last the host with the store loses its power, and
one starts drun there again: that must find the job at the other endpoints. Whenever a round begins, no worker of an
earlier one may live, by the clock that all hosts of this machine share.
Exit code 77: namespaces cannot be made here.
"""
import sys

from hosts import lives, test_of_job, wait_for

HOSTS = 4
LISTED = 3


def check_rounds(job):
    began, ended = {}, {}
    for host in range(HOSTS):
        for (number, _), life in lives(job.out[host]).items():
            began[number] = min(began.get(number, life[2]), life[2])
            ended[number] = max(ended.get(number, life[3]), life[3])
    for number in began:
        for earlier in (each for each in began if each < number):
            late = ended[earlier] - began[number]
            assert late < 0, f"round {number} began {late:.2f} s before the last worker of round {earlier} had gone"


def steps(job):
    network = job.network

    def start(host):
        job.start(host, f"2:{HOSTS}", ",".join(network.addresses[:LISTED]), "last_call_timeout=5")

    def but(host):
        return [each for each in range(HOSTS) if each != host]

    network.silence(0, True)
    for host in but(0):
        start(host)
    took = {"without the first": wait_for("three run", 60, lambda: job.run_together(but(0)))}
    start(0)
    network.silence(0, False)
    took["the first comes"] = wait_for("all four run", 60, lambda: job.run_together(range(HOSTS)))

    # The agent at the second endpoint had the store, as all could reach it.
    before = job.last(1)[0]
    network.silence(1, True)
    took["the others go on"] = wait_for("three run without the silent host", 90, lambda: job.run_together(but(1), before))
    check_rounds(job)
    network.silence(1, False)
    took["healed"] = wait_for("all four run again", 60, lambda: job.run_together(range(HOSTS)))
    assert job.agents[1].poll() is None, "the agent that was cut off"
    check_rounds(job)

    host = next(host for host in but(1) if job.has_store(host))
    before = job.last(host)[0]
    job.cut_power(host)
    took["after the loss of power"] = wait_for(
        "three run without the dead host", 90, lambda: job.run_together(but(host), before))
    network.silence(host, False)
    start(host)
    took["back"] = wait_for("all four run at last", 60, lambda: job.run_together(range(HOSTS)))
    check_rounds(job)
    print("; ".join(f"{what}: {seconds:.1f} s" for what, seconds in took.items()))


sys.exit(test_of_job(["127.0.0.1 localhost\n"] * HOSTS, steps))
