"""What torchrun's own argument parsers know, as JSON: options, spellings, defaults, choices, abbreviations.

usage: flags.py         with a Python that has torch; tests/golden/torchrun/flags-*.json are its output
"""
import argparse
import contextlib
import io
import json
import os
import sys

for name in [name for name in os.environ if name.startswith("PET_")]:
    del os.environ[name]

import torch  # noqa: E402
from torch.distributed import argparse_util, launch, run  # noqa: E402


def launch_parser():
    """That of python -m torch.distributed.launch, which builds and uses it in one function."""
    found = []

    class Seen(Exception):
        pass

    def stop(self, *_args, **_options):
        found.append(self)
        raise Seen

    whole, argparse.ArgumentParser.parse_args = argparse.ArgumentParser.parse_args, stop
    with contextlib.suppress(Seen):
        launch.main(["script"])
    argparse.ArgumentParser.parse_args = whole
    return found[0]


def sample(action):
    return action.choices and list(action.choices)[-1] or "7"


def means(parser, word, action):
    """Whether `word` is taken for `action`, with a value where it takes one."""
    arguments = [word] if action.nargs == 0 else [f"{word}={sample(action)}"]
    try:
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            given = parser.parse_args([*arguments, "script"])
    except SystemExit:
        return False
    return getattr(given, action.dest) != action.default


def describe(parser):
    actions = []
    for action in parser._actions:
        if not action.option_strings:
            continue
        entry = {"spellings": action.option_strings, "dest": action.dest, "takes a value": action.nargs != 0}
        if isinstance(action, (argparse_util.env, argparse_util.check_env)):
            entry["variable"] = "PET_" + action.dest.upper()
        if action.choices:
            entry["choices"] = list(action.choices)
        if action.dest not in ("help", "print_completion"):
            entry["default"] = action.default
            longest = max(action.option_strings, key=len)
            words = {word[:length] for word in action.option_strings if word.startswith("--")
                     for length in range(3, len(longest)) if word[:length] != word}
            entry["abbreviations"] = sorted(word for word in words if means(parser, word, action))
        actions.append(entry)
    return actions


def main():
    known = {"torch": ".".join(torch.__version__.split(".")[:2]), "torchrun": describe(run.get_args_parser())}
    torchrun = {entry["dest"] for entry in known["torchrun"]}
    known["added by launch"] = [entry for entry in describe(launch_parser()) if entry["dest"] not in torchrun]
    json.dump(known, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
