"""Hosts as network namespaces of a test's own, and what tests of them share."""
import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time


# Says its round and then, as often as it can, when it lived last.
ROUND_WORKER = """
import os, time
path = os.path.join(os.environ["OUT"], f"{os.environ['DRUN_ROUND']}.{os.environ['RANK']}")
words = f"{os.environ['WORLD_SIZE']} {os.environ['TORCHELASTIC_RESTART_COUNT']}"
began = time.clock_gettime(time.CLOCK_BOOTTIME)
while True:
    with open(path + ".new", "w") as file:
        file.write(f"{words} {began} {time.clock_gettime(time.CLOCK_BOOTTIME)}")
    os.replace(path + ".new", path)
    time.sleep(0.01)
"""


def lives(directory):
    """What the workers of one host have said: {(round, rank): (world size, restarts, began, lived last)}."""
    result = {}
    for entry in directory.iterdir():
        if entry.suffix != ".new":
            try:
                words = entry.read_text().split()
            except OSError:
                continue
            number, rank = entry.name.split(".")
            result[int(number), int(rank)] = (int(words[0]), int(words[1]), float(words[2]), float(words[3]))
    return result


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Hosts:
    """Two hosts with a link between them. Names in `files` replace files of /etc on a host: {0: {"hosts": text}}."""

    def __init__(self, files=None):
        tag = f"{os.getpid() % 100000}"
        self.names = [f"drun{tag}a", f"drun{tag}b"]
        self.links = [f"dr{tag}a", f"dr{tag}b"]
        self.addresses = ["10.77.0.1", "10.77.0.2"]
        self.addresses6 = ["fd77::1", "fd77::2"]
        self.etc = [pathlib.Path("/etc/netns") / name for name in self.names]
        try:
            for name in self.names:
                ip("netns", "add", name)
            ip("link", "add", self.links[0], "netns", self.names[0], "type", "veth",
               "peer", "name", self.links[1], "netns", self.names[1])
            for name, link, address, address6 in zip(self.names, self.links, self.addresses, self.addresses6):
                ip("-n", name, "addr", "add", f"{address}/24", "dev", link)
                ip("-n", name, "addr", "add", f"{address6}/64", "dev", link, "nodad")
                ip("-n", name, "link", "set", link, "up")
                ip("-n", name, "link", "set", "lo", "up")
            for host, texts in (files or {}).items():
                self.etc[host].mkdir(parents=True)
                for file, text in texts.items():
                    (self.etc[host] / file).write_text(text)
        except (OSError, subprocess.CalledProcessError) as error:
            self.close()
            print(f"skipped: network namespaces cannot be made here ({error})")
            sys.exit(77)

    def on(self, host):
        """What a command line begins with to run on this host."""
        return ["ip", "netns", "exec", self.names[host]]

    def link(self, host, state):
        ip("-n", self.names[host], "link", "set", self.links[host], state)

    def close(self):
        for name, etc in zip(self.names, self.etc):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
            shutil.rmtree(etc, ignore_errors=True)


class Switch:
    """A namespace for the bridges between hosts."""

    def __init__(self):
        self.name = f"drun{os.getpid() % 100000}s"
        ip("netns", "add", self.name)

    def close(self):
        subprocess.run(["ip", "netns", "delete", self.name], capture_output=True, check=False)


class Network:
    """Hosts on a bridge of their own, 10.77.0.1 and so on, and what may go wrong between them. `number` tells apart those
    of one switch; `files`: /etc/hosts of each host."""

    def __init__(self, switch, number, files):
        self.switch = switch
        self.bridge = f"br{number}"
        self.hosts = [f"{switch.name}{number}h{host}" for host in range(len(files))]
        self.ports = [f"p{number}h{host}" for host in range(len(files))]
        self.addresses = [f"10.77.0.{host + 1}" for host in range(len(files))]
        self.etc = [pathlib.Path("/etc/netns") / name for name in self.hosts]
        try:
            ip("-n", switch.name, "link", "add", self.bridge, "type", "bridge")
            ip("-n", switch.name, "link", "set", self.bridge, "up")
            for host, name in enumerate(self.hosts):
                ip("netns", "add", name)
                ip("-n", switch.name, "link", "add", self.ports[host], "type", "veth",
                   "peer", "name", "eth0", "address", self.mac(host), "netns", name)
                ip("-n", switch.name, "link", "set", self.ports[host], "master", self.bridge, "up")
                ip("-n", name, "addr", "add", f"{self.addresses[host]}/24", "dev", "eth0")
                ip("-n", name, "link", "set", "eth0", "up")
                ip("-n", name, "link", "set", "lo", "up")
                self.etc[host].mkdir(parents=True)
                (self.etc[host] / "hosts").write_text(files[host])
        except BaseException:
            self.close()
            raise

    @staticmethod
    def mac(host):
        return f"02:00:00:00:77:{host + 1:02x}"

    def on(self, host):
        """What a command line begins with to run on this host."""
        return ["ip", "netns", "exec", self.hosts[host]]

    def close(self):
        for name, etc in zip(self.hosts, self.etc):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
            shutil.rmtree(etc, ignore_errors=True)

    def port(self, host, *words):
        """The switch's end of the host's link."""
        ip("-n", self.switch.name, "link", "set", self.ports[host], *words)

    def link(self, host, state):
        """The host's own end."""
        ip("-n", self.hosts[host], "link", "set", "eth0", state)

    def silence(self, host, begins):
        """Frames from and to the host vanish, and no carrier changes."""
        self.port(host, *(["nomaster"] if begins else ["master", self.bridge]))

    def astray(self, sender, receiver, begins):
        """Frames from one to the other vanish, not those back."""
        ip("-n", self.hosts[sender], "neigh", "replace", self.addresses[receiver], "dev", "eth0", "nud", "permanent",
           "lladdr", "02:00:00:00:77:ff" if begins else self.mac(receiver))


def up_time():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def wait_for(what, limit, condition):
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > limit:
            raise AssertionError(f"not within {limit} s: {what}")
        time.sleep(0.02)
    return time.monotonic() - began


def ended(agent, limit=60):
    try:
        return agent.wait(timeout=limit)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"agent {agent.pid} is still there") from None


def kill_all(agents):
    for agent in agents:
        if agent.poll() is None:
            agent.kill()
            agent.wait()


class Job:
    """Agents of one job, one to a host of a network, whose workers say when they live."""

    def __init__(self, drun, network, directory):
        self.drun, self.network, self.directory = drun, network, directory
        self.hosts = range(len(network.hosts))
        self.out = [directory / str(host) for host in self.hosts]
        for each in self.out:
            each.mkdir()
        self.agents = {}

    def start(self, host, nodes, endpoints, conf, *more):
        with open(self.directory / f"{host}.err", "a") as err:
            self.agents[host] = subprocess.Popen(
                [*self.network.on(host), self.drun, "--nnodes", nodes, "--rdzv-endpoint", endpoints, "--rdzv-conf", conf, *more,
                 sys.executable, "-c", ROUND_WORKER],
                env=dict(os.environ, OUT=str(self.out[host])), stdin=subprocess.DEVNULL, stderr=err)

    def said(self, host):
        """By its agents."""
        return (self.directory / f"{host}.err").read_text()

    def has_store(self, host):
        return "on this node" in self.said(host)

    def last(self, host):
        """The last round that ran there, of how many, and the restarts that were spent."""
        life = lives(self.out[host])
        return (max(life)[0], *life[max(life)][:2]) if life else (0, 0, 0)

    def run_together(self, hosts, after=0):
        """These hosts, and no other, run one round, later than that one."""
        rounds = {self.last(host)[:2] for host in hosts}
        return len(rounds) == 1 and rounds.pop() == (max(after + 1, self.last(hosts[0])[0]), len(hosts))

    def kill(self, host):
        """Its agent, as the kernel would."""
        self.agents[host].kill()
        self.agents[host].wait()

    def cut_power(self, host):
        """All of its processes end at once, and nobody hears of it."""
        self.network.silence(host, True)
        listed = ["ip", "netns", "pids", self.network.hosts[host]]
        while pids := subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split():
            for pid in pids:
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    pass  # it has just ended
        self.agents[host].wait()

    def check_gone(self, host, others, after):
        """The workers of a host were gone before the others' rounds later than that one began. How long before, in seconds."""
        ended_at = max(life[3] for life in lives(self.out[host]).values())
        began = min(life[2] for each in others for (number, _), life in lives(self.out[each]).items() if number > after)
        assert began > ended_at, f"a round began {ended_at - began:.2f} s before the workers of host {host} were gone"
        return began - ended_at


def test_of_job(files, steps):
    """What a test does: gives `steps` a job, with these files as /etc/hosts of its hosts. The exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    drun = pathlib.Path(parser.parse_args().bin).resolve() / "drun"
    try:
        switch = Switch()
        network = Network(switch, 0, files)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"skipped: network namespaces cannot be made here ({error})")
        return 77
    directory = pathlib.Path(tempfile.mkdtemp(prefix="drun-netns-"))
    job = Job(drun, network, directory)
    try:
        steps(job)
        return 0
    except AssertionError as problem:
        print(f"failed: {problem}")
        for host in job.agents:
            print(host, lives(job.out[host]), job.said(host))
        return 1
    finally:
        kill_all(job.agents.values())
        network.close()
        switch.close()
        shutil.rmtree(directory, ignore_errors=True)
