"""scripts/mutants: which lines it changes and how, and a run in a tree of its own.

usage: mutants_script_test.py SCRIPTS (the folder)
"""
import importlib.machinery
import importlib.util
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

SCRIPTS = pathlib.Path(sys.argv.pop(1))
sys.dont_write_bytecode = True
LOADER = importlib.machinery.SourceFileLoader("mutants", str(SCRIPTS / "mutants"))
mutants = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutants", LOADER))
LOADER.exec_module(mutants)

PRESETS = """{ "version": 6, "configurePresets": [
  { "name": "dev", "generator": "Ninja", "binaryDir": "${sourceDir}/build/dev" } ] }
"""
LIST = """cmake_minimum_required(VERSION 3.25)
project(tree LANGUAGES CXX)
enable_testing()
add_executable(sum_test src/sum/sum.cpp src/other/other.cpp)
add_executable(broken_test EXCLUDE_FROM_ALL src/sum/sum.cpp src/other/broken.cc)
add_custom_target(tests_unit DEPENDS sum_test)
add_test(NAME unit.slow_machine COMMAND sh ${CMAKE_SOURCE_DIR}/slow_machine.sh $<TARGET_FILE:sum_test>)
add_test(NAME unit.sum COMMAND sum_test)
add_test(NAME unit.broken COMMAND broken_test)
set_tests_properties(unit.slow_machine unit.sum unit.broken PROPERTIES LABELS unit)
"""
# A test that fails now and then: the first time with each mutant.
SLOW_MACHINE = """"$1"
[ "${DRUN_TEST_MUTANT:-0}" = 0 ] || [ -e "seen.$DRUN_TEST_MUTANT" ] || { touch "seen.$DRUN_TEST_MUTANT"; exit 1; }
"""
# Three places: a statement and a condition that the test looks at, and a statement that nobody misses.
PROGRAM = """#include <cstddef>
#include <vector>
static int spare = 0;
static int sum(const std::vector<int>& numbers) {
  int result = 0;
  for (const int number : numbers) {
    result += number;
  }
  spare = result;
  if (numbers.empty()) return -1;
  return result;
}
int main() {
  return sum({1, 2}) == 3 ? 0 : 1;
}
"""
# Nobody calls it.
OTHER = """extern int left;
int left = 0;
void leave() {
  left = 1;
}
"""


def changes(line, before="  f();", after="  g();"):
    return [what for _, what in mutants.changes_of(line, before, after)]


class Changes(unittest.TestCase):
    def test_conditions(self):
        self.assertEqual(changes("  if (a < b && c) {"),
                         ["a < b && c  ->  !(a < b && c)", "a < b && c  ->  a <= b && c", "a < b && c  ->  a < b || c"])
        self.assertEqual(changes("  } else if (left + 1 == right) {"),
                         ["left + 1 == right  ->  !(left + 1 == right)", "left + 1 == right  ->  left + 1 != right",
                          "left + 1 == right  ->  left == right"])
        self.assertEqual(changes("  if (x) return;"), ["x  ->  !(x)"])

    def test_what_declares_or_goes_on_elsewhere_is_left_alone(self):
        for line in ("  if (const auto found = map.find(key)) {", "  if (auto n = f(); n > 0) {", "  if (a &&",
                     "  return f(a < b,", "  const int x = 1;", "  int x;", "  return a;", "  case 1:", "  // x();",
                     "  constexpr int kX = 1;", "  std::string text;", "  using A = B;", "  auto x = f();"):
            self.assertEqual(changes(line), [], line)

    def test_statements(self):
        for line in ("  x = 1;", "  list_.clear();", "  ++count_;", "  a->b.c(d, e);", "  total += n;", "  n--;"):
            self.assertEqual(changes(line), ["without  " + line.strip()], line)
        self.assertEqual(changes("  b, c);", before="  f(a,"), [])
        self.assertEqual(changes("  x = 1;", before="  y = z +"), [])
        self.assertEqual(changes("    x = 1;", after="  else"), [], "the else would get another if")

    def test_what_is_written_keeps_the_original(self):
        (line, _), *_ = mutants.changes_of("  if (a < b) return;", "", "")
        self.assertEqual(line, "  if (mutant(@) ? (!(a < b)) : (a < b)) return;")
        (line, _), = mutants.changes_of("  x = 1;", "", "")
        self.assertEqual(line, "  if (!mutant(@)) { x = 1; }")

    def test_an_at_of_the_program_stays(self):
        (line, _), = mutants.changes_of('  refuse("x@y");', "", "")
        self.assertEqual(mutants.numbered(line, 7), '  if (!mutant(7)) { refuse("x@y"); }')


class Killer(unittest.TestCase):
    def test_what_hangs_once_kills_nothing(self):
        with tempfile.TemporaryDirectory() as scratch:
            once = f'[ "$DRUN_TEST_MUTANT" = 0 ] || [ -e {scratch}/seen ] || {{ touch {scratch}/seen; exec sleep 100; }}'
            tests = mutants.Tests.__new__(mutants.Tests)
            tests.jobs = 1
            tests.by_label = {"unit": {"unit.once": {"name": "unit.once", "command": ["sh", "-c", once], "settings": {}}}}
            tests.reached, tests.seconds = {"unit.once": {1}}, {"unit.once": 0}
            with unittest.mock.patch.object(mutants, "LIMIT", 1):
                self.assertIsNone(tests.killer(1))


class Run(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = root = pathlib.Path(scratch.name).resolve()
        for path, text in {"CMakePresets.json": PRESETS, "CMakeLists.txt": LIST, "slow_machine.sh": SLOW_MACHINE,
                           "src/sum/sum.cpp": PROGRAM, "src/other/other.cpp": OTHER, "src/other/broken.cc": "no C++\n",
                           ".gitignore": "build/\n"}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        (root / "scripts").mkdir()
        shutil.copy(SCRIPTS / "mutants", root / "scripts/mutants")
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)

    def run_script(self, *arguments):
        return subprocess.run([self.root / "scripts/mutants", "--labels", "unit", *arguments], cwd=self.root, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)

    def test_what_is_not_among_the_targets_is_neither_built_nor_run(self):
        done = self.run_script("--targets", "sum_test", "--count", "1", self.root / "src/sum/sum.cpp")
        self.assertRegex(done.stdout, r"sum.cpp: [01] of 1 killed\n")

    def test_names_the_survivor_and_who_killed_the_others(self):
        root = self.root
        done = self.run_script(root / "src/sum", root / "src/other")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("sum.cpp:7: without  result += number;\n      killed by unit.sum", done.stdout)
        self.assertIn("numbers.empty()  ->  !(numbers.empty())\n      killed by unit.sum", done.stdout)
        self.assertIn("sum.cpp:9: without  spare = result;\n      SURVIVES the 2 tests that come by", done.stdout)
        self.assertIn("other.cpp:4: without  left = 1;\n      SURVIVES the 0 tests that come by", done.stdout)
        self.assertIn("/src/sum: 2 of 3 killed\n", done.stdout)
        self.assertIn("/src/other: 0 of 1 killed\nsurvives: ", done.stdout)
        self.assertEqual((root / "src/sum/sum.cpp").read_text(encoding="utf-8"), PROGRAM)


if __name__ == "__main__":
    unittest.main()
