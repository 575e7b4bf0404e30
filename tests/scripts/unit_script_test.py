"""scripts/unit in a tree of its own, with a few rooms that have unit tests.

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
foreach(test unit_store_table unit_store_table_rows unit_store_client integration_store_client)
  add_custom_target(${test} COMMAND ${CMAKE_COMMAND} -E copy
    ${CMAKE_SOURCE_DIR}/test.sh ${CMAKE_BINARY_DIR}/tests/${test})
endforeach()
"""


class Unit(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name).resolve()
        for path, text in {
                "scripts/unit": (SCRIPTS / "unit").read_text(encoding="utf-8"),
                "test.sh": "#!/bin/sh\necho \"$(basename \"$0\") called with $*\"\n"
                           "case $0 in *unit_store_client) exit 0 ;; *) exit 3 ;; esac\n",
                "CMakePresets.json": PRESETS,
                "CMakeLists.txt": LIST,
                "src/store/table/CMakeLists.txt": "HEADERS drun/store/limits.hpp",
                "src/store/table/table.cpp": "",
                "src/store/other.cpp": "",
                "src/store/client/client.cpp": "",
                "src/store/client/socket.cpp": "",
                "include/drun/store/limits.hpp": "",
                "include/drun/store/nobodys.hpp": "",
                "tests/unit/store/CMakeLists.txt": "add_subdirectory(table)\n",
                "tests/unit/store/client/CMakeLists.txt": "drun_add_test(unit_store_client LABEL unit)\n",
                "tests/integration/store/client/CMakeLists.txt":
                    "drun_add_test(integration_store_client LABEL integration)\n",
                "tests/integration/store/client/socket_test.cpp": "",
                "tests/unit/store/table/CMakeLists.txt": "drun_add_test(unit_store_table LABEL unit)\n",
                "tests/unit/store/table/rows/CMakeLists.txt": "drun_add_test(unit_store_table_rows LABEL unit)\n",
                "tests/unit/store/table/table_test.cpp": "",
                "tests/e2e/CMakeLists.txt": "drun_add_test(e2e_test LABEL e2e SOURCES job_test.cpp)\n",
                "tests/e2e/job_test.cpp": "TEST(JobTest, Runs) {\n",
                "tests/chaos/CMakeLists.txt": "set_tests_properties(chaos.1 PROPERTIES LABELS chaos)\n",
                "tests/chaos/chaos.py": "",
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

    @staticmethod
    def called(output):
        return [line.split()[0] for line in output.splitlines() if " called with " in line]

    def test_builds_and_runs_the_tests_of_the_files_folder(self):
        for file in ("src/store/table/table.cpp", "tests/unit/store/table/table_test.cpp",
                     "include/drun/store/limits.hpp"):
            status, output = self.run_unit(file, "--gtest_filter=A.B")
            self.assertEqual(self.called(output), ["unit_store_table"], file)
            self.assertIn("called with --gtest_brief=1 --gtest_filter=A.B", output, file)
            self.assertEqual(status, 3, "the test's own status")

    def test_of_a_folder_runs_the_tests_of_all_folders_in_it(self):
        for folder, rooms in (("src/store/table", ["table", "table_rows"]),
                              ("src/store/client", ["client"]),
                              ("tests/unit/store", ["client", "table", "table_rows"]),
                              ("src/store", ["client", "table", "table_rows"]),
                              ("src", ["client", "table", "table_rows"])):
            status, output = self.run_unit(folder)
            self.assertEqual(self.called(output), ["unit_store_" + room for room in rooms], folder)
            self.assertEqual(status, 0 if rooms == ["client"] else 3, "that of one that failed")

    def test_runs_the_integration_tests_too_if_the_files_own_is_there(self):
        for file, tests in (("src/store/client/client.cpp", ["unit_store_client"]),
                            ("src/store/client/socket.cpp", ["unit_store_client", "integration_store_client"]),
                            ("tests/integration/store/client/socket_test.cpp",
                             ["unit_store_client", "integration_store_client"])):
            self.assertEqual(self.called(self.run_unit(file)[1]), tests, file)

    def test_takes_a_path_from_where_it_is_called(self):
        self.assertEqual(self.run_unit("table.cpp", folder="src/store/table")[0], 3)

    def test_says_which_folder_is_missing(self):
        for file, missing in (("src/store/other.cpp", "tests/unit/store"),
                              ("include/drun/store/nobodys.hpp", "include/drun/store")):
            status, output = self.run_unit(file)
            self.assertEqual(status, 2, output)
            self.assertIn(missing, output)

    def test_of_other_tests_says_how_they_run(self):
        for file, name in (("tests/e2e/job_test.cpp", "e2e\\.(JobTest)"), ("tests/e2e", "e2e\\."),
                           ("tests/chaos/chaos.py", "chaos\\.")):
            status, output = self.run_unit(file)
            self.assertEqual(status, 2, output)
            self.assertIn(f"ctest --preset dev -R '^{name}'", output)

    def test_says_how_it_is_used(self):
        for arguments, status in (([], 2), (["--gtest_filter=A"], 2), (["--help"], 0)):
            self.assertEqual(self.run_unit(*arguments)[0], status)
            self.assertIn("scripts/unit src/", self.run_unit(*arguments)[1])


if __name__ == "__main__":
    unittest.main()
