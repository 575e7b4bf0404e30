#!/usr/bin/env python3
"""Five hosts, as network namespaces of this test's own: the agent with the store is killed, and then the host with the next one
falls silent.

    host_after_host.py --bin BUILD/bin

All who may succeed the first store were told of its agent's death, and some of them read that only when they succeed the
second one. It counts from when it came: the others wait for the lease of the silent host, 22 s here, and no second time for
what the first may have let run. And not before the silent host's workers are gone.
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

HOSTS = 5
LIMIT = 33  # seconds: half as long again as the lease; another wait for it would end 39 s after the silence began


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    drun = pathlib.Path(parser.parse_args().bin).resolve() / "drun"
    try:
        switch = Switch()
        network = Network(switch, 0, ["127.0.0.1 localhost\n"] * HOSTS)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"skipped: network namespaces cannot be made here ({error})")
        return 77
    directory = pathlib.Path(tempfile.mkdtemp(prefix="drun-netns-"))
    out = [directory / str(host) for host in range(HOSTS)]
    agents = []

    def said(host):
        return (directory / f"{host}.err").read_text()

    def last(host):
        """The last round that runs there, and of how many."""
        life = lives(out[host])
        return (max(life)[0], life[max(life)][0]) if life else (0, 0)

    def all_run(hosts):
        return {last(host) for host in hosts} == {(last(hosts[0])[0], len(hosts))}

    try:
        for host in range(HOSTS):
            out[host].mkdir()
            with open(directory / f"{host}.err", "w") as err:
                agents.append(subprocess.Popen(
                    [*network.on(host), drun, "--nnodes", f"1:{HOSTS}", "--rdzv-endpoint", f"{network.addresses[0]}:29500",
                     "--rdzv-conf", "last_call_timeout=5,keep_alive_interval=5,keep_alive_max_attempt=3", sys.executable,
                     "-c", ROUND_WORKER],
                    env=dict(os.environ, OUT=str(out[host])), stdin=subprocess.DEVNULL, stderr=err))
        wait_for("all run one round of five", 60, lambda: all_run(range(HOSTS)))

        agents[0].kill()
        agents[0].wait()
        others = list(range(1, HOSTS))
        wait_for("four go on", 60, lambda: all_run(others))
        second = next(host for host in others if "on this node" in said(host))
        before = last(second)[0]

        network.silence(second, True)
        others.remove(second)
        took = wait_for("three go on", 120, lambda: all_run(others))
        began = min(life[2] for host in others for (number, _), life in lives(out[host]).items() if number > before)
        ended = max(life[3] for life in lives(out[second]).values())
        assert began > ended, f"the round began {ended - began:.2f} s before the silent host's workers were gone"
        assert took < LIMIT, f"the others went on {took:.1f} s after the second host fell silent"
        print(f"the others went on {took:.1f} s after the second host fell silent, with a lease of 22 s")
        return 0
    except AssertionError as problem:
        print(f"failed: {problem}")
        for host in range(HOSTS):
            print(host, lives(out[host]), said(host))
        return 1
    finally:
        kill_all(agents)
        network.close()
        switch.close()
        shutil.rmtree(directory, ignore_errors=True)


sys.exit(main())
