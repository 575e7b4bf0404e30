"""mutate.py SOURCE TARGET FROM TO: copies SOURCE with its one FROM replaced by TO."""
import sys

source, target, before, after = sys.argv[1:]
with open(source, encoding="utf-8") as file:
    text = file.read()
if text.count(before) != 1:
    sys.exit(f"{source}: '{before}' is there {text.count(before)} times; mend tests/simulation/CMakeLists.txt")
with open(target, "w", encoding="utf-8") as file:
    file.write(text.replace(before, after))
