"""scripts/unit in a tree of its own, with one room that has unit tests.

usage: unit_script_test.py SCRIPTS (the folder)
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(sys.argv.pop(1))
PRESETS = """{ "version": 6, "configurePresets": [
  { "name": "dev", "generator": "Ninja", "binaryDir": "${sourceDir}/build/dev" } ] }
"""
# The "test" is a copy of a script that says how it was called.
LIST = """cmake_minimum_required(VERSION 3.25)
project(tree LANGUAGES NONE)
add_custom_target(unit_store_table COMMAND ${CMAKE_COMMAND} -E copy
  ${CMAKE_SOURCE_DIR}/test.sh ${CMAKE_BINARY_DIR}/tests/unit_store_table)
"""


class Unit(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name).resolve()
        for path, text in {
                "scripts/unit": (SCRIPTS / "unit").read_text(encoding="utf-8"),
                "test.sh": "#!/bin/sh\necho \"called with $*\"\nexit 3\n",
                "CMakePresets.json": PRESETS,
                "CMakeLists.txt": LIST,
                "src/store/table/CMakeLists.txt": "HEADERS drun/store/limits.hpp",
                "src/store/table/table.cpp": "",
                "src/store/other.cpp": "",
                "include/drun/store/limits.hpp": "",
                "include/drun/store/nobodys.hpp": "",
                "tests/unit/store/table/CMakeLists.txt": "",
                "tests/unit/store/table/table_test.cpp": "",
        }.items():
            file = self.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        for script in ("scripts/unit", "test.sh"):
            (self.root / script).chmod(0o755)

    def run_unit(self, *arguments, folder="."):
        done = subprocess.run([self.root / "scripts/unit", *arguments], cwd=self.root / folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return done.returncode, done.stdout

    def test_builds_and_runs_the_tests_of_the_files_folder(self):
        for file in ("src/store/table/table.cpp", "src/store/table", "tests/unit/store/table/table_test.cpp",
                     "include/drun/store/limits.hpp"):
            status, output = self.run_unit(file, "--gtest_filter=A.B")
            self.assertIn("called with --gtest_brief=1 --gtest_filter=A.B", output, file)
            self.assertEqual(status, 3, "the test's own status")

    def test_takes_a_path_from_where_it_is_called(self):
        self.assertEqual(self.run_unit("table.cpp", folder="src/store/table")[0], 3)

    def test_says_which_folder_is_missing(self):
        for file, missing in (("src/store/other.cpp", "tests/unit/store"),
                              ("include/drun/store/nobodys.hpp", "include/drun/store")):
            status, output = self.run_unit(file)
            self.assertEqual(status, 2, output)
            self.assertIn(missing, output)

    def test_says_how_it_is_used(self):
        for arguments, status in (([], 2), (["--gtest_filter=A"], 2), (["--help"], 0)):
            self.assertEqual(self.run_unit(*arguments)[0], status)
            self.assertIn("scripts/unit src/", self.run_unit(*arguments)[1])


if __name__ == "__main__":
    unittest.main()
