#!/usr/bin/env python3
"""Kills, stops and cuts off the agents of one elastic job at random, and checks after every fault that the job is right.

    chaos.py --bin BUILD/bin [--seed N] [--faults N] [--agents N] [--netns] [--several] [--hosted] [--verbose]

With --netns each agent is a host of its own, a network namespace on a bridge, and its link goes down and flaps, too
(exit code 77: namespaces cannot be made here). Every agent reaches an external drun-store through a proxy of its own,
which can cut, hold or delay its connection.
With --hosted the agents serve the store themselves, and succeed one another: who has the store, who leads and who is
the next successor are the favourite victims. With --netns as well, hosts lose their power, are cut off in either direction or both, and
parted from the others in groups. A majority of the round is always left alone.
After each fault the survivors must form one round: workers of one round only, ranks 0..w-1 once each, the same world and
master everywhere, nothing left of dead agents. An agent that no fault has hit does not end. The count of restarts never goes back, and only a worker's
death spends one. By the workers' own clocks no two rounds ever run at once. At the end one agent is told to stop, and every agent must give that
signal's exit code. Exit code 0: all right; 1: a violation, with the seed and the faults so far.
"""
import argparse
import collections
import functools
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from network import Network, Proxy, ip

HERE = pathlib.Path(__file__).resolve().parent
SETTLE_LIMIT = 60.0  # seconds until the survivors must stand; the longest keep-alive plus stops on a busy machine
LEASE = 7.0  # seconds; no worker lives for longer without the store
SHORT_OUTAGE = 1.5  # seconds without the store; well within the keep-alive limit of 4 s


class Violation(Exception):
    pass


class Agent:
    def __init__(self, job, name):
        self.job, self.name = job, name
        self.address, prefix = job.network.add(name) if job.network else ("127.0.0.1", [])
        self.proxy = None if job.hosted else Proxy(job.hub, job.store_port)
        conf = "keep_alive_interval=1,keep_alive_max_attempt=4,join_timeout=120,last_call_timeout=2"
        if job.hosted:
            endpoint = job.store_at() or f"{self.address}:{job.store_port}"
            conf += f",successors=3,is_host={int(not job.agents)}"
        else:
            endpoint = f"{job.hub}:{self.proxy.port}"
            conf += ",is_host=0"
        self.log = open(job.dir / f"{name}.log", "wb")
        environment = dict(os.environ, CHAOS_DIR=str(job.workers_dir), CHAOS_AGENT=name)
        self.process = subprocess.Popen(
            [*prefix, job.bin / "drun", "--nnodes", f"{job.min}:{job.max}", "--nproc-per-node", str(job.nproc),
             "--max-restarts", "100000", "--rdzv-id", "chaos", "--rdzv-endpoint", endpoint, "--rdzv-conf", conf,
             "--shutdown-timeout", "2", "-v", str(HERE / "worker.sh")],
            env=environment, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True)
        self.stopped_until = None
        self.stopped = None  # which of its processes is
        self.unguarded = False  # its guardian was killed: it has to end
        self.endangered = False  # since the job stood: nothing counts on it
        self.is_new = False  # it came since then, and knows no place but the store's
        self.up_at = None  # it is cut off until then
        self.heal = None  # what is to be done then
        self.sure_at = 0.0  # workers that live then have had their lease renewed since

    def alive(self):
        return self.process.poll() is None

    def is_reachable(self):
        return not self.stopped_until and not self.up_at and (self.proxy is None or self.proxy.mode == "pass")

    def said(self, pattern):
        """The last match in what it has said, or None."""
        found = re.findall(pattern, (self.job.dir / f"{self.name}.log").read_text(errors="replace"))
        return found[-1] if found else None

    def cut_off(self, seconds, heal):
        self.up_at, self.heal = time.monotonic() + seconds, heal

    def close(self):
        if self.proxy:
            self.proxy.close()
        self.log.close()
        if self.job.network:
            self.job.network.remove(self.name)

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
    """A worker of that number; in a long run others get the numbers of dead ones."""
    try:
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return words[1:2] == [str(HERE / "worker.sh").encode()]  # not an agent, which is told what to run
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
        self.hosted = arguments.hosted
        self.restarts_store = not arguments.keep_store and not self.hosted
        self.nodes = 0  # of the last round that stood
        self.restarts = 0  # as it was then
        self.hits = collections.Counter()  # how often each role was hit
        self.store_port = free_port()
        self.store = None
        if not self.hosted:
            self.start_store()
        self.endpoint = None
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
        agent = self.agents[name] = Agent(self, name)
        if self.hosted and not self.endpoint:
            self.endpoint = f"{agent.address}:{self.store_port}"
        return name

    # ---- who is what ----

    def store_at(self):
        """Where the agents say that the store is now; None: they have not moved."""
        said = [a.said(r"the store is now at ([^\s,]+)") for a in self.agents.values() if a.alive() and not a.endangered]
        said = [place for place in said if place]
        return collections.Counter(said).most_common(1)[0][0] if said else self.endpoint

    def roles(self):
        """{role: agent}, as far as they are known."""
        found = {}
        live = [a for a in self.agents.values() if a.alive()]
        leads = [(int(number), a) for a in live if (number := a.said(r"round (\d+): \d+ node"))]
        if leads:
            found["leader"] = max(leads, key=lambda each: each[0])[1]
        if not self.hosted:
            return found
        place = self.store_at()
        host = next((a for a in live if a.said(r"the store is now at ([^\s,]+), on this node") == place), None)
        host = host or self.agents.get("a0")
        if host is None or not host.alive():
            return found
        found["host"] = host
        ranks = {w[5]: w[1] for w in self.workers()}
        mine = next((rank for rank, name in ranks.items() if name == host.name), None)
        if mine is not None and len(ranks) > 1:
            successor = self.agents.get(ranks.get((mine + 1) % len(ranks)))
            if successor:  # between two faults workers of some ranks may be gone
                found["successor"] = successor
        return found

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
        able = [a for a in live if a.is_reachable()]
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
        for agent in self.agents.values():
            if not agent.alive() and not agent.endangered:
                raise Violation(f"agent {agent.name}, which no fault had hit, ended with {agent.process.returncode}")
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

    def check_restarts(self, faults):
        """Of the job as it stands, after these faults."""
        standing = self.workers()
        self.nodes = len({w[1] for w in standing})
        spent = standing[0][6] - self.restarts
        self.restarts = standing[0][6]
        most = sum(fault == "kill_worker" for fault in faults)
        least = most if len(faults) == 1 else 0
        if not least <= spent <= most:
            raise Violation(f"{spent} restarts were spent, not {least} to {most}")

    def settle(self, faults=()):
        deadline = time.monotonic() + SETTLE_LIMIT
        good_since = None
        why = "?"
        while time.monotonic() < deadline:
            self.wake_due()
            self.check_never()
            why = self.problem()
            now = time.monotonic()
            sure = not self.hosted or all(now >= a.sure_at for a in self.agents.values() if a.alive())
            if why is None and sure and all(a.is_reachable() for a in self.agents.values()):
                good_since = good_since or now
                if now - good_since > 0.2:
                    self.check_restarts(faults)
                    for agent in self.agents.values():
                        agent.endangered = agent.endangered and not agent.alive()
                        agent.is_new = False
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
                agent.sure_at = now + LEASE
                if agent.alive():
                    send(agent.stopped, signal.SIGCONT)
            if agent.up_at and now >= agent.up_at:
                agent.up_at = None
                agent.sure_at = now + LEASE
                agent.heal()

    # ---- faults ----

    def reap(self):
        for name in [n for n, a in self.agents.items() if not a.alive()]:
            self.agents.pop(name).close()

    def may_hit(self, live):
        """How many of these may be hit before the job stands again."""
        if not self.hosted:
            return len(live) - 1  # one is always left, or the job would end
        in_round = {w[1] for w in self.workers()}
        return sum(a.name in in_round for a in live) - self.nodes // 2 - 1

    def choose(self, may_hit, live):
        choices = ["kill_worker", "delay"]
        if may_hit > 0:
            choices += ["kill_agent", "kill_node", "stop_agent", "stop_guardian", "kill_guardian", "kill_watchdog",
                        "cut", "hold"]
            if self.restarts_store:
                choices.append("restart_store")
            if self.network:
                choices += ["link_down", "flap"] * 2
        if self.hosted:
            choices = [each for each in choices if each not in ("cut", "hold", "delay")]
            if may_hit > 0:
                choices += ["kill_agent", "kill_node"] * 2
                if self.network:
                    choices += ["power_off"] * 3 + ["cut_off", "nothing_leaves", "nothing_comes"] * 2
            if may_hit > 1:
                choices += ["kill_two"] * 2
                if self.network:
                    choices += ["power_off_two", "part"] * 2
        # Who comes while the store moves would not find it.
        may_add = not self.hosted or not any(a.endangered for a in self.agents.values())
        if len(live) < self.max + 1 and may_add:
            choices += ["add"] * 3
        if len(live) <= 1 or self.hosted and may_hit < 1:
            choices = ["add", "add", "add", "kill_worker"] if may_add else ["kill_worker"]
        return self.random.choice(choices)

    def victim(self, live, roles):
        if not self.hosted:
            return self.random.choice(live)
        role = self.random.choice(["host", "host", "leader", "successor", "any", "any"])
        agent = roles.get(role)
        return agent if agent in live else self.random.choice(live)

    def note_hit(self, agents, roles):
        """In words."""
        words = []
        for agent in agents:
            has = [role for role, each in roles.items() if each is agent]
            self.hits.update(has)
            words.append(agent.name + (f" ({', '.join(has)})" if has else ""))
        return " and ".join(words)

    def fault(self):
        live = [a for a in self.agents.values() if a.alive() and not a.endangered]
        roles = self.roles()
        if self.hosted and any(a.is_new for a in self.agents.values()):
            # Who comes would never find the next store. Of the host alone a worker may be hit.
            live = [a for a in live if a is not roles.get("host")] or live
        what = self.choose(self.may_hit(live), live)
        agent = self.victim(live, roles)
        hit = [agent]
        if what in ("kill_two", "power_off_two", "part"):
            first, second = roles.get("host"), roles.get("successor")
            if first in live and second in live and self.random.random() < 0.7:
                hit = [first, second]
            else:
                hit.append(self.random.choice([a for a in live if a is not agent]))
        if what == "kill_guardian" and agent is roles.get("host"):
            what = "kill_agent"  # who serves the store does not leave without it: that would be the job's end
        if what == "add":
            hit = []
        detail = self.note_hit(hit, roles)
        if what.startswith(("kill_agent", "kill_node", "kill_two", "kill_guardian", "power", "stop", "hold", "link", "cut_off",
                            "nothing", "part", "flap")):
            for each in hit:
                each.endangered = True
        if what == "add":
            detail = self.add_agent()
            self.agents[detail].endangered = self.agents[detail].is_new = True  # not a part of the job yet
        elif what == "kill_agent":
            send(agent.process.pid, signal.SIGKILL)
        elif what == "kill_two":
            for each in hit:
                send(each.process.pid, signal.SIGKILL)
                time.sleep(self.random.choice([0.0, 0.05, 0.3]))
        elif what == "kill_node":  # as the end of a container does: none of them sees another one die
            for number in (signal.SIGSTOP, signal.SIGKILL):
                for pid in agent.processes():
                    send(pid, number)
        elif what.startswith("power_off"):
            for each in hit:
                self.power_off(each)
                time.sleep(self.random.choice([0.0, 0.3, 2.0]))
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
            agent.cut_off(seconds, lambda: self.network.link(agent.name, "up"))
            detail += f" {seconds}s"
        elif what in ("cut_off", "part"):
            seconds = self.random.choice([1.0, 3.0, 6.0, 12.0])
            names = [each.name for each in hit]
            self.network.part(names, True)
            for each in hit:
                each.cut_off(seconds, functools.partial(self.network.part, [each.name], False))
            detail += f" {seconds}s"
        elif what.startswith("nothing"):
            seconds = self.random.choice([1.0, 3.0, 6.0, 12.0])
            leaving = what == "nothing_leaves"
            self.network.astray(agent.name, leaving, True)
            agent.cut_off(seconds, lambda: self.network.astray(agent.name, leaving, False))
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

    def power_off(self, agent):
        """Its network goes first, so that no packet says what happens next."""
        self.network.part([agent.name], True)
        everything = self.network.processes(agent.name)
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in everything:
                send(pid, number)

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
            if agent.proxy:
                agent.proxy.close()
        if self.store:
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
    parser.add_argument("--hosted", action="store_true", help="no drun-store: the agents serve and succeed one another")
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
            job.settle(faults)
            if faults == ["restart_store"] and before != {w[0] for w in job.workers()}:
                raise Violation("the store's restart restarted workers")
            slowest = max(slowest, time.monotonic() - began)
            job.reap()
        job.finish()
        failed = False
        roles = "".join(f", {role} hit {times} times" for role, times in sorted(job.hits.items()))
        print(f"chaos: seed {arguments.seed}: {len(job.history)} faults{roles}, all right; {job.restarts} restarts, slowest "
              f"recovery {slowest:.1f} s")
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
