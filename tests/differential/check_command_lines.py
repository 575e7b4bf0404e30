"""Checks that drun takes the lines of command_lines.txt for what torchrun takes them for.

usage: check_command_lines.py BIN_FOLDER [FAKE_NVML_FOLDER] [--record]

torch 2.14's own reading is recorded in tests/golden/torchrun/command_lines.json, and checked against the torch 2.14 of
the folder that scripts/torch-chroot makes, where it is. torch 1.13, where it is installed, is asked for the lines that
it understands. --record writes the recorded readings anew.
"""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

from launchers import HERE, ROOT, debian_12, newer

TABLE = HERE / "command_lines.txt"
RECORDED = ROOT / "tests" / "golden" / "torchrun" / "command_lines.json"
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
EIGHT_GPUS = " ".join(f"GPU-{n}@0000:0{n}:00" for n in range(8))


def words(text, variables):
    """`text` as a shell with these variables has it."""
    done = subprocess.run(["sh", "-c", f'set -- {text}; printf "%s\\0" "$@"'], env={"PATH": os.environ["PATH"], **variables},
                          capture_output=True, text=True, check=True)
    return done.stdout.split("\0")[:-1]


def table():
    lines = []
    for block in TABLE.read_text(encoding="utf-8").split("\n\n"):
        rows = [row for row in block.splitlines() if row and not row.startswith("#")]
        if not rows:
            continue
        variables = dict(word.split("=", 1) for row in rows[1:-1] for word in shlex.split(row))
        argv = words(rows[-1], variables)
        lines.append({"title": rows[0], "launch": argv[0] == "drun-launch", "arguments": argv[1:], "variables": variables})
    return lines


def normal(found):
    """Without what is random, and a private job of one node under one name, whatever carries it."""
    found = dict(found)
    found["id"] = UUID.sub("<id>", found["id"])
    if found["nodes"] == "1:1" and found["endpoint"] == "localhost:0":
        found["backend"], found["endpoint"] = "private", ""
        # torch 2.14 replaces even a name that was given.
        found["id"] = "<id>"
    if found["backend"] == "c10d" and not re.search(r"(^[^:]*|\]):\d+$", found["endpoint"]):
        found["endpoint"] += ":29400"
    if found["node rank"] == 0 and found["nodes"] == "1:1":
        found["node rank"] = None
    program = pathlib.PurePath(found["command"][0]).name
    found["command"] = [re.sub(r"^python3[.\d]*$", "python3", program), *found["command"][1:]]
    return found


def torchruns(release, lines):
    done = subprocess.run([*release.wrapper, release.python, str(HERE / "meanings.py")], input=json.dumps(lines),
                          capture_output=True, text=True, check=True, cwd=ROOT)
    return [found and normal(found) for found in json.loads(done.stdout)]


def druns(folder, fake_nvml, line, scratch):
    """The same fields, from what --explain and --dry-run print."""
    program = str(pathlib.Path(folder).resolve() / ("drun-launch" if line["launch"] else "drun"))
    environment = {"PATH": os.environ["PATH"], **line["variables"]}
    if fake_nvml:
        environment.update(LD_LIBRARY_PATH=fake_nvml, FAKE_NVML=EIGHT_GPUS)

    def ask(flag):
        done = subprocess.run([program, flag, *line["arguments"]], env=environment, capture_output=True, text=True,
                              check=False, cwd=scratch)
        if done.returncode != 0:
            raise ValueError(done.stderr)
        return done.stdout

    explained, decided = ask("--explain").split("\nDecided from these:\n")
    decided = {row[:20].strip(): row[21:] for row in decided.split("\n\n")[0].splitlines()}
    rows = [row for row in explained.splitlines() if row not in ("Given:", "Defaults:", "") and not row.startswith(" ")]
    settings = {row.split(maxsplit=2)[0]: shlex.split(row.split(maxsplit=1)[1])[0] for row in rows}
    shown = ask("--dry-run")
    place = re.search(r"^rank [^\n]*local rank 0:\n(?:  on [^\n]*\n)?  (.*)$", shown, re.M)[1]
    # The angle brackets of what is not decided yet have blanks in them.
    command = shlex.split(re.sub(r"<[^>]*x node[^>]*>", "_", place))
    while "=" in command[0] and command[0].split("=")[0].isupper() or re.match(r"[A-Z_]+=", command[0]):
        command.pop(0)
    low, _, high = decided["nodes"].partition(" to ")
    private = decided["backend"] == "standalone"
    return normal({
        "nodes": f"{low}:{high or low}", "workers": int(decided["workers per node"]),
        "backend": decided["backend"], "endpoint": "localhost:0" if private else decided["endpoint"],
        "id": "<id>" if private else decided["job id"], "role": settings["role"], "restarts": int(settings["max-restarts"]),
        "node rank": None if decided["node rank"].startswith("any") else int(decided["node rank"]), "command": command})


def without_documented(found, line):
    """torchrun's reading, but for what docs/compatibility.md has a row for: an endpoint alone means c10d."""
    words = [word.replace("_", "-") for word in line["arguments"]]
    named = any(word.startswith("--rdzv-backend") for word in words) or "PET_RDZV_BACKEND" in line["variables"]
    return normal({**found, "backend": "c10d"}) if found["backend"] == "static" and not named and any(
        word.startswith("--rdzv-endpoint") for word in words) else found


def with_local_rank(found):
    """torchrun fills in the local rank when it starts a worker; drun shows that of worker 0."""
    return {**found, "command": [word.replace("${local_rank}", "0") for word in found["command"]]}


def main():
    arguments = [word for word in sys.argv[1:] if word != "--record"]
    fake_nvml = os.path.abspath(arguments[1]) if len(arguments) > 1 else None
    lines = table()
    forky = newer("forky")
    if "--record" in sys.argv:
        RECORDED.write_text(json.dumps(torchruns(forky, lines), indent=1) + "\n", encoding="utf-8")
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    wrong, compared = [], 0
    if len(recorded) != len(lines) or None in recorded:
        wrong.append(f"{RECORDED}: not what command_lines.txt has: run with --record")
    if forky and torchruns(forky, lines) != recorded:
        wrong.append(f"{RECORDED}: torch 2.14 reads them otherwise: run with --record")
    old = torchruns(debian_12(), lines) if debian_12() else [None] * len(lines)
    with tempfile.TemporaryDirectory() as scratch:
        for line, theirs, older in zip(lines, recorded, old):
            for word in line["arguments"]:
                if word.endswith(".py") and not word.startswith("/"):
                    path = pathlib.Path(scratch, word)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.touch()
            try:
                ours = druns(arguments[0], fake_nvml, line, scratch)
            except ValueError as refused:
                wrong.append(f"{line['title']}: refused: {refused}")
                continue
            theirs = without_documented(with_local_rank(theirs), line)
            for field, value in theirs.items():
                compared += 1
                if ours[field] != value:
                    wrong.append(f"{line['title']}: {field}: torchrun {value!r}, drun {ours[field]!r}")
            # Where 1.13 has no private jobs it meets at a fixed port; the rest is the same.
            for field in ("nodes", "workers", "role", "restarts", "command") if older else ():
                compared += 1
                value = [word.replace("--local_rank=", "--local-rank=") for word in with_local_rank(older)[field]] \
                    if field == "command" else older[field]
                if ours[field] != value:
                    wrong.append(f"{line['title']}: {field}: torchrun 1.13 {value!r}, drun {ours[field]!r}")
    understood = sum(found is not None for found in old)
    print(f"{len(lines)} command lines, {compared} fields compared; torch 1.13 understands {understood} of them")
    for each in wrong:
        print("  " + each)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
