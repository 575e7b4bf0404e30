"""What the CMake lists of this tree build: which of them are read at all, and which targets they make, of what.

Of CMake's language it knows what these lists use: commands, functions, foreach over words. Of an if() it takes both ways.
"""
import dataclasses
import posixpath
import re

TOKEN = re.compile(r'"((?:\\.|[^"\\])*)"|#[^\n]*|([()])|([^\s()"]+)', re.S)
WAYS = {"PUBLIC", "PRIVATE", "INTERFACE", "STATIC", "SHARED", "OBJECT", "EXCLUDE_FROM_ALL"}


def commands(text):
    """Each command of a list: its name and its words."""
    name, words, depth = None, [], 0
    for quoted, bracket, word in (match.groups() for match in TOKEN.finditer(text)):
        if bracket == "(":
            depth += 1
        elif bracket == ")":
            depth -= 1
            if depth == 0:
                yield name, words
                words = []
        elif depth > 0 and (quoted is not None or word is not None):
            words.append(quoted if word is None else word)
        elif word is not None:
            name = word.lower()


def block(found, begin):
    """The commands between that at `begin` and its end, and where they end."""
    name, depth = found[begin][0], 0
    for at in range(begin, len(found)):
        depth += (found[at][0] == name) - (found[at][0] == "end" + name)
        if depth == 0:
            return found[begin + 1:at], at
    return found[begin + 1:], len(found)


def expanded(found, variables, functions):
    """`found` as CMake runs it: each foreach written out. The bodies of functions go into `functions`."""
    at = 0
    while at < len(found):
        name, words = found[at]
        if name in ("foreach", "function"):
            body, at = block(found, at)
            if name == "function":
                functions[words[0].lower()] = body
            for word in words[1:] if name == "foreach" and "IN" not in words else ():
                yield from expanded(body, {**variables, words[0]: word}, functions)
        else:
            yield name, [re.sub(r"\$\{(\w+)\}", lambda each: variables.get(each[1], each[0]), word) for word in words]
        at += 1


@dataclasses.dataclass
class Target:
    folder: str
    sources: set = dataclasses.field(default_factory=set)  # relative to the root
    headers: set = dataclasses.field(default_factory=set)  # public ones, relative to the root
    depends: set = dataclasses.field(default_factory=set)  # as CMake knows them: "drun_base", "Asio::Asio"
    labelled: bool = False  # by drun_add_test()


class Build:
    """`lists`: the text of each CMakeLists.txt, by path."""

    def __init__(self, lists):
        self.targets = {}
        self.read = set()  # the lists that a build reads: this tree's, or one of those that are projects themselves
        self._lists = lists
        for path, text in lists.items():
            if path == "CMakeLists.txt" or any(name == "project" for name, _ in commands(text)):
                self._read(path, {})

    def _read(self, path, functions):
        if path in self.read or path not in self._lists:
            return
        self.read.add(path)
        folder = posixpath.dirname(path)
        for name, words in expanded(list(commands(self._lists[path])), {}, functions):
            if name == "add_subdirectory":
                self._read(posixpath.join(folder, words[0], "CMakeLists.txt"), functions)
            elif name in ("add_executable", "add_library", "target_sources", "target_link_libraries"):
                self._take(name, words, folder)
            elif name.startswith("drun_add_") and words:
                own = "drun_" + words[0] if name == "drun_add_library" else words[0]
                self._take("keywords", [own, *words[1:]], folder)
                self.targets[own].labelled = name == "drun_add_test"
                for inner, its_words in expanded(functions.get(name, []), {}, {}):
                    if inner in ("add_executable", "target_sources", "target_link_libraries"):
                        self._take(inner, [own, *its_words[1:]], folder)

    def _take(self, kind, words, folder):
        if "ALIAS" in words or "IMPORTED" in words:
            return
        target = self.targets.setdefault(words[0], Target(folder))
        part = "DEPENDS" if kind == "target_link_libraries" else "" if kind == "keywords" else "SOURCES"
        for word in words[1:]:
            if kind == "keywords" and re.fullmatch(r"[A-Z_]+", word):
                part = word
            elif word in WAYS:
                continue
            elif part == "SOURCES":
                target.sources.add(self._place(word, folder))
            elif part == "HEADERS":
                target.headers.add("include/" + word)
            elif part in ("DEPENDS", "PRIVATE_DEPENDS"):
                target.depends.add(word.replace("drun::", "drun_"))

    @staticmethod
    def _place(word, folder):
        if word.startswith("${PROJECT_SOURCE_DIR}/"):
            return word.partition("/")[2]
        return posixpath.normpath(posixpath.join(folder, word))

    def reachable(self, name):
        """The names of all that a target depends on, near and far."""
        found, todo = set(), [name]
        while todo:
            target = self.targets.get(todo.pop())
            todo += (more := target.depends - found if target else set())
            found |= more
        return found
