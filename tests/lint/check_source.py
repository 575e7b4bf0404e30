"""Checks the rules of this tree that the compiler cannot: see docs/contributing.md.

usage: check_source.py ROOT
Prints one line for each violation and exits with 1 if there are any.
"""
import pathlib
import re
import sys

# module -> modules whose headers it may include (docs/architecture.md, "Modules")
ALLOWED = {
    "base": set(),
    "store": {"base"},
    "rendezvous": {"base"},
    "launcher/process": {"base"},
    "launcher": {"base", "store", "rendezvous", "launcher/process"},
}
# A heavy library belongs to the few files that hide it from the rest.
CONFINED = {
    r"CLI/": r"src/store/[a-z_]*(options|command_line)[a-z_]*\.cpp$",
    r"spdlog/": r"src/base/log\.cpp$",
    r"nlohmann/json\.hpp": r"\.cpp$",
}
# The place where one of us happened to work, and notes to ourselves.
PLACES = re.compile(r"(?<![\w.])/[w]ork/|/[h]ome/[a-z]|/[U]sers/|\.\./[s]hared\b")
NOTES = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
SOURCE_SUFFIXES = {".cpp", ".hpp", ".cc", ".h", ".c"}
SKIPPED_FOLDERS = {".git", "build", ".cache", "__pycache__"}


def module_of(path):
    """The module of an include path or of a file's path below src/ or include/drun/."""
    folders = path.split("/")[:-1]
    for length in range(len(folders), 0, -1):
        module = "/".join(folders[:length])
        if module in ALLOWED:
            return module
    return None


def check_includes(path, text):
    """`path` is relative to the root."""
    match = re.match(r"(?:src|include/drun)/(.*)", path)
    if not match:
        return
    me = module_of(match[1])
    for number, line in enumerate(text.splitlines(), 1):
        include = re.match(r'\s*#\s*include\s*([<"])([^">]+)[">]', line)
        if not include:
            continue
        name = include[2]
        other = module_of(name.removeprefix("drun/"))
        if other and other != me and other not in ALLOWED.get(me, set()):
            yield number, f"{me} must not include {other} ({name})"
        if path.startswith("include/") and other and not name.startswith("drun/"):
            yield number, f"a public header must not include the private {name}"
        if me == "launcher/process" and re.match(r"asio/ip/|netinet/|arpa/|netdb", name):
            yield number, f"process has no network: {name}"
        for library, home in CONFINED.items():
            if re.match(library, name) and not re.search(home, path):
                yield number, f"{name} belongs in {home.rstrip('$')} only"


def code_tokens(text):
    """(line, token) of C++ text without comments, literals and preprocessor lines."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0])

    text = re.sub(r"/\*.*?\*/|//[^\n]*", blank, text, flags=re.S)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\'', blank, text)
    text = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", blank, text, flags=re.M)
    for match in re.finditer(r"\w+|->|::|&&|\S", text):
        yield text.count("\n", 0, match.start()) + 1, match[0]


class Statement:
    """What one full-expression (or the head of a compound statement) contains."""

    def __init__(self):
        self.await_line = 0
        self.braces = False  # a braced initialiser
        self.closure = False  # a lambda with a capture

    def risky(self):
        return self.await_line and (self.braces or self.closure)


def risky_awaits(text):
    """Lines of a co_await that shares its full-expression with a braced temporary or a closure.

    GCC 12 destroys such a temporary twice (docs/coroutines.md): give it a name first.
    """
    statement = Statement()
    blocks = []  # ("block" | "lambda" | "braces", the statement around it)
    brackets = []  # of what is open: is it the capture or the parameters of a lambda?
    previous, lambda_head, since_paren = "", False, ""
    for line, token in code_tokens(text):
        if token == "co_await":
            statement.await_line = statement.await_line or line
        elif token == "[":
            introduces = not (re.match(r"\w|[\])]", previous) and previous not in KEYWORDS)
            brackets.append(["[", introduces and previous != "[", False])
        elif token == "(":
            brackets.append(["(", lambda_head and previous == "]", False])
        elif token in ")]" and brackets:
            kind, of_lambda, filled = brackets.pop()
            lambda_head = of_lambda
            since_paren = ""
            if kind == "[" and of_lambda and filled:
                statement.closure = True
        elif token == "{":
            if lambda_head:
                kind = "lambda"
            elif previous in BLOCK_OPENERS or (previous == ">" and "->" in since_paren):
                kind = "block"
            elif re.search(r"->[\w:<>&* ]*$", since_paren) or "namespace" in since_paren:
                kind = "block"
            else:
                kind = "braces"
            if kind == "braces":
                statement.braces = True
            elif kind == "block" and statement.risky():
                yield statement.await_line
            blocks.append((kind, statement, brackets))
            if kind != "braces":
                statement, brackets = Statement(), []
            since_paren, lambda_head = "", False
        elif token == "}" and blocks:
            if statement.risky() and blocks[-1][0] != "braces":
                yield statement.await_line
            kind, outer, brackets = blocks.pop()
            statement = Statement() if kind == "block" else outer
            since_paren = ""
        elif token == ";" and not brackets:
            if statement.risky():
                yield statement.await_line
            statement, lambda_head, since_paren = Statement(), False, ""
        else:
            if not re.match(r"->|::|[\w<>&*,]", token):
                lambda_head = False
        if token not in "[({":
            for bracket in brackets:
                if token != "]":
                    bracket[2] = True
        if token not in "()[]{};":
            since_paren += token + " "
        previous = token


KEYWORDS = {"return", "co_return", "co_yield", "co_await", "case", "throw", "else", "do"}
BLOCK_OPENERS = {"", ")", ";", "{", "}", "else", "do", "try", "const", "noexcept", "override",
                 "final", "mutable", ":"}


def check_lines(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        if PLACES.search(line):
            yield number, "names a place on one machine"
        if NOTES.search(line):
            yield number, "an open note: do it, or write an issue"
        if pathlib.PurePath(path).suffix in SOURCE_SUFFIXES:
            if re.search(r"GTEST_SKIP\(\)\s*;", line):
                yield number, "a skipped test must say why"
            if re.search(r"\basio::detached\b", line):
                yield number, "detached coroutines lose their exceptions"
            if re.search(r"\bDISABLED_\w", line):
                yield number, "a test that never runs"


def check_headers(path, text):
    if path.endswith(".hpp"):
        if not re.search(r"^#pragma once$", text, re.M):
            yield 1, "no #pragma once"
        if not text.startswith("//"):
            yield 1, "a header begins with what it is for"


def check_listed(files, lists):
    """Every source is built, every public header is installed: named in some CMake list."""
    words = set(re.findall(r"[\w./-]+", lists))
    names = {word.rsplit("/", 1)[-1] for word in words}
    for path in files:
        source = re.match(r"(src|tests|examples)/.*\.cpp$", path)
        if source and path.rsplit("/", 1)[-1] not in names:
            yield path, 1, "is in no CMake list, so it is never built"
        if path.startswith("include/") and path.removeprefix("include/") not in words:
            yield path, 1, "is in no HEADERS list, so it is not installed"


def tree(root):
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if path.is_file() and not path.is_symlink() and not SKIPPED_FOLDERS & set(relative.parts):
            yield relative.as_posix(), path


def violations(root):
    paths, lists = [], []
    for path, file in tree(root):
        paths.append(path)
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if path.endswith((".cmake", "CMakeLists.txt")):
            lists.append(re.sub(r"#.*", "", text))
        for number, what in check_lines(path, text):
            yield path, number, what
        if pathlib.PurePath(path).suffix in SOURCE_SUFFIXES:
            for check in (check_includes, check_headers):
                for number, what in check(path, text):
                    yield path, number, what
            for number in risky_awaits(text):
                yield path, number, "name the braced value or lambda before co_await"
    yield from check_listed(paths, "\n".join(lists))


def main():
    found = list(violations(pathlib.Path(sys.argv[1])))
    for path, number, what in found:
        print(f"{path}:{number}: {what}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
