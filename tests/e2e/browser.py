"""A headless Chromium for the tests of pages, and what else they share."""
import json
import os
import shutil
import subprocess
import tempfile

PATIENCE = 120  # seconds for what must come


def environment():
    return {name: value for name, value in os.environ.items()
            if not name.startswith(("PET_", "DRUN_", "SLURM_", "TORCHELASTIC_"))}


def need(program):
    if not shutil.which(program):
        raise AssertionError(f"{program} is missing: scripts/install-packages test installs it")


def command(folder):
    return ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={folder}"]


def chromium(*arguments):
    """What it prints: with --dump-dom the page as its script has made it."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([*command(folder), "--virtual-time-budget=3000", *arguments], capture_output=True, text=True,
                              timeout=5 * PATIENCE, check=False, env={**environment(), "HOME": folder})
    return done.stdout


class Tab:
    """A page in a Chromium that is told what to do, until the end of the `with`: by DevTools' messages, each ended by a NUL byte,
    through the descriptors 3 and 4."""

    def __init__(self, address):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # what it leaves may still write there
        here, self.orders = os.pipe()
        self.answers, there = os.pipe()
        # The shell puts them where Chromium looks.
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" 3<&{here} 4>&{there}', "sh", *command(self.folder.name), "--remote-debugging-pipe"],
            pass_fds=(here, there), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**environment(), "HOME": self.folder.name})
        os.close(here)
        os.close(there)
        self.number, self.session, self.bytes = 0, None, b""
        target = self.ask("Target.createTarget", url=address)["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=PATIENCE)
        os.close(self.orders)
        os.close(self.answers)
        self.folder.cleanup()

    def ask(self, method, **parameters):
        """The answer; what happens meanwhile is passed over."""
        self.number += 1
        order = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            order["sessionId"] = self.session
        os.write(self.orders, json.dumps(order).encode() + b"\0")
        while True:
            while b"\0" not in self.bytes:
                if not (more := os.read(self.answers, 65536)):
                    raise AssertionError("Chromium has ended")
                self.bytes += more
            text, self.bytes = self.bytes.split(b"\0", 1)
            answer = json.loads(text)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]

    def value(self, expression):
        """Of a script's expression, in the page."""
        return self.ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def press(self, element):
        """As the mouse does, in the middle of it."""
        box = self.value(f"(e => {{ e.scrollIntoView(); const b = e.getBoundingClientRect();"
                         f" return [b.x + b.width / 2, b.y + b.height / 2]; }})(document.getElementById('{element}'))")
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def write(self, text):
        """As the keyboard does, where the cursor is."""
        self.ask("Input.insertText", text=text)
