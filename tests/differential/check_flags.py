"""Checks drun against what torchrun's parsers know, flag by flag: every spelling, abbreviation, variable, default
and choice of tests/golden/torchrun/flags-*.json; and those lists against the parsers of the torch that is here.

usage: check_flags.py BIN_FOLDER [--record]      --record: write the lists of the torch versions that are here
"""
import json
import os
import pathlib
import subprocess
import sys

from launchers import HERE, ROOT, debian_12, newer

LISTS = ROOT / "tests" / "golden" / "torchrun"

# A value that may be given to each flag, on any machine.
SAMPLES = {
    "nnodes": "1", "nproc_per_node": "3", "rdzv_backend": "c10d", "rdzv_endpoint": "localhost:0", "rdzv_id": "x",
    "rdzv_conf": "join_timeout=5", "max_restarts": "3", "monitor_interval": "0.5", "start_method": "fork",
    "event_log_handler": "console", "role": "r", "log_dir": "/tmp", "redirects": "3", "tee": "1",
    "log_line_prefix_template": "x", "local_ranks_filter": "0", "duplicate_stdout_filters": "a",
    "duplicate_stderr_filters": "b", "node_rank": "0", "master_addr": "127.0.0.1", "master_port": "29511",
    "local_addr": "127.0.0.1", "logs_specs": "default", "numa_binding": "node", "signals_to_handle": "SIGTERM",
    "shutdown_timeout": "7",
}
# Where drun's default has another name or is another one; docs/compatibility.md says why.
DEFAULTS = {
    "nnodes": "1",  # the same as 1:1
    "rdzv_backend": "-",  # by the other flags: static without an endpoint, else c10d
    "monitor_interval": "-",  # nothing is polled
    "node_rank": "-",  # any: given ranks are kept, the others filled in
    "master_addr": "-", "master_port": "-",  # 127.0.0.1 and 29500 where one of them is given
    "signals_to_handle": "SIGTERM,SIGINT,SIGHUP",  # SIGQUIT shows stacks
    "shutdown_timeout": "30",  # None, and 30 after reading TORCH_ELASTIC_SHUTDOWN_TIMEOUT
    "log_line_prefix_template": "[${role_name}${local_rank}]:",  # None, and this
    "logs_specs": "default",
}


class Checker:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        self.environment = {"PATH": os.environ["PATH"]}
        self.checked = 0
        self.wrong = []

    def run(self, arguments, variables=(), launch=False):
        program = str(self.folder / ("drun-launch" if launch else "drun"))
        return subprocess.run([program, *arguments], env={**self.environment, **dict(variables)}, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False)

    def explained(self, arguments, variables=(), launch=False):
        """{setting: (value, source)}, or None where the command line is refused."""
        done = self.run([*arguments, "--explain", "program"], variables, launch)
        if done.returncode != 0:
            return None
        settings = {}
        parts = dict(part.split(":\n", 1) for part in done.stdout.split("\n\n"))
        for line in parts["Defaults"].splitlines():
            name, value = line.split(maxsplit=1)
            settings[name.replace("-", "_")] = (value.strip("'"), "default")
        for line in parts.get("Given", "").splitlines():
            name, value, source = line.split(maxsplit=2)
            settings[name.replace("-", "_")] = (value.strip("'"), source)
        return settings

    def expect(self, condition, what):
        self.checked += 1
        if not condition:
            self.wrong.append(what)

    def check_word(self, entry, word, launch):
        """One spelling or abbreviation, with its value attached and not."""
        dest = entry["dest"]
        if not entry["takes a value"]:
            found = self.explained([word], launch=launch)
            self.expect(found and found.get(dest, ("on",))[0] == "on", f"{word}")
            return
        value = SAMPLES[dest]
        forms = [[f"{word}={value}"], [word, value]] if word.startswith("--") else [[word, value], [word + value]]
        for form in forms:
            found = self.explained(form, launch=launch)
            self.expect(found and found[dest][0] == value, " ".join(form))

    def check(self, entry, launch):
        dest = entry["dest"]
        if dest in ("help", "print_completion"):
            for word in entry["spellings"]:
                for value in entry.get("choices", [None]):
                    # tcsh has no programmable completion that could be tested; fish is there instead.
                    done = self.run([word] + ([value] if value else []))
                    self.expect(done.returncode == (2 if value == "tcsh" else 0), f"{word} {value}")
            return
        for word in entry["spellings"] + entry.get("abbreviations", []):
            self.check_word(entry, word, launch)
        default = entry["default"]
        value = DEFAULTS.get(dest, "off" if default is False else "-" if default in (None, "", []) else str(default))
        found = self.explained([], launch=launch)
        if dest in found:
            self.expect(found[dest] == (value, "default"), f"default of {dest}: {found[dest][0]}, not {value}")
        if "variable" in entry:
            name = entry["variable"]
            value, shown = (SAMPLES[dest],) * 2 if entry["takes a value"] else ("1", "on")
            found = self.explained([], {name: value}, launch)
            self.expect(found and found[dest] == (shown, name), f"{name}={value}")
        elif dest != "use_env":
            found = self.explained([], {"PET_" + dest.upper(): SAMPLES[dest]}, launch)
            self.expect(found is not None, f"PET_{dest.upper()}")
        for choice in entry.get("choices", []):
            done = self.run([f"{entry['spellings'][0]}={choice}", "--explain", "program"])
            self.expect(done.returncode == 0 or "NUMA" in done.stderr or "cores" in done.stderr, f"{dest} {choice}: {done.stderr}")
        if "choices" in entry:
            done = self.run([f"{entry['spellings'][0]}=bogus", "program"])
            self.expect(done.returncode == 2 and len(done.stderr.splitlines()) == 1, f"{dest} bogus")


def known_lists():
    return {path.stem.split("-")[1]: json.loads(path.read_text(encoding="utf-8")) for path in LISTS.glob("flags-*.json")}


def parsers_here():
    """(version, what flags.py says) for each torch that is here."""
    for release in (debian_12(), newer("trixie"), newer("forky")):
        if release:
            done = subprocess.run([*release.wrapper, release.python, str(HERE / "flags.py")], capture_output=True, text=True,
                                  cwd=ROOT, check=True)
            yield release.shown, done.stdout


def main():
    if "--record" in sys.argv:
        for version, text in parsers_here():
            (LISTS / f"flags-{version}.json").write_text(text, encoding="utf-8")
    checker = Checker(sys.argv[1])
    lists = known_lists()
    for version, text in parsers_here():
        checker.expect(lists.get(version) == json.loads(text), f"torch {version} differs from the recorded list: run with --record")
    newest = [word for entry in lists["2.14"]["torchrun"] for word in entry["spellings"]]
    for version, known in sorted(lists.items()):
        before = checker.checked
        for entry in known["torchrun"]:
            # What newer flags made ambiguous is refused by torchrun 2.14 as well.
            own = {word.replace("_", "-") for word in entry["spellings"]}
            entry["abbreviations"] = [word for word in entry.get("abbreviations", [])
                                      if own.issuperset(other.replace("_", "-") for other in newest if other.startswith(word))]
        for entry in known["torchrun"]:
            checker.check(entry, launch=False)
        for entry in known["added by launch"]:
            checker.check(entry, launch=True)
        print(f"torch {version}: {len(known['torchrun'])} options, {checker.checked - before} checks")
    for what in checker.wrong:
        print(f"  not as torchrun: {what}")
    return 1 if checker.wrong or not lists else 0


if __name__ == "__main__":
    sys.exit(main())
