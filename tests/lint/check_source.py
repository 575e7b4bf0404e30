"""Checks the rules of this tree that the compiler cannot: see docs/contributing.md.

usage: check_source.py ROOT
Prints one line for each violation and exits with 1 if there are any. In a git checkout only files that git
tracks count: others are somebody's own.
"""
import pathlib
import posixpath
import re
import subprocess
import sys

import cmake_lists
import standard_headers

# room (a folder that is one CMake target) -> rooms that it may depend on and whose headers it may
# include (docs/architecture.md, "Rooms")
ARROWS = {
    "base": "",
    "cli": "base",
    "store/protocol": "",
    "store/table": "base store/protocol",
    "store/server": "base secure store/protocol store/table",
    "store/client": "base secure store/protocol",
    "store/relay": "base secure store/client store/protocol store/server",
    "store/program": "base cli secure store/server",
    "rendezvous": "base",
    "secure": "base",
    "events": "base",
    "etcd": "base rendezvous store/client",
    "status": "base",
    "facts": "base",
    "doctor": "base facts",
    "jobs": "base rendezvous status",
    "stacks": "base",
    "timeline": "base events",
    "hang": "base",
    "ctl": "base cli doctor facts hang jobs rendezvous secure stacks status store/client store/protocol "
           "timeline",
    "launcher/pmi": "base",
    "launcher/page": "base store/server",
    "launcher/cluster": "base launcher/pmi",
    "launcher/hosts": "base launcher/cluster",
    "launcher/process": "base secure",
    "launcher/event_sinks": "base events launcher/process",
    "launcher/look": "base hang launcher/process stacks",
    "launcher/devices": "base",
    "launcher/options": "base etcd hang launcher/devices launcher/event_sinks launcher/hosts launcher/process "
                        "rendezvous secure",
    "launcher/command_line": "base cli events launcher/cluster launcher/devices launcher/hosts "
                             "launcher/options secure",
    "launcher/output": "base launcher/options",
    "launcher/report": "base launcher/output launcher/process rendezvous",
    "launcher/workers": "base hang launcher/options launcher/output launcher/process launcher/report "
                        "rendezvous",
    "launcher/backend": "base etcd launcher/options rendezvous store/client store/relay store/server",
    "launcher/signals": "launcher/options launcher/process",
    "launcher/services": "base launcher/backend launcher/pmi launcher/workers rendezvous store/client",
    "launcher/telling": "base events launcher/backend launcher/devices launcher/event_sinks launcher/options "
                        "launcher/output launcher/process launcher/report launcher/signals launcher/workers "
                        "rendezvous timeline",
    "launcher/job_stacks": "base launcher/look launcher/options launcher/output launcher/page launcher/telling "
                           "launcher/workers rendezvous secure stacks",
    "launcher/watch": "base hang launcher/devices launcher/look launcher/output launcher/process "
                      "launcher/telling launcher/workers rendezvous status",
    "launcher/views": "base jobs launcher/devices launcher/job_stacks launcher/options launcher/page "
                      "launcher/process launcher/report launcher/telling launcher/workers rendezvous "
                      "secure status",
    "launcher/leaving": "base launcher/backend launcher/options launcher/output launcher/process launcher/report "
                        "launcher/signals launcher/telling launcher/views launcher/workers rendezvous",
    "launcher/agent": "base facts hang launcher/backend launcher/devices launcher/job_stacks launcher/leaving "
                      "launcher/options launcher/output launcher/process launcher/report launcher/services "
                      "launcher/signals launcher/telling launcher/views launcher/watch launcher/workers rendezvous "
                      "secure status",
    "launcher/local_nodes": "base launcher/agent launcher/backend launcher/hosts launcher/leaving launcher/options "
                            "launcher/output launcher/process launcher/signals launcher/telling",
    "launcher/starter": "base launcher/hosts launcher/leaving launcher/options launcher/output launcher/process "
                        "launcher/report launcher/signals launcher/views secure",
    "launcher": "base launcher/agent launcher/command_line launcher/hosts launcher/local_nodes "
                "launcher/devices launcher/leaving launcher/look launcher/options launcher/output launcher/report "
                "launcher/signals launcher/starter launcher/telling launcher/workers secure",
}
ARROWS = {room: set(others.split()) for room, others in ARROWS.items()}
# A heavy library belongs to the few files that hide it from the rest.
CONFINED = {
    r"CLI/": r"src/cli/parse\.cpp$",
    r"fmt/": r"src/base/log\.hpp$",
    r"spdlog/": r"src/base/log\.cpp$",
    r"curl/": r"src/etcd/curl_library\.hpp$",
    r"openssl/": r"src/secure/tls_library\.hpp$",
    r"hwloc\.h": r"src/launcher/devices/topology\.cpp$",
    r"nlohmann/": r"src/base/json\.(hpp|cpp)$",
    r"base/json\.hpp": r"(\.cpp|src/rendezvous/json_reader\.hpp)$",
}
# The target that stands for a library whose headers the compiler finds without it.
LIBRARIES = {
    r"asio(/|\.hpp)": "Asio::Asio",
    r"CLI/": "CLI11::CLI11",
    r"(nlohmann/|base/json\.hpp)": "nlohmann_json::nlohmann_json",
}
# The place where one of us happened to work, and notes to ourselves.
PLACES = re.compile(r"(?<![\w.])/[w]ork/|/[h]ome/[a-z]|/[U]sers/|\.\./[s]hared\b")
NOTES = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
SOURCE_SUFFIXES = {".cpp", ".hpp", ".cc", ".h", ".c"}
SKIPPED_FOLDERS = {".git", "build", ".cache", "__pycache__"}


def room_of(path):
    """The room of a file's path below src/."""
    folder = path.rpartition("/")[0]
    return folder if folder in ARROWS else None


class Rooms:
    """What the CMake lists under src/ say: the target of each room, and what it depends on."""

    def __init__(self, lists):
        """`lists`: the text of each room's CMakeLists.txt without comments, by room."""
        self.public = {}  # "store/client.hpp" (below include/drun/) -> room
        self.depends = {}  # room -> rooms
        self.lists = lists
        targets = {}
        for room, text in lists.items():
            for name, arguments in re.findall(r"drun_add_(?:library|program)\(([\w-]+)\s([^)]*)\)", text):
                targets["drun::" + name] = room
                for header in re.findall(r"drun/(\S+\.hpp)", arguments):
                    self.public[header] = room
        for room, text in lists.items():
            named = re.findall(r"drun::[\w-]+", text)
            self.depends[room] = {targets[name] for name in named if name in targets} - {room}

    def reachable(self, room):
        found, todo = set(), [room]
        while todo:
            todo += (more := self.depends.get(todo.pop(), set()) - found)
            found |= more
        return found

    def of_include(self, name):
        if name.startswith("drun/"):
            return self.public.get(name.removeprefix("drun/"))
        return room_of(name)

    def of_file(self, path):
        if path.startswith("include/drun/"):
            return self.public.get(path.removeprefix("include/drun/"))
        return room_of(path.removeprefix("src/")) if path.startswith("src/") else None


def check_rooms(rooms):
    """The targets keep to the arrows, and the arrows run one way."""
    for room, others in sorted(rooms.depends.items()):
        at = f"src/{room}/CMakeLists.txt"
        for other in sorted(others - ARROWS.get(room, set())):
            yield at, 1, f"{room} must not depend on {other}"
        if room in rooms.reachable(room):
            yield at, 1, f"{room} depends on itself"


INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.M)


def check_unused(rooms, texts):
    """Each arrow, and each dependency of a target, is one that an include needs. `texts`: of the sources, by path."""
    used = {}
    for path, text in texts.items():
        if me := rooms.of_file(path):
            used.setdefault(me, set()).update(rooms.of_include(name) for name in INCLUDE.findall(text))
    for room, others in ARROWS.items():
        for other in sorted(others - used.get(room, set())):
            yield "tests/lint/check_source.py", 1, f"the arrow from {room} to {other} is used by no include"
    for room, others in sorted(rooms.depends.items()):
        for other in sorted(others & ARROWS.get(room, set()) - used.get(room, set())):
            yield f"src/{room}/CMakeLists.txt", 1, f"{room} declares {other} and includes nothing of it"


def check_tests(build, rooms, texts):
    """The tests and examples include only rooms and libraries that their targets depend on, and no test depends on a
    room for nothing. A target that compiles a source of a program's room may include that room."""
    room_of_target = {name: target.folder.removeprefix("src/") for name, target in build.targets.items()
                      if target.folder.startswith("src/")}
    for name, target in build.targets.items():
        if not target.folder.startswith(("tests", "examples")):
            continue
        at = target.folder + "/CMakeLists.txt"
        reachable = build.reachable(name)
        allowed = {room_of_target.get(each) for each in reachable}
        compiled = {rooms.of_file(source) for source in target.sources if source.startswith("src/")}
        allowed |= compiled
        used, seen, todo = set(), set(), [source for source in target.sources if source in texts]
        while todo:
            path = todo.pop()
            if path in seen:
                continue
            seen.add(path)
            for match in INCLUDE.finditer(texts[path]):
                include, line = match[1], texts[path].count("\n", 0, match.start(1)) + 1
                other = rooms.of_include(include)
                used.add(other)
                if other and other not in allowed:
                    yield path, line, f"{name} does not depend on {other} ({include})"
                for library, needed in LIBRARIES.items():
                    if re.match(library, include) and needed not in reachable:
                        yield path, line, f"{name} does not depend on {needed} ({include})"
                todo += [place for place in ("tests/" + include, "src/" + include) if place in texts
                         and (place.startswith("tests/") or rooms.of_file(place) in compiled)]
        for each in sorted(target.depends & build.targets.keys() if target.labelled else ()):
            theirs = {room_of_target.get(more) for more in {each} | build.reachable(each)} - {None}
            if each in room_of_target and not used & ({room_of_target[each]} if room_of_target[each] in ARROWS else theirs):
                yield at, 1, f"{name} depends on {each} and includes nothing of it"


def check_includes(path, text, rooms):
    """`path` is relative to the root."""
    if not re.match(r"src/|include/drun/", path):
        return
    me = rooms.of_file(path)
    if me is None:
        yield 1, "is in a folder that is no room: give it a target, and a row in ARROWS"
        return
    for number, line in enumerate(text.splitlines(), 1):
        include = re.match(r'\s*#\s*include\s*([<"])([^">]+)[">]', line)
        if not include:
            continue
        name = include[2]
        other = rooms.of_include(name)
        if other and other != me and other not in ARROWS[me]:
            yield number, f"{me} must not include {other} ({name})"
        elif other and other != me and other not in rooms.depends[me]:
            yield number, f"the target of {me} does not depend on that of {other} ({name})"
        if path.startswith("include/") and other and not name.startswith("drun/"):
            yield number, f"a public header must not include the private {name}"
        # Only its farewell dials, and that is given ready addresses.
        if me == "launcher/process" and re.match(r"asio/ip/|netinet/|arpa/|netdb", name):
            yield number, f"process knows no kind of address: {name}"
        for library, target in LIBRARIES.items():
            if re.match(library, name) and target not in rooms.lists[me]:
                yield number, f"the target of {me} does not depend on {target} ({name})"
        for library, home in CONFINED.items():
            if re.match(library, name) and not re.search(home, path):
                yield number, f"{name} belongs in {home.rstrip('$')} only"


def check_cycles(texts):
    """`texts`: of the sources, by path. No file includes itself, however long the way."""
    graph = {}
    for path, text in texts.items():
        graph[path] = [place + name for name in INCLUDE.findall(text) for place in ("src/", "include/", "tests/")
                       if place + name in texts]
    done = set()

    def visit(path, way):
        if path in way:
            yield path, 1, "includes itself: " + " -> ".join((*way[way.index(path):], path))
        elif path not in done:
            for other in graph[path]:
                yield from visit(other, (*way, path))
            done.add(path)

    for path in graph:
        yield from visit(path, ())


def hidden_definitions(text):
    """What the unnamed namespaces of a file define, each as a kind, a key and its line."""
    for block in re.finditer(r"^namespace \{$(.*?)^\}  // namespace$", text, re.M | re.S):
        for match in re.finditer(r"^(?![\s}#/])[^;{]*", block[1], re.M):
            line = text.count("\n", 0, block.start(1) + match.start()) + 1
            head = re.sub(r"\s+", " ", match[0]).strip()
            if type_name := re.match(r"(?:struct|class|enum(?: class)?) (\w+)", head):
                yield type_name[1], "", line
            elif re.match(r"using enum ", head):  # its enumerators
                yield "using enum", "", line
            elif alias := re.match(r"using (\w+) = (.*)", head):
                yield alias[1], alias[2], line
            elif constant := re.search(r"\b(k[A-Z]\w*)", head.partition("=")[0]):
                yield constant[1], "", line
            elif function := re.match(r"[\w:<>,&*\[\] ]+?\b(\w+)\(([^)]*)\)", head):
                types = (re.sub(r" ?\b\w+( = .*)?$", "", each.strip()) for each in function[2].split(","))
                yield function[1], "(" + ", ".join(types) + ")", line


def check_hidden_names(texts):
    """Some presets compile a room as one file: no two of its files hide the same name.
    `texts`: of the sources, by path."""
    seen = {}
    for path, text in texts.items():
        if not re.match(r"src/.*\.cpp$", path):
            continue
        room = path.rpartition("/")[0]
        for name, what, line in hidden_definitions(text):
            others = seen.setdefault((room, name), {})
            for other_what, other in others.items():
                same_alias = what == other_what and not what.startswith("(") and what
                overload = what != other_what and what.startswith("(") and other_what.startswith("(")
                if other != path and not same_alias and not overload:
                    yield path, line, f"{name} is defined in {other}, too: share it, or give it another name"
            others.setdefault(what, path)


def check_lines(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        if PLACES.search(line):
            yield number, "names a place on one machine"
        if NOTES.search(line):
            yield number, "an open note: do it, or write an issue"
        if pathlib.PurePath(path).suffix in SOURCE_SUFFIXES:
            if re.search(r"GTEST_SKIP\(\)\s*;", line):
                yield number, "a skipped test must say why"
            if re.search(r"\bDISABLED_\w", line):
                yield number, "a test that never runs"


def check_headers(path, text):
    if path.endswith(".hpp"):
        if not re.search(r"^#pragma once$", text, re.M):
            yield 1, "no #pragma once"
        if not text.startswith("//"):
            yield 1, "a header begins with what it is for"


def check_listed(files, build):
    """Every source is built and every public header is installed, by a list that the build reads."""
    sources = {path for target in build.targets.values() for path in target.sources}
    headers = {path for target in build.targets.values() for path in target.headers}
    for path in files:
        if re.match(r"(src|tests|examples)/.*\.cpp$", path) and path not in sources:
            yield path, 1, "is in no CMake list, so it is never built"
        if path.startswith("include/") and path not in headers:
            yield path, 1, "is in no HEADERS list, so it is not installed"
        if path.endswith("CMakeLists.txt") and path not in build.read:
            yield path, 1, "no add_subdirectory leads here"


def check_floors(path, text):
    """The picture of the rooms: each line names rooms that include only those of the lines below it."""
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1)]
    begin = next((at for at, (_, line) in enumerate(lines) if line.startswith("launcher  ")), None)
    if begin is None:
        yield path, 1, "has no picture of the floors"
        return
    below = set(ARROWS)
    for number, line in lines[begin:]:
        if line.startswith("```"):
            break
        here = {word for word in line.split() if word in ARROWS} if line.split() else set()
        below -= here
        for room in sorted(here):
            for other in sorted(ARROWS[room] - below):
                yield path, number, f"{room} includes {other}, which stands no lower"
    for room in sorted(below):
        yield path, lines[begin][0], f"the picture lacks {room}"


def check_documents(files, texts):
    """What a document names in backticks as a place of the tree is there. `texts`: of documents, by path."""
    places = set(files) | {path.rpartition("/")[0] for path in files}
    places |= {"/".join(place.split("/")[:length]) for place in places for length in range(1, 9)}
    for path, text in texts.items():
        for match in re.finditer(r"`((?:src|include|tests|docs|scripts|examples|cmake)/[\w./-]+)`", text):
            if match[1].rstrip("/") not in places:
                yield path, text.count("\n", 0, match.start()) + 1, f"there is no {match[1]}"


FENCED = re.compile(r"^```.*?^```$", re.M | re.S)


def anchors(text):
    """What a link may name behind "#": the headings, as GitHub and others spell them."""
    for heading in re.findall(r"^#+ (.*)$", FENCED.sub("", text), re.M):
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        yield re.sub(r"[^\w -]", "", shown).replace(" ", "-")


def check_links(files, texts):
    """What a document links to in this tree is there. `texts`: of documents, by path."""
    places = set(files) | {parent.as_posix() for path in files for parent in pathlib.PurePosixPath(path).parents}
    headings = {path: set(anchors(text)) for path, text in texts.items()}
    for path, text in texts.items():
        prose = FENCED.sub(lambda block: "\n" * block[0].count("\n"), text)
        for match in re.finditer(r"""\]\(([^)\s]+)\)|(?:src|href)="([^"]+)\"""", prose):
            target = match[1] or match[2]
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            place = posixpath.normpath(posixpath.join(posixpath.dirname(path), name)) if name else path
            if place not in places or anchor and anchor not in headings.get(place, ()):
                yield path, prose.count("\n", 0, match.start()) + 1, f"the link to {target} leads nowhere"


def tracked(root):
    """The paths that git tracks, or None if `root` is no git checkout."""
    if not (root / ".git").exists():  # an unpacked archive, maybe below somebody's checkout
        return None
    try:
        listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True, check=False)
    except FileNotFoundError:
        return None
    return sorted(filter(None, listed.stdout.split("\0"))) if listed.returncode == 0 else None


def tree(root):
    paths = tracked(root)
    if paths is None:
        paths = sorted(path.relative_to(root).as_posix() for path in root.rglob("*"))
    for path in paths:
        file = root / path
        if file.is_file() and not file.is_symlink() and not SKIPPED_FOLDERS & set(path.split("/")):
            yield path, file


def lists_of_rooms(files):
    """`files`: as tree() gives them."""
    for path, file in files:
        room = re.fullmatch(r"src/(.+)/CMakeLists\.txt", path)
        text = re.sub(r"#.*", "", file.read_text(encoding="utf-8")) if room else ""
        if "drun_add_" in text:
            yield room[1], text


def violations(root):
    paths, lists, sources, documents = [], {}, {}, {}
    files = list(tree(root))
    rooms = Rooms(dict(lists_of_rooms(files)))
    yield from check_rooms(rooms)
    for path, file in files:
        paths.append(path)
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if path.endswith(".md"):
            documents[path] = text
        if path.endswith("CMakeLists.txt"):
            lists[path] = text
        for number, what in check_lines(path, text):
            yield path, number, what
        if pathlib.PurePath(path).suffix in SOURCE_SUFFIXES:
            sources[path] = text
            for number, what in check_includes(path, text, rooms):
                yield path, number, what
            for number, what in (*check_headers(path, text), *standard_headers.check_using(path, text)):
                yield path, number, what
    build = cmake_lists.Build(lists)
    yield from check_listed(paths, build)
    yield from check_unused(rooms, sources)
    yield from check_tests(build, rooms, sources)
    yield from check_floors("docs/architecture.md", documents["docs/architecture.md"])
    yield from check_cycles(sources)
    yield from check_hidden_names(sources)
    yield from standard_headers.check_standard_headers(sources)
    yield from check_documents(paths, documents)
    yield from check_links(paths, documents)


def main():
    found = list(violations(pathlib.Path(sys.argv[1])))
    for path, number, what in found:
        print(f"{path}:{number}: {what}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
