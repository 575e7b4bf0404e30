"""Hosts as network namespaces of a test's own, and what tests of them share."""
import os
import pathlib
import shutil
import subprocess
import sys
import time


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
