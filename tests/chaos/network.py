"""The hosts of the chaos test, and what lies between an agent and its store."""
import collections
import os
import select
import socket
import subprocess
import threading
import time


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


Host = collections.namedtuple("Host", "name address mac")


class Network:
    """The hosts of --netns: namespaces on a bridge, which is in the namespace that this process runs in. A second bridge is
    for those that are cut off together."""

    HUB = "10.77.0.1"
    NOBODY = "02:00:00:00:77:ff"

    def __init__(self):
        self.tag = f"{os.getpid() % 100000}"
        self.hosts = {}
        self.count = 1
        ip("link", "set", "lo", "up")
        # Its own address: else it takes the lowest of its ports', and nobody finds it for seconds when that one goes.
        ip("link", "add", "hub", "address", "02:00:0a:4d:00:01", "type", "bridge")
        ip("addr", "add", f"{self.HUB}/16", "dev", "hub")
        ip("link", "set", "hub", "up")
        ip("link", "add", "apart", "type", "bridge")
        ip("link", "set", "apart", "up")

    def add(self, name):
        """Makes a host. Says its address, and what a command line begins with to run there."""
        self.count += 1
        host = Host(f"drun{self.tag}{name}", f"10.77.{self.count // 250}.{self.count % 250 + 2}",
                    f"02:00:0a:4d:{self.count // 250:02x}:{self.count % 250 + 2:02x}")
        ip("netns", "add", host.name)
        self.hosts[name] = host
        ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "address", host.mac, "netns", host.name)
        ip("link", "set", name, "master", "hub", "up")
        ip("-n", host.name, "addr", "add", f"{host.address}/16", "dev", "eth0")
        ip("-n", host.name, "link", "set", "lo", "up")
        ip("-n", host.name, "link", "set", "eth0", "up")
        return host.address, ["ip", "netns", "exec", host.name]

    def link(self, name, state):
        ip("link", "set", name, state)

    def part(self, names, begins):
        """Between these hosts and the others frames vanish, not among them; no carrier changes."""
        for name in names:
            ip("link", "set", name, "master", "apart" if begins else "hub")

    def astray(self, name, leaving, begins):
        """What leaves the host vanishes, or what is for it; not the other way."""
        host = self.hosts[name]
        for other in self.hosts.values():
            if other is not host:
                sender, receiver = (host, other) if leaving else (other, host)
                ip("-n", sender.name, "neigh", "replace", receiver.address, "dev", "eth0", "nud", "permanent",
                   "lladdr", self.NOBODY if begins else receiver.mac)

    def processes(self, name):
        found = subprocess.run(["ip", "netns", "pids", self.hosts[name].name], capture_output=True, text=True, check=True)
        return [int(pid) for pid in found.stdout.split()]

    def remove(self, name):
        subprocess.run(["ip", "netns", "delete", self.hosts.pop(name).name], capture_output=True, check=False)

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
