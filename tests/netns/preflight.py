#!/usr/bin/env python3
"""Eight hosts, as network namespaces of this test's own, of which some are not like the others.

    preflight.py --bin BUILD/bin

The leader names the two that differ, each in one line. drunctl doctor, as the program of the same job, names them too,
and the way between two hosts that is broken. With --preflight strict the one with another program does not start: exit
code 94. Exit code 77: namespaces cannot be made here.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from hosts import Network, Switch, ended, ip, kill_all, wait_for

HOSTS = 8
ODD_MTU = 2       # node3 has smaller packets
ODD_PROGRAM = 5   # node6 has another program and another variable
PROGRAM = "#!/bin/sh\n# {}\nexec sleep 1000\n"
AS_NAMED = 'echo "$1" > /proc/sys/kernel/hostname; shift; exec "$@"'


class Job:
    """A drun on each host, and what they say."""

    def __init__(self, network, folder, drun, flags, program):
        self.agents, self.errors, self.outputs = [], [], []
        for host in range(HOSTS):
            environment = dict(os.environ)
            if host == ODD_PROGRAM:
                environment["NCCL_ALGO"] = "secret-value"
            self.errors.append(folder / f"err{host}")
            self.outputs.append(folder / f"out{host}")
            with open(self.errors[host], "w") as err, open(self.outputs[host], "w") as out:
                self.agents.append(subprocess.Popen(
                    [*network.on(host), "unshare", "--uts", "sh", "-c", AS_NAMED, "sh", f"node{host + 1}", drun,
                     "--nnodes", str(HOSTS), "--rdzv-endpoint", f"{network.addresses[0]}:29500", "--cluster", "none",
                     "--shutdown-timeout", "2", *flags, *program],
                    env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder / f"host{host}"))

    def said(self):
        return "\n".join(f"[{host}] {path.read_text()}" for host, path in enumerate(self.errors))

    def stop(self):
        for agent in self.agents:
            if agent.poll() is None:
                agent.terminate()
        for agent in self.agents:
            ended(agent)


def has(path, text):
    return text in path.read_text()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    programs = pathlib.Path(parser.parse_args().bin).resolve()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="drun-netns-"))
    switch = network = job = None
    try:
        try:
            switch = Switch()
            network = Network(switch, 0, [""] * HOSTS)
            subprocess.run(["unshare", "--uts", "true"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"skipped: network namespaces cannot be made here ({error})")
            return 77
        ip("-n", network.hosts[ODD_MTU], "link", "set", "eth0", "mtu", "1400")
        for host in range(HOSTS):
            (folder / f"host{host}").mkdir()
            program = folder / f"host{host}" / "train"
            program.write_text(PROGRAM.format("two" if host == ODD_PROGRAM else "one"))
            program.chmod(0o755)

        job = Job(network, folder, programs / "drun", [], ["./train"])
        for line in ("node3: MTU 1400, the other 7: 1500;", "node6: program B, the other 7: A;",
                     "node6: NCCL_ALGO B, the other 7: none;"):
            wait_for(line, 120, lambda line=line: any(has(path, line) for path in job.errors))
        assert sum(has(path, "node3: MTU") for path in job.errors) == 1, "one node says it"
        assert "secret-value" not in job.said()
        job.stop()

        job = Job(network, folder, programs / "drun", ["--preflight", "strict"], ["./train"])
        code = ended(job.agents[ODD_PROGRAM], 120)
        assert code == 94, f"the odd node ended with {code}"
        assert has(job.errors[ODD_PROGRAM], "node6: program B, the other 7: A; copy the same program")
        assert all(agent.poll() is None for host, agent in enumerate(job.agents) if host != ODD_PROGRAM)
        job.stop()

        network.astray(3, 4, True)
        job = Job(network, folder, programs / "drun", ["--preflight", "off"], [programs / "drunctl", "doctor"])
        codes = {ended(agent, 120) for agent in job.agents}
        report = job.outputs[0].read_text()
        assert codes == {1}, f"{codes}: {report}"
        assert "these 8 nodes are one machine" in report, report
        assert "node3: MTU 1400, the other 7: 1500;" in report, report
        assert "node4 to node5: 10.77.0.5: Connection timed out" in report, report
        assert "node1 to node2" not in report, report
        assert "clocks" in report, report
        print(report)
        return 0
    except AssertionError as problem:
        print(f"failed: {problem}; {job.said() if job else ''}")
        return 1
    finally:
        if job:
            kill_all(job.agents)
        if network:
            network.close()
        if switch:
            switch.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
