"""mutate.py SOURCE TARGET FROM TO [FROM TO]...: copies SOURCE with its one FROM, of each pair, replaced by TO."""
import sys

source, target, *changes = sys.argv[1:]
with open(source, encoding="utf-8") as file:
    text = file.read()
for before, after in zip(changes[::2], changes[1::2]):
    if text.count(before) != 1:
        sys.exit(f"{source}: '{before}' is there {text.count(before)} times; mend tests/simulation/CMakeLists.txt")
    text = text.replace(before, after)
with open(target, "w", encoding="utf-8") as file:
    file.write(text)
