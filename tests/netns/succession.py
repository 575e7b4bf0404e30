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
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from hosts import ROUND_WORKER, Network, Switch, ended, kill_all, lives, wait_for


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    drun = pathlib.Path(parser.parse_args().bin).resolve() / "drun"
    try:
        switch = Switch()
        network = Network(switch, 0, ["127.0.0.1 localhost\n"] * 3)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"skipped: network namespaces cannot be made here ({error})")
        return 77
    directory = pathlib.Path(tempfile.mkdtemp(prefix="drun-netns-"))
    agents = []
    try:
        out = [directory / name for name in "abc"]
        for host in range(3):
            out[host].mkdir()
            with open(directory / f"{host}.err", "w") as err:
                agents.append(subprocess.Popen(
                    [*network.on(host), drun, "--nnodes", "1:3", "--rdzv-endpoint", f"{network.addresses[0]}:29500",
                     "--rdzv-conf", "successors=3,last_call_timeout=5", sys.executable, "-c", ROUND_WORKER],
                    env=dict(os.environ, OUT=str(out[host])), stdin=subprocess.DEVNULL, stderr=err))

        def world(host):
            said = lives(out[host])
            return said[max(said)][:2] if said else None

        wait_for("all run one round of three", 60, lambda: all(world(host) == (3, 0) for host in range(3)))
        network.silence(0, True)
        took = wait_for("the others go on", 60, lambda: all(world(host) == (2, 0) for host in (1, 2)))
        assert ended(agents[0], 60) == 125, "the silent host's agent"
        end = max(life[3] for life in lives(out[0]).values())
        begin = min(life[2] for host in (1, 2) for life in lives(out[host]).values() if life[0] == 2)
        assert begin > end, f"the new round began {end - begin:.2f} s before the silent host's workers were gone"

        second = next(host for host in (1, 2) if "on this node" in (directory / f"{host}.err").read_text())
        last = 3 - second
        network.silence(second, True)
        assert ended(agents[last], 90) == 125, "the last agent"
        words = (directory / f"{last}.err").read_text()
        assert "no majority of the round's 2 nodes" in words and "quorum=1" in words, words
        assert all(life[0] > 1 for life in lives(out[last]).values()), "the last one went on alone"
        # Of two, the one with the store goes on: its vote counts more.
        wait_for("the second host goes on alone", 60, lambda: world(second) == (1, 0))
        end = max(life[3] for life in lives(out[last]).values())
        begin = min(life[2] for life in lives(out[second]).values() if life[0] == 1)
        assert begin > end, f"it went on {end - begin:.2f} s before the last one's workers were gone"
        print(f"the others went on {took:.1f} s after the host fell silent, {begin - end:.1f} s after its workers' end")
        return 0
    except AssertionError as problem:
        print(f"failed: {problem}")
        for host in range(3):
            print(host, lives(directory / "abc"[host]), (directory / f"{host}.err").read_text())
        return 1
    finally:
        kill_all(agents)
        network.close()
        switch.close()
        shutil.rmtree(directory, ignore_errors=True)


sys.exit(main())
