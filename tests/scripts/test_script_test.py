"""scripts/test in a tree of its own, whose tests fail as often as they are told to.

usage: test_script_test.py SCRIPTS (the folder)
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(sys.argv.pop(1))
PRESETS = """{ "version": 6,
  "configurePresets": [ { "name": "dev", "generator": "Ninja", "binaryDir": "${sourceDir}/build/dev" } ],
  "buildPresets": [ { "name": "dev", "configurePreset": "dev" } ],
  "testPresets": [ { "name": "dev", "configurePreset": "dev", "output": { "outputOnFailure": true } } ] }
"""
# Each run of a test adds a character to a file of its name; the first `failures` runs fail. Two tests
# that run at the same time find each other's folder.
TEST = """
mkdir running || { echo not alone; touch "$1.beside"; }
printf x >> "$1.runs"
sleep 0.1
rmdir running
[ "$(wc -c < "$1.runs")" -gt "$2" ] || { echo "$1 says why"; exit 1; }
"""


class Run:
    """One run of scripts/test over tests of which each is to fail so many times."""

    def __init__(self, *arguments, build=True, free=100, **failures):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "bin").mkdir()
            (root / "bin/df").write_text(f"#!/bin/sh\necho Avail\necho '  {free}'\n", encoding="utf-8")
            (root / "bin/df").chmod(0o755)
            (root / "scripts").mkdir()
            shutil.copy(SCRIPTS / "test", root / "scripts")
            (root / "scripts/install-packages").write_text("#!/bin/sh\n", encoding="utf-8")
            (root / "scripts/install-packages").chmod(0o755)
            (root / "test.sh").write_text(TEST, encoding="utf-8")
            (root / "CMakePresets.json").write_text(PRESETS, encoding="utf-8")
            (root / "CMakeLists.txt").write_text("\n".join([
                "cmake_minimum_required(VERSION 3.25)", "project(tree LANGUAGES NONE)", "enable_testing()",
                f"add_custom_command(OUTPUT all_verify_interface_header_sets COMMAND {'true' if build else 'false'})",
                "add_custom_target(built ALL DEPENDS all_verify_interface_header_sets)",
                *(f"add_test(NAME e2e.A/B.{name} COMMAND sh \"${{CMAKE_SOURCE_DIR}}/test.sh\" {name} {times})"
                  for name, times in failures.items()),
            ]), encoding="utf-8")
            done = subprocess.run([root / "scripts/test", *arguments], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False,
                                  env=os.environ | {"PATH": f"{root / 'bin'}:{os.environ['PATH']}"})
            self.status, self.output = done.returncode, done.stdout
            self.runs = {file.stem: file.stat().st_size for file in root.rglob("*.runs")}
            self.unstable = re.findall(r"^UNSTABLE: dev: e2e\.A/B\.(\w+):", done.stdout, re.M)
            self.failed = re.findall(r"^FAILED: dev: (.*)$", done.stdout, re.M)
            self.summaries = re.findall(r"^\d+% tests passed, .*", done.stdout, re.M)
            self.last_lines = done.stdout.splitlines()[-12:]


class ContinuousIntegration(unittest.TestCase):
    def test_a_test_that_fails_once_passes_and_is_named(self):
        run = Run("--ci", "dev", steady=0, flaky=1)
        self.assertEqual((run.status, run.unstable, run.failed), (0, ["flaky"], []), run.output)
        self.assertEqual(run.runs, {"steady": 1, "flaky": 4}, run.output)
        self.assertEqual(run.summaries[-1], "100% tests passed, 0 tests failed out of 1", run.output)
        self.assertTrue([line for line in run.last_lines if line.startswith("UNSTABLE")], run.output)
        self.assertIn("flaky says why", run.output)

    def test_a_test_that_fails_again_fails_the_run(self):
        for times in (2, 3, 99):
            run = Run("--ci", "dev", steady=0, broken=times)
            self.assertEqual((run.status, run.unstable), (1, []), run.output)
            self.assertIn("e2e.A/B.broken", run.failed, run.output)
            self.assertEqual(run.summaries[-1], "0% tests passed, 1 tests failed out of 1", run.output)

    def test_names_both_kinds_in_one_run(self):
        run = Run("--ci", "dev", flaky=1, broken=99)
        self.assertEqual((run.status, run.unstable), (1, ["flaky"]), run.output)
        self.assertIn("e2e.A/B.broken", run.failed, run.output)

    def test_runs_again_what_failed_alone(self):
        run = Run("--ci", "dev", one=1, two=1, three=1)
        self.assertEqual(run.status, 0, run.output)
        again = run.output[run.output.index("run again, alone"):]
        self.assertNotIn("not alone", again, run.output)

    def test_does_not_run_again_what_is_too_much_for_an_accident(self):
        run = Run("--ci", "dev", **{f"t{number}": 1 for number in range(21)})
        self.assertEqual((run.status, run.unstable), (1, []), run.output)
        self.assertEqual(set(run.runs.values()), {1}, run.output)

    def test_does_not_build_again_what_did_not_build(self):
        run = Run("--ci", "dev", build=False, steady=0)
        self.assertEqual((run.status, run.failed[-1], run.runs), (1, "build", {}), run.output)

    def test_names_a_full_disk_before_it_builds(self):
        run = Run("--ci", "dev", free=4, steady=0)
        self.assertEqual((run.status, run.runs), (1, {}), run.output)
        self.assertRegex(run.failed[-1], r"^no room: 4 GiB are free on the disk of /\S+, and a stage needs 5$")

    def test_says_nothing_of_unstable_tests_if_there_are_none(self):
        run = Run("--ci", "dev", steady=0)
        self.assertEqual((run.status, len(run.summaries)), (0, 1), run.output)
        self.assertNotIn("UNSTABLE", run.output)


class ByItself(unittest.TestCase):
    def test_a_test_that_fails_once_fails_the_run(self):
        for arguments in (["dev"], ["--quick"]):
            run = Run(*arguments, steady=0, flaky=1)
            self.assertEqual((run.status, run.unstable, run.runs["flaky"]), (1, [], 1), run.output)
            self.assertEqual(run.summaries[-1], "50% tests passed, 1 tests failed out of 2", run.output)

    def test_refuses_a_stage_that_it_does_not_know(self):
        self.assertEqual(Run("--ci", "devel").status, 2)


if __name__ == "__main__":
    unittest.main()
