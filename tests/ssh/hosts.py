"""Hosts that ssh reaches, all of them this machine: one sshd for each, on an address and with a host key of its own."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:" + os.environ.get("PATH", ""))


def why_not():
    """Why this machine cannot have them; empty: it can."""
    if SSHD is None or shutil.which("ssh") is None:
        return "no sshd and ssh (apt-get install openssh-server)"
    if os.geteuid() == 0 and not os.path.isdir("/run/sshd"):
        os.makedirs("/run/sshd", mode=0o755)
    return ""


def free_port():
    with socket.socket() as holder:
        holder.bind(("0.0.0.0", 0))
        return holder.getsockname()[1]


class Hosts:
    """127.0.0.2 and those that follow, known as such and as node1, node2 and so on."""

    def __init__(self, folder, count):
        self.folder = pathlib.Path(folder)
        self.names = [f"127.0.0.{number + 2}" for number in range(count)]
        self.port = free_port()
        self.daemons = {}
        self.config = self.folder / "ssh_config"
        self.known = self.folder / "known_hosts"
        self.logs = self.folder / "sshd.log"
        self.key("user")
        shutil.copy(self.folder / "user.pub", self.folder / "authorized_keys")
        known = ""
        for name in self.names:
            self.key(name)
            kind, key = (self.folder / f"{name}.pub").read_text().split()[:2]
            known += f"[{name}]:{self.port} {kind} {key}\n"
        self.known.write_text(known)
        aliases = "".join(f"Host node{index + 1}\n  HostName {name}\n" for index, name in enumerate(self.names))
        self.config.write_text(f"{aliases}Host *\n  Port {self.port}\n  IdentityFile {self.folder}/user\n  IdentitiesOnly yes\n"
                               f"  UserKnownHostsFile {self.known}\n  GlobalKnownHostsFile /dev/null\n"
                               "  StrictHostKeyChecking yes\n")
        for name in self.names:
            self.start(name)

    def key(self, name):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", self.folder / name], check=True)

    def start(self, name, extra="", address=None, listen=None, port=None):
        config = self.folder / f"{name}.conf"
        config.write_text(f"ListenAddress {listen or f'{name}:{self.port}'}\nHostKey {self.folder}/{name}\nPidFile none\nUsePAM no\n"
                          f"AuthorizedKeysFile {self.folder}/authorized_keys\nStrictModes no\nPermitRootLogin yes\n"
                          f"PasswordAuthentication no\nMaxStartups 400\nMaxSessions 200\nPermitUserEnvironment no\n{extra}")
        with open(self.logs, "ab") as log:
            self.daemons[name] = subprocess.Popen([SSHD, "-D", "-e", "-f", config], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + 20
        while True:
            try:
                socket.create_connection((address or name, port or self.port), 1).close()
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def everywhere(self):
        """One more sshd serves all of 127.0.1.0/24, with a host key and a port of its own."""
        port = free_port()
        self.key("everywhere")
        kind, key = (self.folder / "everywhere.pub").read_text().split()[:2]
        with self.known.open("a") as known:
            known.write(f"[127.0.1.*]:{port} {kind} {key}\n")
        self.config.write_text(f"Host 127.0.1.*\n  Port {port}\n{self.config.read_text()}")
        self.start("everywhere", address="127.0.1.1", listen=f"0.0.0.0:{port}", port=port)

    def stop(self, name):
        """The daemon alone: sessions go on."""
        daemon = self.daemons.pop(name)
        daemon.send_signal(signal.SIGTERM)
        daemon.wait()

    def sessions(self, name):
        """The processes of sshd that serve a connection to this host."""
        return [int(pid) for pid in subprocess.run(["pgrep", "-P", str(self.daemons[name].pid)], text=True, check=False,
                                                   stdout=subprocess.PIPE).stdout.split()]

    def close(self):
        for name in list(self.daemons):
            self.stop(name)
