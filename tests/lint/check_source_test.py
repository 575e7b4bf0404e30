"""The rules of check_source.py, each with what it must find and what it must leave alone."""
import pathlib
import subprocess
import tempfile
import unittest

import check_source
import cmake_lists
import standard_headers


def rooms(**changed):
    """Some rooms of the tree, as their lists describe them."""
    lists = {
        "base": "drun_add_library(base SOURCES log.cpp HEADERS drun/base/result.hpp)",
        "store/protocol": "drun_add_library(store_protocol SOURCES a.cpp)",
        "store/client": "drun_add_library(store_client SOURCES b.cpp HEADERS drun/store/client.hpp "
                        "DEPENDS drun::base)",
        "store/server": "drun_add_library(store_server SOURCES c.cpp DEPENDS drun::store_protocol)",
        "rendezvous": "drun_add_library(rendezvous SOURCES d.cpp DEPENDS drun::base)",
        "launcher/process": "drun_add_library(process SOURCES e.cpp DEPENDS drun::base)",
        "launcher/backend": "drun_add_library(backend SOURCES g.cpp DEPENDS drun::base "
                            "PRIVATE_DEPENDS Asio::Asio)",
        "launcher/agent": "drun_add_library(agent SOURCES f.cpp DEPENDS drun::rendezvous drun::process)",
    }
    lists.update((room.replace("__", "/"), text) for room, text in changed.items())
    return check_source.Rooms(lists)


def includes(path, line):
    return [what for _, what in check_source.check_includes(path, line, rooms())]


class Layering(unittest.TestCase):
    def test_finds_includes_against_the_arrows(self):
        for path, line in (
            ("src/base/log.cpp", '#include "store/table/table.hpp"'),
            ("src/store/server/c.cpp", '#include "rendezvous/key_value.hpp"'),
            ("src/store/server/c.cpp", '#include "drun/store/client.hpp"'),
            ("src/rendezvous/leader.cpp", '#include "drun/store/client.hpp"'),
            ("src/launcher/process/guardian.cpp", '#include "launcher/options/options.hpp"'),
            ("src/launcher/process/guardian.cpp", "#include <asio/ip/tcp.hpp>"),
            ("include/drun/store/client.hpp", '#include "store/protocol/bytes.hpp"'),
            ("src/launcher/agent/agent.cpp", "#include <CLI/CLI.hpp>"),
            ("src/rendezvous/documents.hpp", '#include "base/json.hpp"'),
            ("src/rendezvous/documents.cpp", "#include <nlohmann/json.hpp>"),
        ):
            self.assertNotEqual(includes(path, line), [], (path, line))

    def test_finds_includes_that_no_target_declares(self):
        for path, line in (
            ("src/store/client/b.cpp", '#include "store/protocol/bytes.hpp"'),
            ("src/launcher/agent/agent.cpp", '#include "launcher/workers/worker_group.hpp"'),
            ("src/launcher/agent/agent.cpp", "#include <asio/ip/tcp.hpp>"),
            ("src/rendezvous/d.cpp", '#include "base/json.hpp"'),
        ):
            self.assertRegex(includes(path, line)[0], "does not depend on", (path, line))

    def test_finds_a_folder_that_is_no_room(self):
        self.assertEqual(len(includes("src/launcher/new/a.cpp", "")), 1)

    def test_finds_targets_against_the_arrows(self):
        bad = rooms(base="drun_add_library(base SOURCES log.cpp DEPENDS drun::store_client)")
        self.assertEqual([what for *_, what in check_source.check_rooms(bad)][0],
                         "base must not depend on store/client")
        self.assertEqual(list(check_source.check_rooms(rooms())), [])

    def test_allows_the_arrows(self):
        for path, line in (
            ("src/launcher/agent/agent.cpp", '#include "rendezvous/participant.hpp"'),
            ("src/launcher/agent/agent.cpp", '#include "launcher/process/guardian.hpp"'),
            ("src/store/server/session.cpp", '#include "store/protocol/bytes.hpp"'),
            ("src/launcher/backend/g.cpp", "#include <asio/ip/tcp.hpp>"),
            ("include/drun/store/client.hpp", '#include "drun/base/result.hpp"'),
            ("src/launcher/process/spawn.cpp", "#include <sys/wait.h>"),
        ):
            self.assertEqual(includes(path, line), [], (path, line))

    def test_knows_no_cycle(self):
        """Each room can be put above all that it points to."""
        placed = set()
        while len(placed) < len(check_source.ARROWS):
            free = {room for room, others in check_source.ARROWS.items()
                    if room not in placed and others <= placed}
            self.assertTrue(free, set(check_source.ARROWS) - placed)
            placed |= free


class Lines(unittest.TestCase):
    def test_finds_places_notes_and_silent_skips(self):
        for line in ("cd /wor" "k/x", "see ../shar" "ed/x", "// TO" "DO: later", "GTEST_SKIP();"):
            self.assertEqual(len(list(check_source.check_lines("tests/a.cpp", line))), 1, line)

    def test_leaves_ordinary_lines_alone(self):
        for line in ('GTEST_SKIP() << "no torch";', "the framework/ folder", "/tmp/worker/log"):
            self.assertEqual(list(check_source.check_lines("tests/a.cpp", line)), [], line)


class Tree(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        for path in ("src/base/CMakeLists.txt", "src/own/CMakeLists.txt", "notes.txt", "build/dev/log.cpp"):
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text("drun_add_library(a SOURCES a.cpp)\n", encoding="utf-8")

    def paths(self):
        return [path for path, _ in check_source.tree(self.root)]

    def git(self, *words):
        subprocess.run(["git", "-C", self.root, *words], check=True)

    def test_is_every_file_where_git_has_no_say(self):
        self.assertEqual(self.paths(), ["notes.txt", "src/base/CMakeLists.txt", "src/own/CMakeLists.txt"])
        self.assertEqual([room for room, _ in check_source.lists_of_rooms(check_source.tree(self.root))], ["base", "own"])

    def test_is_what_git_tracks_in_a_checkout(self):
        self.git("init", "--quiet")
        self.git("add", "src/base", "notes.txt")
        self.assertEqual(self.paths(), ["notes.txt", "src/base/CMakeLists.txt"])
        (self.root / "notes.txt").unlink()
        self.assertEqual(self.paths(), ["src/base/CMakeLists.txt"], "tracked, but gone")
        self.assertEqual([room for room, _ in check_source.lists_of_rooms(check_source.tree(self.root))], ["base"])


class Lists(unittest.TestCase):
    FILES = ["tests/unit/base/a_test.cpp", "src/base/b.cpp", "include/drun/base/c.hpp", "tests/support/d.cpp"]
    ROOT = "add_subdirectory(src/base)\nforeach(kind unit)\n  add_subdirectory(tests/${kind}/base)\nendforeach()"

    def unlisted(self, root=ROOT, **lists):
        lists = {path.replace("__", "/") + "/CMakeLists.txt": text for path, text in lists.items()}
        build = cmake_lists.Build({"CMakeLists.txt": root, **lists})
        return [path for path, *_ in check_source.check_listed([*self.FILES, *lists], build)]

    def test_finds_what_nobody_builds_or_installs(self):
        self.assertEqual(self.unlisted(), self.FILES)

    def test_knows_the_folder_of_a_list(self):
        self.assertEqual(self.unlisted(
            src__base="drun_add_library(base SOURCES b.cpp HEADERS drun/base/c.hpp) # a, (b",
            tests__unit__base='add_executable(a a_test.cpp "${PROJECT_SOURCE_DIR}/tests/support/d.cpp")'), [])

    def test_takes_no_file_of_the_same_name_for_it(self):
        self.assertEqual(self.unlisted(
            src__base="drun_add_library(base SOURCES ../b.cpp a_test.cpp d.cpp HEADERS c.hpp)",
            tests__unit__base="drun_add_test(unit_base SOURCES b.cpp)"), self.FILES)

    def test_takes_only_what_a_target_is_made_of(self):
        self.assertEqual(self.unlisted(
            src__base="set_source_files_properties(b.cpp PROPERTIES A ON)",
            tests__unit__base="drun_add_test(unit_base DEPENDS a_test.cpp)"), self.FILES)

    def test_finds_a_folder_that_nothing_leads_to(self):
        lists = {"src__base": "drun_add_library(base SOURCES b.cpp HEADERS drun/base/c.hpp)",
                 "tests__unit__base": "drun_add_test(unit_base SOURCES a_test.cpp ../../support/d.cpp)"}
        self.assertEqual(self.unlisted(**lists), [])
        self.assertEqual(self.unlisted(root="add_subdirectory(src/base)", **lists),
                         ["tests/unit/base/a_test.cpp", "tests/support/d.cpp", "tests/unit/base/CMakeLists.txt"])

    def test_knows_what_a_function_adds(self):
        build = cmake_lists.Build({"CMakeLists.txt": "function(drun_add_fuzzer name)\n  add_executable(${name} ${a})\n"
                                   "  target_link_libraries(${name} PRIVATE drun::base)\n  target_sources(${name} run.cpp)\n"
                                   "endfunction()\ndrun_add_fuzzer(codec SOURCES codec.cpp)"})
        self.assertLessEqual({"codec.cpp", "run.cpp"}, build.targets["codec"].sources)
        self.assertEqual(build.reachable("codec"), {"drun_base"})


class Tests(unittest.TestCase):
    LISTS = {
        "CMakeLists.txt": "add_subdirectory(src/base) add_subdirectory(src/cli) add_subdirectory(src/ctl) add_subdirectory(tests)",
        "src/base/CMakeLists.txt": "drun_add_library(base SOURCES log.cpp)",
        "src/cli/CMakeLists.txt": "drun_add_library(cli SOURCES parse.cpp DEPENDS drun::base)",
        "src/ctl/CMakeLists.txt": "drun_add_program(drunctl SOURCES main.cpp words.cpp DEPENDS drun::cli)",
    }
    OTHERS = {"tests/support/helper.hpp": '#include "cli/parse.hpp"', "src/ctl/words.cpp": '#include "ctl/words.hpp"',
              "src/ctl/words.hpp": '#include "cli/parse.hpp"'}

    def found(self, target, text):
        lists = {**self.LISTS, "tests/CMakeLists.txt": target}
        known = check_source.Rooms({path.split("/", 1)[1].rpartition("/")[0]: text for path, text in lists.items()
                                    if path.startswith("src/")})
        sources = {"tests/a_test.cpp": text, **self.OTHERS}
        return [(path, what) for path, _, what in check_source.check_tests(cmake_lists.Build(lists), known, sources)]

    def test_finds_includes_that_no_target_declares(self):
        for text, path in (('#include "cli/parse.hpp"', "tests/a_test.cpp"),
                           ('#include "support/helper.hpp"', "tests/support/helper.hpp")):
            self.assertEqual(self.found("drun_add_test(a SOURCES a_test.cpp)", text),
                             [(path, "a does not depend on cli (cli/parse.hpp)")])
        self.assertEqual(len(self.found("drun_add_test(a SOURCES a_test.cpp)", "#include <asio/ip/tcp.hpp>")), 1)

    def test_leaves_what_is_declared_alone(self):
        for target, text in (("SOURCES a_test.cpp DEPENDS drun::cli", '#include "support/helper.hpp"'),
                             ("SOURCES a_test.cpp DEPENDS drun::cli Asio::Asio",
                              '#include "cli/parse.hpp"\n#include "base/log.hpp"\n#include <asio/ip/tcp.hpp>')):
            self.assertEqual(self.found(f"drun_add_test(a {target})", text), [])

    def test_a_programs_source_brings_its_room_and_what_that_needs(self):
        text = '#include "ctl/words.hpp"'
        target = "drun_add_test(a SOURCES a_test.cpp ${PROJECT_SOURCE_DIR}/src/ctl/words.cpp"
        self.assertEqual(self.found(target + " DEPENDS drun::cli)", text), [])
        self.assertEqual(self.found(target + ")", text), [("src/ctl/words.hpp", "a does not depend on cli (cli/parse.hpp)")])
        self.assertEqual(len(self.found("drun_add_test(a SOURCES a_test.cpp)", text)), 1)

    def test_finds_dependencies_that_nothing_needs(self):
        self.assertEqual(self.found("drun_add_test(a SOURCES a_test.cpp DEPENDS drun::base drun::cli)", '#include "base/log.hpp"'),
                         [("tests/CMakeLists.txt", "a depends on drun_cli and includes nothing of it")])


class Unused(unittest.TestCase):
    def test_finds_arrows_and_dependencies_that_no_include_needs(self):
        arrows = check_source.ARROWS
        check_source.ARROWS = {"base": set(), "rendezvous": {"base"}}
        try:
            lists = {"src/rendezvous/d.cpp": '#include "base/log.hpp"'}
            self.assertEqual(list(check_source.check_unused(rooms(), lists)), [])
            self.assertEqual([(path, what) for path, _, what in check_source.check_unused(rooms(), {})],
                             [("tests/lint/check_source.py", "the arrow from rendezvous to base is used by no include"),
                              ("src/rendezvous/CMakeLists.txt", "rendezvous declares base and includes nothing of it")])
        finally:
            check_source.ARROWS = arrows


class Floors(unittest.TestCase):
    @staticmethod
    def found(*lines):
        arrows = check_source.ARROWS
        check_source.ARROWS = {"base": set(), "cli": {"base"}, "launcher": {"base", "cli"}}
        try:
            return [what for *_, what in check_source.check_floors("a.md", "\n".join(("```text", *lines, "```")))]
        finally:
            check_source.ARROWS = arrows

    def test_finds_rooms_that_stand_too_high_or_nowhere(self):
        self.assertEqual(self.found("launcher   main()", "cli  flags", "base"), [])
        self.assertEqual(self.found("launcher   main()", "cli  base"), ["cli includes base, which stands no lower"])
        self.assertEqual(self.found("launcher   main()", "cli"), ["the picture lacks base"])


class Cycles(unittest.TestCase):
    def test_finds_a_file_that_includes_itself_by_way_of_others(self):
        found = list(check_source.check_cycles({
            "src/a/a.hpp": '#include "a/b.hpp"', "src/a/b.hpp": "#include <drun/c.hpp>",
            "include/drun/c.hpp": '#include "a/a.hpp"', "src/a/a.cpp": '#include "a/a.hpp"'}))
        self.assertEqual([what for *_, what in found],
                         ["includes itself: src/a/a.hpp -> src/a/b.hpp -> include/drun/c.hpp -> src/a/a.hpp"])

    def test_leaves_two_ways_to_one_file_alone(self):
        self.assertEqual(list(check_source.check_cycles({
            "src/a.hpp": '#include "b.hpp"\n#include "c.hpp"', "src/b.hpp": '#include "c.hpp"',
            "src/c.hpp": "#include <string>"})), [])


class HiddenNames(unittest.TestCase):
    @staticmethod
    def found(one, other):
        block = "namespace {{\n\n{}\n\n}}  // namespace\n"
        return [line for _, line, _ in check_source.check_hidden_names(
            {"src/base/a.cpp": block.format(one), "src/base/b.cpp": "\n" + block.format(other),
             "src/cli/c.cpp": block.format(one)})]

    def test_finds_what_two_files_of_a_room_hide(self):
        for one, other in (
            ("constexpr int kLimit = 5;", "constexpr std::size_t kLimit{7};"),
            ("struct Library {\n  int a;\n};", "class Library final : Base {\n};"),
            ("using Json = nlohmann::json;", "using Json = nlohmann::ordered_json;"),
            ("int half(int a) {\n  return a / 2;\n}", "int half(int b) {\n  return b / 2;\n}"),
            ("using enum Colour;", "using enum Fruit;"),
        ):
            self.assertEqual(self.found(one, other), [4], (one, other))

    def test_leaves_overloads_and_equal_aliases_alone(self):
        for one, other in (
            ("constexpr int kLimit = 5;", "constexpr int kOther = kLimit;"),
            ("using Clock = std::chrono::steady_clock;", "using Clock = std::chrono::steady_clock;"),
            ("int half(int a) {\n  return a / 2;\n}", "int half(long a) {\n  return 0;\n}"),
        ):
            self.assertEqual(self.found(one, other), [], (one, other))


class StandardHeaders(unittest.TestCase):
    @staticmethod
    def missing(**texts):
        found = standard_headers.check_standard_headers(
            {"src/" + name.replace("_", "."): text for name, text in texts.items()})
        return [f"{path}:{line}: {what}" for path, line, what in found]

    def test_finds_what_a_file_names_and_no_header_of_ours_includes(self):
        self.assertEqual(self.missing(a_cpp='#include <map>\n// std::span\nstd::vector<int> a = "std::span";\n'),
                         ["src/a.cpp:3: std::vector needs <vector>"])
        self.assertEqual(self.missing(a_cpp='#include "b.hpp"\nint a = std::min(1, 2);\n', b_hpp="#include <string>\n"),
                         ["src/a.cpp:2: std::min needs <algorithm>"])

    def test_takes_what_comes_by_a_header_of_ours(self):
        self.assertEqual(self.missing(a_cpp='#include "b.hpp"\nstd::optional<int> a;\n', b_hpp='#include "c.hpp"\n',
                                      c_hpp="#include <optional>\n"), [])
        self.assertEqual(self.missing(a_cpp="#include <string>\nstd::string_view a;\n"), [])

    def test_finds_names_that_a_source_brings_in_and_does_not_use(self):
        text = "using std::chrono::seconds;\nvoid f() {\n  using a::Limit;  // Limit\n  seconds s;\n}\n"
        self.assertEqual(list(standard_headers.check_using("src/a.cpp", text)), [(3, "Limit is not used")])
        self.assertEqual(list(standard_headers.check_using("src/a.hpp", text)), [])


class Documents(unittest.TestCase):
    def test_finds_places_that_are_gone(self):
        files = ["src/base/log.cpp", "tests/unit/base/log_test.cpp"]
        for place in ("src/base/log.cpp", "src/base", "tests/unit", "tests/unit/"):
            self.assertEqual(list(check_source.check_documents(files, {"a.md": f"see `{place}`"})), [], place)
        self.assertEqual(list(check_source.check_documents(files, {"a.md": "\nsee `src/base/logs.cpp`"})),
                         [("a.md", 2, "there is no src/base/logs.cpp")])

    def test_finds_links_that_lead_nowhere(self):
        texts = {"README.md": "[a](docs/a.md#two-words) [b](docs/b.svg) [c](#none) [d](https://c.org/x)\n```\n[e](nowhere)\n```\n",
                 "docs/a.md": "# Two `words`\n[up](../README.md)\n[gone](../gone.md) ![x](b.png)\n"}
        self.assertEqual(list(check_source.check_links([*texts, "docs/b.svg"], texts)),
                         [("README.md", 1, "the link to #none leads nowhere"),
                          ("docs/a.md", 3, "the link to ../gone.md leads nowhere"),
                          ("docs/a.md", 3, "the link to b.png leads nowhere")])


if __name__ == "__main__":
    unittest.main()
