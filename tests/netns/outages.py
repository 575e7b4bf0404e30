#!/usr/bin/env python3
"""Outages of all kinds and lengths, in many jobs at once: each has two or three hosts on a switch of its own.

    outages.py --bin BUILD/bin [--seed N] [--jobs N]

An outage that is shorter than the keep-alive limit must pass unnoticed: the same workers run on to their end, and both
agents leave with 0. One that is longer than the lease costs the node its workers: they are gone by the end of the
lease, and only then does a new round begin, on the other host alone or on all of them; the node comes back into the
job. What lies between may end either way, but never with two rounds at once. Three hosts have only outages of the first kind: a host with the store that is cut off from both others
has no majority, and must not be left for a successor too soon. Exit code 77: namespaces or a bridge cannot be made here.
"""
import argparse
import os
import pathlib
import random
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from hosts import Network, Switch, ended, kill_all, up_time, wait_for

WORKER = """
read -r up rest < /proc/uptime
echo "$DRUN_ROUND $WORLD_SIZE $up" > "$OUT/.$$" && mv "$OUT/.$$" "$OUT/$$"
read -r word < "$OUT/end"
exit 0
"""
NODE, STORE = 1, 0  # the hosts of a job
LEASE = 4 / 3  # of the keep-alive limit, as docs/rendezvous.md has it
PATIENCE = 60


class Load:
    """How late a program of this machine may be, because others have its processors."""

    def __init__(self):
        self.worst = 0.0
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        while True:
            before = up_time()
            time.sleep(0.02)
            self.worst = max(self.worst, up_time() - before - 0.02)


KINDS = [f"{what} the {where}" for what in ("silence at", "no carrier at", "no link at", "nothing leaves")
         for where in ("node", "store")]


class Job:
    def __init__(self, drun, switch, number, directory, plan, load):
        self.load = load
        self.kind, self.length, self.delay, self.limit, self.endpoint, count = plan
        self.hosts = range(count)
        self.problem = None
        # For the node the first address of the name belongs to nobody.
        self.network = Network(switch, number, ["127.0.0.1 localhost\n10.77.0.1 head\n"] +
                               ["127.0.0.1 localhost\n10.77.0.99 head\n10.77.0.1 head\n"] * (count - 1))
        self.out = [directory / f"{number}{letter}" for letter in "abc"[:count]]
        self.agents = []
        self.errors = []
        for host in self.hosts:
            self.out[host].mkdir()
            os.mkfifo(self.out[host] / "end")
            self.errors.append(open(self.out[host] / "errors", "wb"))
            self.agents.append(subprocess.Popen(
                ["ip", "netns", "exec", self.network.hosts[host], drun, "--nnodes", f"1:{count}", "--rdzv-endpoint", self.endpoint,
                 "--shutdown-timeout", "2", "--rdzv-conf", f"keep_alive_interval={self.limit / 3:g}",
                 "sh", "-c", WORKER],
                env=dict(os.environ, OUT=str(self.out[host])), stdin=subprocess.DEVNULL, stderr=self.errors[host]))

    def said(self, host):
        """What the workers of one host have said, as {pid: words}."""
        return {int(entry): (self.out[host] / entry).read_text().split()
                for entry in os.listdir(self.out[host]) if entry.isdigit()}

    def of_all(self, host):
        return {pid: words for pid, words in self.said(host).items() if words[1] == str(len(self.hosts))}

    def started(self):
        return all(self.of_all(host) for host in self.hosts)

    def run(self):
        try:
            self.workers = [next(iter(self.of_all(host))) for host in self.hosts]
            self.round = int(self.of_all(NODE)[self.workers[NODE]][0])
            self.pidfd = os.pidfd_open(self.workers[NODE])
            time.sleep(self.delay)
            self.outage(True)
            began = up_time()
            self.gone = self.gone_by(began + self.length)
            time.sleep(max(0, began + self.length - up_time()))
            before = up_time()
            self.outage(False)
            longest = up_time() - began + self.load.worst
            if "carrier" in self.kind:
                longest += 1  # Linux takes note of a carrier once a second
            if longest < self.limit:
                self.passed_unnoticed(began)
            elif before - began > self.limit * LEASE:
                self.lost(began)
            else:
                self.either(began)
        except Exception as problem:  # pylint: disable=broad-except
            self.problem = f"{type(problem).__name__}: {problem}"
        finally:
            os.close(self.pidfd)

    def outage(self, begins):
        where = NODE if self.kind.endswith("node") else STORE
        what = self.kind.rsplit(" ", 2)[0]
        if what == "silence at":
            self.network.silence(where, begins)
        elif what == "no carrier at":
            self.network.port(where, "down" if begins else "up")
        elif what == "no link at":
            self.network.link(where, "down" if begins else "up")
        else:
            self.network.astray(where, 1 - where, begins)

    def gone_by(self, limit):
        """When the node's worker went, or None."""
        return up_time() if select.select([self.pidfd], [], [], max(0, limit - up_time()))[0] else None

    def passed_unnoticed(self, began):
        # The store would end the session two seconds after the lease.
        gone = self.gone or self.gone_by(began + self.limit * LEASE + 3)
        assert gone is None, f"the worker died {gone - began:.2f} s after the outage began"
        self.end(self.hosts)
        for host in self.hosts:
            code = ended(self.agents[host], PATIENCE)
            assert code == 0, f"agent {host} ended with {code}"
            assert list(self.of_all(host)) == [self.workers[host]], f"a worker was started again: {self.said(host)}"

    def lost(self, began):
        gone = self.gone or self.gone_by(began + PATIENCE)
        assert gone is not None, "the worker of the lost node runs on"
        assert gone < began + self.limit * LEASE + 1, f"the worker of the lost node ran for {gone - began:.2f} s"
        wait_for("a later round of both hosts", PATIENCE, self.healed)
        first = min(float(words[2]) for words in self.later(STORE))
        assert first > gone - 0.02, f"two rounds at once for {gone - first:.2f} s"
        self.end(self.hosts)
        for host in self.hosts:
            code = ended(self.agents[host], PATIENCE)
            assert code == 0, f"agent {host} ended with {code}"

    def either(self, began):
        if self.gone or self.gone_by(began + self.limit * LEASE + 3):
            self.lost(began)
        else:
            self.passed_unnoticed(began)

    def later(self, host):
        """What the workers of later rounds have said."""
        return [words for words in self.said(host).values() if int(words[0]) > self.round]

    def healed(self):
        rounds = [max((int(words[0]) for words in self.later(host) if words[1] == "2"), default=0) for host in self.hosts]
        return rounds[NODE] == rounds[STORE] > 0

    def end(self, hosts):
        """The workers may end."""
        for host in hosts:
            os.close(os.open(self.out[host] / "end", os.O_WRONLY))

    def close(self):
        kill_all(self.agents)
        self.network.close()
        for errors in self.errors:
            errors.close()

    def __str__(self):
        return (f"{len(self.hosts)} hosts: {self.kind}, {self.length:.2f} s of {self.limit:g} s, after {self.delay:.2f} s, "
                f"{self.endpoint}")


def plans(seed, jobs):
    """(kind, length, delay, limit, endpoint, hosts) of each job."""
    draw = random.Random(seed)
    kinds = []
    result = []
    for number in range(jobs):
        if not kinds:
            kinds = KINDS[:]
            draw.shuffle(kinds)
        limit = 3 if number % 4 == 3 else 6
        if number % 6 == 5:
            length = draw.uniform(1, 1.8) * limit
        elif number % 6 == 4:
            length = draw.uniform(0.1, 0.7) * limit
        elif number % 6 == 3:
            length = draw.uniform(0.92, 0.96) * limit
        else:
            length = draw.uniform(4.3, 5.5) / 6 * limit
        # Any moment between two heartbeats, of which there are six in the limit.
        result.append((kinds.pop(), length, (number + draw.random()) / jobs * limit / 6,
                       limit, ("10.77.0.1:29500", "head:29500")[draw.random() < 0.3],
                       3 if length < limit and number % 2 == 0 else 2))
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=24)
    arguments = parser.parse_args()
    drun = pathlib.Path(arguments.bin).resolve() / "drun"
    directory = pathlib.Path(tempfile.mkdtemp(prefix="drun-outages-"))
    load = Load()
    switch = None
    jobs = []
    try:
        try:
            switch = Switch()
            for number, plan in enumerate(plans(arguments.seed, arguments.jobs)):
                jobs.append(Job(drun, switch, number, directory, plan, load))
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"skipped: networks cannot be made here ({error})")
            return 77
        wait_for("all jobs run", 3 * PATIENCE, lambda: all(job.started() for job in jobs))
        load.worst = 0.0
        threads = [threading.Thread(target=job.run) for job in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(f"this machine was late by {load.worst:.3f} s at worst")
        for job in jobs:
            print(f"{'FAILED' if job.problem else 'ok'}: {job}" + (f": {job.problem}" if job.problem else ""))
            if job.problem:
                for host in job.hosts:
                    print((job.out[host] / "errors").read_text(errors="replace"))
        return 1 if any(job.problem for job in jobs) else 0
    finally:
        for job in jobs:
            job.close()
        if switch:
            switch.close()
        shutil.rmtree(directory, ignore_errors=True)


sys.exit(main())
