"""The manual pages say what --help says, and are proper roff.

usage: check_manuals.py BIN_FOLDER
"""
import pathlib
import re
import shutil
import subprocess
import sys


def output(*words, **options):
    return subprocess.run(words, capture_output=True, text=True, check=True, **options).stdout


def main():
    wrong = []
    for name, flag in (("drun", "--help-all"), ("drun-store", "--help"), ("drunctl", "--help")):
        program = str(pathlib.Path(sys.argv[1], name))
        page = output(program, "--print-man")
        plain = re.sub(r"\\f[BRI]", "", page).replace("\\-", "-").replace("\\e", "\\")
        for option in set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", output(program, flag))):
            if option not in plain:
                wrong.append(f"{name}(1) does not have {option}")
        own = {"drun": ("EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES"), "drunctl": ("ENVIRONMENT",)}.get(name, ())
        for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "SEE ALSO", *own):
            if f".SH {section}\n" not in page.replace('"', ""):
                wrong.append(f"{name}(1) has no section {section}")
        if shutil.which("groff"):
            said = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-z"], input=page, capture_output=True, text=True,
                                  check=False).stderr
            if said:
                wrong.append(f"{name}(1): {said}")
    print("\n".join(wrong) or "ok")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
