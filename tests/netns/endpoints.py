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
    endpoints = ",".join(network.addresses[:LISTED])
    out = [directory / str(host) for host in range(HOSTS)]
    agents = {}

    def start(host):
        with open(directory / f"{host}.err", "a") as err:
            agents[host] = subprocess.Popen(
                [*network.on(host), drun, "--nnodes", f"2:{HOSTS}", "--rdzv-endpoint", endpoints, "--rdzv-conf",
                 "last_call_timeout=5", sys.executable, "-c", ROUND_WORKER],
                env=dict(os.environ, OUT=str(out[host])), stdin=subprocess.DEVNULL, stderr=err)

    def said(host):
        return (directory / f"{host}.err").read_text()

    def world(host):
        life = lives(out[host])
        return life[max(life)][0] if life else None

    def all_in_one_round():
        rounds = [max(lives(out[host]), default=(0, 0))[0] for host in range(HOSTS)]
        return len(set(rounds)) == 1 and all(world(host) == HOSTS for host in range(HOSTS))

    def check_rounds():
        began, ended = {}, {}
        for host in range(HOSTS):
            for (number, _), life in lives(out[host]).items():
                began[number] = min(began.get(number, life[2]), life[2])
                ended[number] = max(ended.get(number, life[3]), life[3])
        for number in began:
            for earlier in (each for each in began if each < number):
                late = ended[earlier] - began[number]
                assert late < 0, f"round {number} began {late:.2f} s before the last worker of round {earlier} had gone"

    try:
        for each in out:
            each.mkdir()
        network.silence(0, True)
        for host in range(1, HOSTS):
            start(host)
        took = {"without the first": wait_for(
            "three run", 60, lambda: all(world(host) == HOSTS - 1 for host in range(1, HOSTS)))}
        start(0)
        network.silence(0, False)
        took["the first comes"] = wait_for("all four run", 60, all_in_one_round)

        # The agent at the second endpoint had the store, as all could reach it.
        network.silence(1, True)
        took["the others go on"] = wait_for(
            "three run without the silent host", 90,
            lambda: all(world(host) == HOSTS - 1 for host in (0, 2, 3)) and max(lives(out[0]))[0] > max(lives(out[1]))[0])
        check_rounds()
        network.silence(1, False)
        took["healed"] = wait_for("all four run again", 60, all_in_one_round)
        assert agents[1].poll() is None, "the agent that was cut off"
        check_rounds()

        host = next(host for host in (0, 2, 3) if "on this node" in said(host))
        network.silence(host, True)
        subprocess.run(f"kill -9 $(ip netns pids {network.hosts[host]})", shell=True, check=True)
        agents[host].wait()
        before = max(lives(out[host]))[0]
        others = [each for each in range(HOSTS) if each != host]
        took["after the loss of power"] = wait_for(
            "three run without the dead host", 90,
            lambda: all(world(each) == HOSTS - 1 and max(lives(out[each]))[0] > before for each in others))
        network.silence(host, False)
        start(host)
        took["back"] = wait_for("all four run at last", 60, all_in_one_round)
        check_rounds()
        print("; ".join(f"{what}: {seconds:.1f} s" for what, seconds in took.items()))
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
