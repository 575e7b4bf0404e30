#!/usr/bin/env python3
"""Four hosts with names, as network namespaces of this test's own: the agent with the store is killed, twice.

    named_hosts.py --bin BUILD/bin

Three hosts are endpoints by their names, the fourth is known by the name that --local-addr gives. The helpers of a killed
agent look nothing up: they must have the addresses of all who may succeed it, or the others wait for a lease of 82 s. Then a
node comes back, and the agent with the store is killed as soon as that one is in a round.
Exit code 77: namespaces cannot be made here.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from hosts import ROUND_WORKER, Network, Switch, kill_all, lives, wait_for

HOSTS = 4
LISTED = 3
LIMIT = 60  # seconds; far below the lease


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    drun = pathlib.Path(parser.parse_args().bin).resolve() / "drun"
    names = [f"node{host}.test" for host in range(HOSTS)]
    table = "127.0.0.1 localhost\n" + "".join(f"10.77.0.{host + 1} {name}\n" for host, name in enumerate(names))
    try:
        switch = Switch()
        network = Network(switch, 0, [table] * HOSTS)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"skipped: network namespaces cannot be made here ({error})")
        return 77
    directory = pathlib.Path(tempfile.mkdtemp(prefix="drun-netns-"))
    out = [directory / str(host) for host in range(HOSTS)]
    agents = {}

    def start(host):
        local = ["--local-addr", names[host]] if host >= LISTED else []
        with open(directory / f"{host}.err", "a") as err:
            agents[host] = subprocess.Popen(
                [*network.on(host), drun, "--nnodes", f"2:{HOSTS}", "--rdzv-endpoint", ",".join(names[:LISTED]), *local,
                 "--rdzv-conf", "last_call_timeout=5,keep_alive_interval=20,keep_alive_max_attempt=3", sys.executable, "-c",
                 ROUND_WORKER],
                env=dict(os.environ, OUT=str(out[host])), stdin=subprocess.DEVNULL, stderr=err)

    def said(host):
        return (directory / f"{host}.err").read_text()

    def last(host):
        """The last round that runs there, and of how many."""
        life = lives(out[host])
        return (max(life)[0], life[max(life)][0]) if life else (0, 0)

    def all_run(hosts, after):
        return {last(host) for host in hosts} == {(last(hosts[0])[0], len(hosts))} and last(hosts[0])[0] > after

    def kill(host):
        """Kills the agent; the others must go on without it. How long that takes."""
        before = last(host)[0]
        agents[host].kill()
        agents[host].wait()
        others = [each for each in range(HOSTS) if each != host]
        took = wait_for(f"the others go on without host {host}", LIMIT, lambda: all_run(others, before))
        began = min(life[2] for each in others for (number, _), life in lives(out[each]).items() if number > before)
        ended = max(life[3] for life in lives(out[host]).values())
        assert began > ended, f"a round began {ended - began:.2f} s before the killed agent's workers were gone"
        return took

    try:
        for each in out:
            each.mkdir()
        for host in range(HOSTS):
            start(host)
        wait_for("all four run", 60, lambda: all_run(range(HOSTS), 0))
        first = next(host for host in range(HOSTS) if (last(host)[0], 0) in lives(out[host]))
        took = [kill(first)]
        second = next(host for host in range(HOSTS) if host != first and "on this node" in said(host))
        before = last(second)[0]
        start(first)
        wait_for("all four run again", 60, lambda: all_run(range(HOSTS), before))
        took.append(kill(second))
        print("the others went on " + " and ".join(f"{seconds:.2f} s" for seconds in took) + " after the agent's death")
        return 0
    except AssertionError as problem:
        print(f"failed: {problem}")
        for host in range(HOSTS):
            print(host, lives(out[host]), said(host))
        return 1
    finally:
        kill_all(agents.values())
        network.close()
        switch.close()
        shutil.rmtree(directory, ignore_errors=True)


sys.exit(main())
