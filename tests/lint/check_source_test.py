"""The rules of check_source.py, each with what it must find and what it must leave alone."""
import unittest

import check_source


def awaits(code):
    return list(check_source.risky_awaits("awaitable<void> f() {\n" + code + "\n}\n"))


class RiskyAwaits(unittest.TestCase):
    def test_finds_each_form_that_gcc_12_breaks(self):
        for code in (
            "r = co_await agg(Agg{text, 1});",
            "r = co_await agg({text, 1});",
            "r = co_await agg(Agg{.a = text});",
            "r = plain(Agg{text, 1}, co_await one());",
            "v.push_back(Agg{text, co_await one()});",
            "Agg a{.s = text, .n = co_await one()};",
            "co_await f([text] { return text.size(); });",
            "co_await f([&, text](int n) mutable { use(n); });",
            "co_await co_spawn(ex, [s]() -> awaitable<void> { co_return; }, use_awaitable);",
            "if (co_await f(Agg{1})) { g(); }",
            "for (;;) { auto x = co_await f({1, 2}); }",
        ):
            self.assertEqual(awaits(code), [2], code)

    def test_leaves_named_values_and_plain_blocks_alone(self):
        for code in (
            "Agg a{text, 1};\nr = co_await agg(a);",
            "r = co_await ctor(Ctor(text, 1));",
            "auto aw = agg(Agg{text, 1});\nr = co_await std::move(aw);",
            "auto f = [text] { return text.size(); };\nr = f() + co_await one();",
            "while (true) { auto x = co_await ret(); use(x); }",
            "if (co_await f()) { g(); } else { co_await h(); }",
            "try { co_await f(); } catch (const std::exception& e) { g({1, 2}); }",
            "for (int i = 0; i < 2; ++i) { co_await f(); }",
            "auto g = [] { return Agg{1}; };\nco_await h();",
            "co_await f([] { return 1; });",
            "a[i] = co_await f(b[2]);",
            "co_return Agg{text, 1};",
            'log("co_await {}");\ng(Agg{1});  // co_await',
        ):
            self.assertEqual(awaits(code), [], code)

    def test_looks_inside_a_lambda_that_is_a_coroutine(self):
        code = "group.spawn([this] {\n  co_await f(Agg{1});\n});"
        self.assertEqual(awaits(code), [3])


def rooms(**changed):
    """Some rooms of the tree, as their lists describe them."""
    lists = {
        "base": "drun_add_library(base SOURCES log.cpp HEADERS drun/base/result.hpp)",
        "store/protocol": "drun_add_library(store_protocol SOURCES a.cpp DEPENDS drun::base)",
        "store/client": "drun_add_library(store_client SOURCES b.cpp HEADERS drun/store/client.hpp "
                        "DEPENDS drun::base)",
        "store/server": "drun_add_library(store_server SOURCES c.cpp DEPENDS drun::store_protocol)",
        "rendezvous": "drun_add_library(rendezvous SOURCES d.cpp DEPENDS drun::base)",
        "launcher/process": "drun_add_library(process SOURCES e.cpp DEPENDS drun::base)",
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
            ("src/rendezvous/documents.hpp", "#include <nlohmann/json.hpp>"),
        ):
            self.assertNotEqual(includes(path, line), [], (path, line))

    def test_finds_includes_that_no_target_declares(self):
        for path, line in (
            ("src/store/client/b.cpp", '#include "store/protocol/bytes.hpp"'),
            ("src/launcher/agent/agent.cpp", '#include "launcher/workers/worker_group.hpp"'),
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
            ("src/store/server/server.cpp", "#include <asio/ip/tcp.hpp>"),
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


class Lists(unittest.TestCase):
    def test_finds_what_nobody_builds_or_installs(self):
        files = ["tests/unit/a_test.cpp", "src/base/b.cpp", "include/drun/base/c.hpp"]
        self.assertEqual(len(list(check_source.check_listed(files, ""))), 3)
        lists = "unit/a_test.cpp b.cpp drun/base/c.hpp"
        self.assertEqual(list(check_source.check_listed(files, lists)), [])


if __name__ == "__main__":
    unittest.main()
