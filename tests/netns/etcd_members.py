#!/usr/bin/env python3
"""Three hosts, as network namespaces of this test's own, each with a member of one etcd cluster and an agent of one job.

    etcd_members.py --bin BUILD/bin

The host whose member leads is cut off without a word, with the agent on it. The other two members have a majority: their
agents must begin a round of two, but only when the worker of the third is gone; and that agent must leave with exit code
125. Then the lost member comes back, which may not disturb what goes on, and the job ends well. Exit code 77: namespaces cannot be made here, or there is no etcd.
"""
import argparse
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile

from hosts import Network, Switch, ended, up_time, wait_for

ETCD = "/usr/bin/etcd"
WORKER = """
read -r up rest < /proc/uptime
echo "$DRUN_ROUND $WORLD_SIZE $up" > "$OUT/.$$" && mv "$OUT/.$$" "$OUT/$$"
read -r word < "$OUT/end"
exit 0
"""
ASK = """
import sys, urllib.request
request = urllib.request.Request(sys.argv[1], data=b"{}")
print(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=5).read().decode())
"""
HOSTS = range(3)
LEASE = 8  # seconds, of the workers
PATIENCE = 60


class Job:
    def __init__(self, drun, network, directory):
        self.network = network
        self.out = [directory / f"out{host}" for host in HOSTS]
        self.errors = [directory / f"errors{host}" for host in HOSTS]
        self.drun = drun
        self.members = []
        self.agents = []
        cluster = ",".join(f"m{host}=http://{network.addresses[host]}:2380" for host in HOSTS)
        for host in HOSTS:
            client, peer = (f"http://{network.addresses[host]}:{port}" for port in (2379, 2380))
            with open(directory / f"etcd{host}", "wb") as log:
                self.members.append(subprocess.Popen(
                    network.on(host) + [ETCD, "--name", f"m{host}", "--data-dir", str(directory / f"data{host}"),
                                        "--listen-client-urls", client, "--advertise-client-urls", client,
                                        "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                                        "--initial-cluster", cluster], stdout=log, stderr=log))

    def leader(self):
        """The host whose member leads, or None."""
        for host in HOSTS:
            done = subprocess.run(
                self.network.on(host) + [sys.executable, "-c", ASK,
                                         f"http://{self.network.addresses[host]}:2379/v3/maintenance/status"],
                capture_output=True, check=False)
            if done.returncode == 0:
                status = json.loads(done.stdout)
                if status.get("leader") == status["header"]["member_id"]:
                    return host
        return None

    def start(self):
        endpoints = ",".join(self.network.addresses)
        for host in HOSTS:
            self.out[host].mkdir()
            os.mkfifo(self.out[host] / "end")
            with open(self.errors[host], "wb") as errors:
                self.agents.append(subprocess.Popen(
                    self.network.on(host) + [self.drun, "--nnodes", "2:3", "--rdzv-backend", "etcd", "--rdzv-id", "x",
                                             "--rdzv-endpoint", endpoints, "--shutdown-timeout", "2",
                                             "--rdzv-conf", "last_call_timeout=20", "sh", "-c", WORKER],
                    env=dict(os.environ, OUT=str(self.out[host])), stdin=subprocess.DEVNULL, stderr=errors))

    def worker(self, host, world, after=0):
        """Of a round of this size that came later: its process id, the round, when it began; or None."""
        for entry in os.listdir(self.out[host]):
            if entry.isdigit():
                number, size, began = (self.out[host] / entry).read_text().split()
                if int(size) == world and int(number) > after:
                    return int(entry), int(number), float(began)
        return None

    def run(self):
        wait_for("a leader of etcd", PATIENCE, lambda: self.leader() is not None)
        self.start()
        wait_for("a round of three", PATIENCE, lambda: all(self.worker(host, 3) for host in HOSTS))
        cut = self.leader()
        assert cut is not None, "nobody leads etcd"
        others = [host for host in HOSTS if host != cut]
        process, number, _ = self.worker(cut, 3)
        pidfd = os.pidfd_open(process)
        began = up_time()
        self.network.silence(cut, True)
        ready = select.select([pidfd], [], [], PATIENCE)[0]
        gone = up_time()
        os.close(pidfd)
        assert ready, "the worker of the host that is cut off runs on"
        print(f"host {cut} cut off: its worker was gone after {gone - began:.1f} s")
        assert gone < began + LEASE + 3, f"it ran on for {gone - began:.1f} s"
        wait_for("a round of two", PATIENCE, lambda: all(self.worker(host, 2, number) for host in others))
        first = min(self.worker(host, 2, number)[2] for host in others)
        print(f"the others went on after {first - began:.1f} s")
        assert first > gone - 0.02, f"two rounds at once for {gone - first:.2f} s"
        code = ended(self.agents[cut], PATIENCE)
        assert code == 125, f"the agent that was cut off ended with {code}"
        self.network.silence(cut, False)
        wait_for("the third member", PATIENCE, lambda: self.answers(cut))
        for host in others:
            os.close(os.open(self.out[host] / "end", os.O_WRONLY))
        for host in others:
            code = ended(self.agents[host], PATIENCE)
            assert code == 0, f"agent {host} ended with {code}"

    def answers(self, host):
        """Its member knows a leader again."""
        done = subprocess.run(
            self.network.on(host) + [sys.executable, "-c", ASK,
                                     f"http://{self.network.addresses[host]}:2379/v3/maintenance/status"],
            capture_output=True, check=False)
        return done.returncode == 0 and json.loads(done.stdout).get("leader", "0") != "0"

    def close(self):
        for process in self.agents + self.members:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    drun = pathlib.Path(parser.parse_args().bin).resolve() / "drun"
    if not os.access(ETCD, os.X_OK):
        print("skipped: this machine has no etcd-server")
        sys.exit(77)
    try:
        switch = Switch()
        network = Network(switch, 0, ["127.0.0.1 localhost\n"] * 3)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"skipped: network namespaces cannot be made here ({error})")
        sys.exit(77)
    directory = pathlib.Path(tempfile.mkdtemp(prefix="drun-netns-"))
    job = None
    try:
        job = Job(str(drun), network, directory)
        job.run()
    except BaseException:
        for name in sorted(directory.glob("errors*")):
            print(f"--- {name.name}\n{name.read_text()}")
        raise
    finally:
        if job is not None:
            job.close()
        network.close()
        switch.close()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
