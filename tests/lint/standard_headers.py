"""What sources name of the standard library, and what of it they bring into a namespace.

The standard headers are precompiled, and clang-tidy reads a room as one file: neither notices that a file names
what it does not include. Only the names of those headers are known here that are precompiled.
"""
import re

HEADERS = {
    "algorithm": r"(?:ranges::)?(?:sort|stable_sort|find|find_if|find_if_not|any_of|all_of|none_of|count|count_if|copy|copy_if"
                 r"|copy_n|remove_if|transform|min|max|clamp|lower_bound|upper_bound|equal_range|min_element|max_element|unique"
                 r"|reverse|rotate|fill|fill_n|equal|search|mismatch|replace|partition|nth_element|set_difference|for_each"
                 r"|generate|binary_search|is_sorted)\(",
    "charconv": r"(?:from_chars|to_chars)\b",
    "chrono": r"chrono\b",
    "cstdint": r"u?int(?:8|16|32|64|ptr|max)_t\b",
    "filesystem": r"filesystem\b",
    "functional": r"(?:function|bind|ref|cref|less|greater|hash|invoke|mem_fn|plus|equal_to)\b",
    "map": r"(?:multi)?map\b",
    "memory": r"(?:unique_ptr|shared_ptr|weak_ptr|make_unique|make_shared|enable_shared_from_this)\b",
    "optional": r"(?:optional|nullopt)\b",
    "span": r"span\b",
    "string": r"(?:string|to_string|stoi|getline)\b",
    "string_view": r"string_view\b",
    "system_error": r"(?:error_code|system_error|errc|generic_category|system_category|make_error_code)\b",
    "utility": r"(?:move|pair|make_pair|forward|exchange|swap)\b",
    "variant": r"(?:variant|visit|get_if|holds_alternative|monostate)\b",
    "vector": r"vector\b",
}
HEADERS = {header: re.compile(r"\bstd::" + names) for header, names in HEADERS.items()}
# Headers that bring another by what the standard says of them, or that everybody may expect to.
BRING = {"string_view": {"string"}, "cstdint": {"chrono"}, "string": {"filesystem", "system_error"},
         "utility": {"algorithm", "functional", "map", "memory", "optional", "string", "variant", "vector"}}
INCLUDE = re.compile(r'^#include ["<]([^">]+)[">]', re.M)
PLACES = ("src/", "include/", "examples/")


def code_of(text):
    """Without comments and the words of strings."""
    return re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', re.sub(r"//.*", "", text))


def check_standard_headers(texts):
    """A file includes what it names, itself or by a header of ours. `texts`: of the sources, by path."""
    includes = {path: [next((place + name for place in PLACES if place + name in texts), name)
                       for name in INCLUDE.findall(text)] for path, text in texts.items()}
    for path, text in texts.items():
        if not path.startswith(PLACES):
            continue
        reached, ahead = set(), [path]
        while ahead:
            new = set(includes.get(ahead.pop(), ())) - reached
            reached |= new
            ahead += new
        code = code_of(text)
        for header, names in HEADERS.items():
            used = names.search(code)
            if used and not reached & ({header} | BRING.get(header, set())):
                yield path, code.count("\n", 0, used.start()) + 1, f"{used[0].rstrip('(')} needs <{header}>"


def check_using(path, text):
    """What a source brings into a namespace or a block is named there."""
    if not path.endswith(".cpp"):
        return
    code = code_of(text)
    for using in re.finditer(r"^[ \t]*using [\w:]*::(\w+);[ \t]*$", code, re.M):
        if not re.search(rf"\b{using[1]}\b", re.sub(rf"^[ \t]*using [\w:]*::{using[1]};[ \t]*$", "", code, flags=re.M)):
            yield code.count("\n", 0, using.start()) + 1, f"{using[1]} is not used"
