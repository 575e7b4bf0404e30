#!/usr/bin/env python3
"""Kills, stops and cuts off the agents of one elastic job at random, and checks after every fault that the job is right.

    chaos.py --bin BUILD/bin [--seed N] [--faults N] [--agents N] [--netns] [--several] [--verbose]

With --netns each agent is a host of its own, a network namespace on a bridge, and its link goes down and flaps, too
(exit code 77: namespaces cannot be made here). Every agent reaches an external drun-store through a proxy of its own, which can cut, hold or delay its connection.
After each fault the survivors must form one round: workers of one round only, ranks 0..w-1 once each, the same world and
master everywhere, nothing left of dead agents. By the workers' own clocks no two rounds ever run at once. At the end one agent is told to stop, and every agent must give that
signal's exit code. Exit code 0: all right; 1: a violation, with the seed and the faults so far.
"""
import argparse
import os
import pathlib
import random
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
SETTLE_LIMIT = 60.0  # seconds until the survivors must stand; the longest keep-alive plus stops on a busy machine
SHORT_OUTAGE = 1.5  # seconds without the store; well within the keep-alive limit of 4 s


class Violation(Exception):
    pass


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Network:
    """The hosts of --netns: namespaces on a bridge, which is in the namespace that this process runs in."""

    HUB = "10.77.0.1"

    def __init__(self):
        self.tag = f"{os.getpid() % 100000}"
        self.hosts = {}
        self.count = 1
        ip("link", "set", "lo", "up")
        # Its own address: else it takes the lowest of its ports', and nobody finds it for seconds when that one goes.
        ip("link", "add", "hub", "address", "02:00:0a:4d:00:01", "type", "bridge")
        ip("addr", "add", f"{self.HUB}/16", "dev", "hub")
        ip("link", "set", "hub", "up")

    def add(self, name):
        host = f"drun{self.tag}{name}"
        self.count += 1
        ip("netns", "add", host)
        self.hosts[name] = host
        ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", host)
        ip("link", "set", name, "master", "hub", "up")
        ip("-n", host, "addr", "add", f"10.77.{self.count // 250}.{self.count % 250 + 2}/16", "dev", "eth0")
        ip("-n", host, "link", "set", "lo", "up")
        ip("-n", host, "link", "set", "eth0", "up")
        return ["ip", "netns", "exec", host]

    def link(self, name, state):
        ip("link", "set", name, state)

    def remove(self, name):
        subprocess.run(["ip", "netns", "delete", self.hosts.pop(name)], capture_output=True, check=False)

    def close(self):
        for name in list(self.hosts):
            self.remove(name)


class Proxy:
    """Forwards TCP connections to the store; one thread. Modes: pass, hold (bytes wait), refuse (connections are cut)."""

    def __init__(self, address, target_port):
        self.target_port = target_port
        self.listener = socket.create_server((address, 0))
        self.port = self.listener.getsockname()[1]
        self.mode = "pass"
        self.delay = 0.0
        self.pairs = []
        self.closing = False
        self.wake_r, self.wake_w = os.pipe()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def set(self, mode, delay=0.0):
        self.mode, self.delay = mode, delay
        os.write(self.wake_w, b"x")

    def close(self):
        self.closing = True
        os.write(self.wake_w, b"x")
        self.thread.join()

    def drop(self, pair):
        self.pairs.remove(pair)
        for end in pair:
            end.close()

    def accept(self):
        near, _ = self.listener.accept()
        if self.mode == "refuse":
            near.close()
            return
        try:
            far = socket.create_connection(("127.0.0.1", self.target_port), timeout=2)
        except OSError:
            near.close()
            return
        for end in (near, far):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.pairs.append((near, far))

    def run(self):
        while not self.closing:
            if self.mode == "refuse":
                for pair in list(self.pairs):
                    self.drop(pair)
            watched = [self.wake_r, self.listener]
            if self.mode != "hold":
                watched += [end for pair in self.pairs for end in pair]
            ready, _, _ = select.select(watched, [], [])
            if self.wake_r in ready:
                os.read(self.wake_r, 4096)
                continue
            if self.listener in ready:
                self.accept()
            if self.delay:
                time.sleep(self.delay)
            for pair in list(self.pairs):
                for source, target in (pair, pair[::-1]):
                    if source not in ready or pair not in self.pairs:
                        continue
                    try:
                        data = source.recv(65536)
                        if data:
                            target.sendall(data)
                    except OSError:
                        data = b""
                    if not data:
                        self.drop(pair)
        for pair in list(self.pairs):
            self.drop(pair)
        self.listener.close()


class Agent:
    def __init__(self, job, name):
        self.job, self.name = job, name
        self.proxy = Proxy(job.hub, job.store_port)
        prefix = job.network.add(name) if job.network else []
        self.log = open(job.dir / f"{name}.log", "wb")
        environment = dict(os.environ, CHAOS_DIR=str(job.workers_dir), CHAOS_AGENT=name)
        self.process = subprocess.Popen(
            [*prefix, job.bin / "drun", "--nnodes", f"{job.min}:{job.max}", "--nproc-per-node", str(job.nproc),
             "--max-restarts", "100000", "--rdzv-id", "chaos", "--rdzv-endpoint", f"{job.hub}:{self.proxy.port}",
             "--rdzv-conf", "is_host=0,keep_alive_interval=1,keep_alive_max_attempt=4,join_timeout=120,last_call_timeout=2",
             "--shutdown-timeout", "2", "-v", str(HERE / "worker.sh")],
            env=environment, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True)
        self.stopped_until = None
        self.stopped = None  # which of its processes is
        self.unguarded = False  # its guardian was killed: it has to end
        self.endangered = False  # since the job stood: nothing counts on it
        self.up_at = None  # its link is down until then

    def alive(self):
        return self.process.poll() is None

    def processes(self):
        """The agent and all below it, each after its parent."""
        found = [self.process.pid]
        for pid in found:
            found += children_of(pid)
        return found

    def helper(self, name):
        return next((pid for pid in self.processes() if comm_of(pid) == name), None)

    def stop(self, pid, seconds):
        if self.stopped_until or not pid:
            return
        send(pid, signal.SIGSTOP)
        self.stopped, self.stopped_until = pid, time.monotonic() + seconds


def children_of(pid):
    try:
        return [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def comm_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def send(pid, what):
    """The process may have ended by itself just now."""
    try:
        os.kill(pid, what)
    except ProcessLookupError:
        pass


def running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def free_port():
    """Outside the range of outgoing connections: one of those could take it while the store is away."""
    low = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in random.SystemRandom().sample(range(10000, max(low, 10100)), 100):
        try:
            socket.create_server(("127.0.0.1", port)).close()
            return port
        except OSError:
            pass
    raise Violation("no free port")


class Job:
    def __init__(self, arguments, directory):
        self.bin = pathlib.Path(arguments.bin).resolve()
        self.dir = directory
        self.workers_dir = directory / "workers"
        self.workers_dir.mkdir()
        os.mkfifo(self.workers_dir / "never")
        self.random = random.Random(arguments.seed)
        self.min, self.max, self.nproc = 1, arguments.agents, 2
        self.agents = {}
        self.names = 0
        self.history = []
        self.verbose = arguments.verbose
        self.network = Network() if arguments.netns else None
        self.hub = Network.HUB if arguments.netns else "127.0.0.1"
        self.restarts_store = not arguments.keep_store
        self.store_port = free_port()
        self.store = None
        self.start_store()
        for _ in range(arguments.agents):
            self.add_agent()

    def start_store(self):
        self.store = subprocess.Popen(
            [self.bin / "drun-store", "--bind", "127.0.0.1", "--port", str(self.store_port),
             *(["--snapshot", self.dir / "snapshot"] if self.restarts_store else [])],
            stdout=subprocess.PIPE, stderr=open(self.dir / "store.log", "ab"), text=True)
        line = self.store.stdout.readline()
        if ":" not in line:
            raise Violation(f"drun-store did not start: {line!r}")
        self.store_port = int(line.strip().rsplit(":", 1)[1])

    def add_agent(self):
        name = f"a{self.names}"
        self.names += 1
        self.agents[name] = Agent(self, name)
        return name

    # ---- what the workers say ----

    def workers(self):
        """Live workers as (pid, agent, round, rank, world, group rank, restarts, master)."""
        result = []
        for entry in os.listdir(self.workers_dir):
            if not entry.isdigit() or not running(int(entry)):
                continue
            try:
                agent, rnd, rank, world, group, restarts, master = (self.workers_dir / entry).read_text().split()
            except (OSError, ValueError):
                continue
            result.append((int(entry), agent, int(rnd), int(rank), int(world), int(group), int(restarts), master))
        return result

    def problem(self):
        """None when the job stands as it must, else what is wrong (which may be a matter of time)."""
        live = [a for a in self.agents.values() if a.alive()]
        able = [a for a in live if not a.stopped_until and not a.up_at and a.proxy.mode == "pass"]
        workers = self.workers()
        if any(a.unguarded for a in live):
            return "an agent goes on without its guardian"
        expected = min(len(able), self.max) * self.nproc
        for name in {w[1] for w in workers}:
            agent = self.agents.get(name)
            if agent is None or not agent.alive():
                return f"workers of the dead agent {name} are alive"
        ours = [w for w in workers if self.agents[w[1]] in able]
        if len(ours) != expected:
            return f"{len(ours)} workers of reachable agents, expected {expected}"
        if [w for w in workers if w not in ours]:
            return "workers of an unreachable agent are alive"
        for index, what in ((2, "rounds"), (4, "world sizes"), (6, "restart counts"), (7, "masters")):
            if len({w[index] for w in ours}) != 1:
                return f"several {what}: {sorted({w[index] for w in ours}, key=str)}"
        if sorted(w[3] for w in ours) != list(range(expected)) or ours[0][4] != expected:
            return f"ranks {sorted(w[3] for w in ours)} of a world of {ours[0][4]}"
        groups = {}
        for w in ours:
            groups.setdefault(w[1], set()).add(w[5])
        if sorted(min(g) for g in groups.values()) != list(range(len(groups))) or any(len(g) != 1 for g in groups.values()):
            return f"group ranks {groups}"
        return None

    def check_never(self):
        """What may not be at any moment, settled or not."""
        rounds = {}
        for w in self.workers():
            rounds.setdefault(w[1], set()).add(w[2])
        for agent, seen in rounds.items():
            if len(seen) > 1 and all(running(w[0]) for w in self.workers() if w[1] == agent):
                again = {w[2] for w in self.workers() if w[1] == agent}
                if len(again) > 1:
                    raise Violation(f"agent {agent} runs workers of rounds {sorted(again)} at once")

    def check_overlap(self):
        """No worker of a round was alive, by its own clock, when one of a later round had begun."""
        rounds = {}  # number: [first moment, last moment, whose]
        for path in self.workers_dir.glob("alive.*"):
            _, agent, number, rank = path.name.split(".")
            moments = [float(line) for line in path.read_text().splitlines() if len(line) == len("1700000000.123456")]
            if not moments:
                continue
            known = rounds.setdefault(int(number), [moments[0], moments[-1], f"{agent}, rank {rank}"])
            known[0] = min(known[0], moments[0])
            if moments[-1] > known[1]:
                known[1:] = moments[-1], f"{agent}, rank {rank}"
        for number, (_, last, whose) in rounds.items():
            for later, (first, _, _) in rounds.items():
                if later > number and first < last:
                    raise Violation(f"round {later} began {last - first:.2f} s before {whose} of round {number} was gone")

    def settle(self):
        deadline = time.monotonic() + SETTLE_LIMIT
        good_since = None
        why = "?"
        while time.monotonic() < deadline:
            self.wake_due()
            self.check_never()
            why = self.problem()
            now = time.monotonic()
            if why is None and not any(a.stopped_until or a.up_at for a in self.agents.values()):
                good_since = good_since or now
                if now - good_since > 0.2:
                    for agent in self.agents.values():
                        agent.endangered = False
                    return self.check_overlap()
            else:
                good_since = None
            time.sleep(0.03)
        raise Violation(f"not settled after {SETTLE_LIMIT:.0f} s: {why}")

    def wake_due(self):
        now = time.monotonic()
        for agent in self.agents.values():
            if agent.stopped_until and now >= agent.stopped_until:
                agent.stopped_until = None
                if agent.alive():
                    send(agent.stopped, signal.SIGCONT)
            if agent.up_at and now >= agent.up_at:
                agent.up_at = None
                self.network.link(agent.name, "up")

    # ---- faults ----

    def reap(self):
        for name in [n for n, a in self.agents.items() if not a.alive()]:
            agent = self.agents.pop(name)
            agent.proxy.close()
            agent.log.close()
            if self.network:
                self.network.remove(name)

    def fault(self):
        # One is always left, or the job would end.
        live = [a for a in self.agents.values() if a.alive() and not a.endangered]
        choices = ["kill_worker", "kill_agent", "kill_node", "stop_agent", "stop_guardian", "cut", "hold", "delay",
                   "kill_guardian", "kill_watchdog"]
        if self.restarts_store:
            choices.append("restart_store")
        if self.network:
            choices += ["link_down", "flap"] * 2
        if len(live) < self.max + 1:
            choices += ["add"] * 3
        if len(live) <= 1:
            choices = ["add", "kill_worker"]
        what = self.random.choice(choices)
        agent = self.random.choice(live)
        detail = agent.name
        agent.endangered = what.startswith(("kill_agent", "kill_node", "kill_guardian", "stop", "hold", "link"))
        if what == "add":
            detail = self.add_agent()
            self.agents[detail].endangered = True  # not a part of the job yet
        elif what == "kill_agent":
            send(agent.process.pid, signal.SIGKILL)
        elif what == "kill_node":  # as the end of a container does: none of them sees another one die
            for number in (signal.SIGSTOP, signal.SIGKILL):
                for pid in agent.processes():
                    send(pid, number)
        elif what == "kill_guardian":
            guardian = agent.helper("drun-guardian")
            if guardian:  # else it has just been started
                send(guardian, signal.SIGKILL)
                agent.unguarded = True
        elif what == "kill_watchdog":
            watchdog = agent.helper("job-keeper")
            if watchdog:  # else it was killed before: the job goes on without
                send(watchdog, signal.SIGKILL)
        elif what == "stop_guardian":
            seconds = self.random.choice([0.3, self.random.uniform(3, 12)])
            agent.stop(agent.helper("drun-guardian"), seconds)
            detail += f" {seconds:.1f}s"
        elif what == "kill_worker":
            mine = [w for w in self.workers() if w[1] == agent.name]
            for w in self.random.sample(mine, self.random.randint(1, len(mine))) if mine else []:
                send(w[0], signal.SIGKILL)
        elif what == "stop_agent":
            seconds = self.random.choice([0.3, 1.5, self.random.uniform(3, 12), self.random.uniform(3, 12)])
            agent.stop(agent.process.pid, seconds)
            detail += f" {seconds:.1f}s"
        elif what == "cut":
            agent.proxy.set("refuse")
            time.sleep(self.random.choice([0.05, 0.5, 2.0]))
            agent.proxy.set("pass")
        elif what == "hold":
            agent.proxy.set("hold")
            time.sleep(self.random.choice([0.2, 2.0, 6.0]))
            agent.proxy.set("pass")
        elif what == "delay":
            agent.proxy.set("pass", self.random.choice([0.0, 0.01, 0.05]))
        elif what == "link_down":
            seconds = self.random.choice([0.2, 1.5, 3.0, 8.0])
            self.network.link(agent.name, "down")
            agent.up_at = time.monotonic() + seconds
            detail += f" {seconds}s"
        elif what == "flap":
            for _ in range(self.random.randint(2, 6)):
                self.network.link(agent.name, "down")
                time.sleep(self.random.choice([0.05, 0.3]))
                self.network.link(agent.name, "up")
                time.sleep(self.random.choice([0.02, 0.2]))
        elif what == "restart_store":
            began = time.monotonic()
            self.store.terminate()
            self.store.wait(timeout=60)
            time.sleep(self.random.choice([0.0, 0.3]))
            self.start_store()
            if time.monotonic() - began > SHORT_OUTAGE:
                what = "lost_store"  # a machine that stood still: workers may be restarted
        self.history.append(f"{what} {detail}")
        if self.verbose:
            print(f"{len(self.history):4} {self.history[-1]}", flush=True)
        return what

    def finish(self):
        """One agent is told to stop; all must stop, with its exit code, and nothing may be left."""
        live = [a for a in self.agents.values() if a.alive()]
        live[0].process.send_signal(signal.SIGINT)
        for agent in live:
            try:
                code = agent.process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                raise Violation(f"agent {agent.name} did not stop with the others")
            if code != 128 + signal.SIGINT:
                raise Violation(f"agent {agent.name} ended with {code}, not {128 + signal.SIGINT}")
        self.no_workers()

    def no_workers(self):
        deadline = time.monotonic() + 10
        while self.workers() and time.monotonic() < deadline:
            time.sleep(0.02)
        if self.workers():
            raise Violation(f"left behind: {self.workers()}")
        self.check_overlap()

    def destroy(self):
        for agent in self.agents.values():
            if agent.alive():
                send(agent.process.pid, signal.SIGCONT)
                agent.process.kill()
                agent.process.wait()
            agent.proxy.close()
        self.store.kill()
        self.store.wait()
        if self.network:
            self.network.close()


def in_namespace():
    """This script again, in a network namespace of its own."""
    hub = f"drun{os.getpid() % 100000}hub"
    try:
        ip("netns", "add", hub)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"skipped: network namespaces cannot be made here ({error})")
        return 77
    try:
        return subprocess.run(["ip", "netns", "exec", hub, sys.executable, *sys.argv],
                              env=dict(os.environ, DRUN_CHAOS_NETNS=hub), check=False).returncode
    finally:
        ip("netns", "delete", hub)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", type=int, default=20)
    parser.add_argument("--agents", type=int, default=3)
    parser.add_argument("--keep-store", action="store_true", help="do not stop and start the store")
    parser.add_argument("--netns", action="store_true", help="each agent on a host of its own, whose link fails, too")
    parser.add_argument("--several", action="store_true", help="up to three faults at a time")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    if arguments.netns and "DRUN_CHAOS_NETNS" not in os.environ:
        return in_namespace()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="drun-chaos-"))
    job = None
    failed = True
    try:
        job = Job(arguments, directory)
        job.settle()
        slowest = 0.0
        while len(job.history) < arguments.faults:
            before = {w[0] for w in job.workers()}
            faults = [job.fault() for _ in range(job.random.choice([1, 1, 2, 3] if arguments.several else [1]))]
            began = time.monotonic()
            job.settle()
            if faults == ["restart_store"] and before != {w[0] for w in job.workers()}:
                raise Violation("the store's restart restarted workers")
            slowest = max(slowest, time.monotonic() - began)
            job.reap()
        job.finish()
        failed = False
        print(f"chaos: seed {arguments.seed}: {arguments.faults} faults, all right; slowest recovery {slowest:.1f} s")
        return 0
    except Violation as violation:
        print(f"chaos: seed {arguments.seed}, after {job.history if job else []}: {violation}; logs in {directory}")
        return 1
    finally:
        if job:
            job.destroy()
        if not failed:
            shutil.rmtree(directory, ignore_errors=True)


sys.exit(main())
