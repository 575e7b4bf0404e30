#!/usr/bin/env python3
"""Endpoints of every kind, between two hosts that are network namespaces of this test's own.

    addresses.py --bin BUILD/bin

Both hosts have a host name that resolves nowhere, and a name server that never answers and counts who asks: what is a
number must not be looked up, in either direction, and nobody's own name may be. Exit code 77: namespaces cannot be made here.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

from hosts import Hosts, ended, ip, wait_for

LIMIT = 100  # seconds for one job; much more than it needs
# Notes each question, by a byte.
SILENT_SERVER = """
import socket, sys
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
print("ready", flush=True)
while True:
    server.recvfrom(4096)
    open(sys.argv[1], "ab").write(b"x")
"""


def helpers_of(agent):
    """The processes that drun has for its own ends: their command lines name it."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_text(errors="replace")
        except OSError:
            continue  # it has just ended
        if f"for process {agent.pid} " in command + " ":
            found.append(command.strip())
    return found


class Test:
    def __init__(self, drun, hosts, directory):
        self.drun, self.hosts, self.directory = drun, hosts, directory
        self.running = []
        self.port = 29500

    def start(self, host, endpoint, *more, environment=None):
        errors = open(self.directory / f"{len(self.running)}.err", "wb")
        agent = subprocess.Popen(
            [*self.hosts.on(host), "unshare", "--uts", "sh", "-c", 'hostname nowhere.invalid && exec "$@"', "sh",
             self.drun, "--nnodes", "2", "--rdzv-endpoint", endpoint, *more, "sh", "-c",
             'echo "$GROUP_RANK $WORLD_SIZE $MASTER_ADDR"'],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
            env=dict(os.environ, **(environment or {})))
        self.running.append(agent)
        return agent

    def result(self, agent):
        code = ended(agent, LIMIT)
        out = agent.stdout.read().split()
        if code != 0:
            raise AssertionError(f"ended with {code}: " + (self.directory / f"{self.running.index(agent)}.err").read_text())
        return out

    def job(self, what, endpoint, master, options=((), ()), hosts=(0, 1), between=None):
        """A job of two agents at HOST of `endpoint`; rank 0's node is `master` to all."""
        self.port += 1
        agents = [self.start(hosts[0], f"{endpoint[0]}:{self.port}", *options[0])]
        agents.append(self.start(hosts[1], f"{endpoint[-1]}:{self.port}", *options[1]))
        if between:
            between()
        said = sorted(self.result(agent) for agent in agents)
        assert said == [["0", "2", master], ["1", "2", master]], f"{what}: {said}"
        print(f"ok: {what}")

    def tells_that_it_is_open(self, times):
        """That others may reach the store of the last job: the one who has it says so."""
        said = "".join((self.directory / f"{number}.err").read_text() for number in range(len(self.running))[-2:])
        assert said.count("whoever reaches ") == times, said

    def end_while_asking(self, asked):
        """The question takes a quarter of an hour, and nothing can interrupt it; neither end waits for it."""
        patient = {"RES_OPTIONS": "timeout:30 attempts:5"}
        before = asked()
        agent = self.start(1, "unanswered:29500", environment=patient)
        wait_for("the name is asked for", LIMIT, lambda: asked() > before)
        agent.terminate()
        code = ended(agent, LIMIT)
        assert code == 143, f"stopped while it asks for a name: {code}"
        helpers = helpers_of(agent)
        assert not helpers, f"drun's own processes are left: {helpers}"
        agent = self.start(1, "unanswered:29500", "--rdzv-conf", "join_timeout=2", environment=patient)
        code = ended(agent, LIMIT)
        assert code == 124, f"the join timeout while it asks for a name: {code}"
        print("ok: the end while a name is asked for")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    drun = pathlib.Path(parser.parse_args().bin).resolve() / "drun"
    # At home the name is a loopback address, too, as on Debian. Elsewhere its first address belongs to nobody.
    near = "127.0.0.1 localhost\n127.0.1.1 head\n10.77.0.1 head\n"
    far = "127.0.0.1 localhost\n10.77.0.99 head\n10.77.0.1 head\n"
    resolver = {"resolv.conf": "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n",
                "nsswitch.conf": "hosts: files dns\n"}
    hosts = Hosts({0: dict(resolver, hosts=near), 1: dict(resolver, hosts=far)})
    servers = []
    test = None
    with tempfile.TemporaryDirectory(prefix="drun-addresses-") as name:
        directory = pathlib.Path(name)
        test = Test(drun, hosts, directory)
        questions = directory / "questions"
        try:
            for host in (0, 1):
                servers.append(subprocess.Popen(
                    [*hosts.on(host), sys.executable, "-c", SILENT_SERVER, questions], stdout=subprocess.PIPE, text=True))
                assert servers[-1].stdout.readline() == "ready\n"
            ip("-n", hosts.names[0], "link", "add", "second", "type", "veth", "peer", "name", "third")
            ip("-n", hosts.names[0], "addr", "add", "10.78.0.1/24", "dev", "second")
            for link in ("second", "third"):
                ip("-n", hosts.names[0], "link", "set", link, "up")
            ip("-n", hosts.names[1], "route", "add", "10.78.0.0/24", "via", hosts.addresses[0])

            test.job("IPv6 loopback", ["[::1]"], "::1", hosts=(0, 0))
            test.tells_that_it_is_open(0)
            test.job("IPv4", [hosts.addresses[0]], hosts.addresses[0])
            test.tells_that_it_is_open(1)
            test.job("IPv4 and no token", [hosts.addresses[0]], hosts.addresses[0], (("--token-file", "none"),) * 2)
            test.tells_that_it_is_open(0)
            test.job("IPv6", [f"[{hosts.addresses6[0]}]"], hosts.addresses6[0])
            test.job("an interface by name", [hosts.addresses[0]], "10.78.0.1", (("--local-addr", "second"), ()))
            test.job("an address of one's own choice", [hosts.addresses[0]], "10.78.0.1", (("--local-addr", "10.78.0.1"), ()))
            test.job("a name with several addresses", ["head"], "head")
            assert not questions.exists(), "a number, or a name that /etc/hosts has, was looked up"

            def name_it():
                wait_for("the name is asked for", LIMIT, questions.exists)
                with open(hosts.etc[1] / "hosts", "a", encoding="utf-8") as file:
                    file.write(f"{hosts.addresses[0]} late\n")

            test.job("a name that comes late", [hosts.addresses[0], "late"], hosts.addresses[0], between=name_it)
            test.end_while_asking(lambda: questions.stat().st_size)
            return 0
        except AssertionError as problem:
            print(f"failed: {problem}")
            return 1
        finally:
            for process in test.running + servers:
                if process.poll() is None:
                    process.kill()
                    process.wait()
            hosts.close()


sys.exit(main())
