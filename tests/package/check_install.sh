#!/bin/sh
# Installs the build into a scratch folder and builds a consumer against it with find_package.
# usage: check_install.sh BUILD_DIR COMPILER
set -eu
build=$1
compiler=$2
here=$(dirname "$0")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cmake --install "$build" --prefix "$scratch/prefix" >"$scratch/install.log"
# The tree may be moved: nothing in it remembers where it was installed to.
mv "$scratch/prefix" "$scratch/moved"
cmake -S "$here/consumer" -B "$scratch/consumer" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$scratch/moved"
cmake --build "$scratch/consumer"
"$scratch/consumer/consumer"
"$scratch/consumer/async_consumer"

# The documents lie where their links lead.
documents=$scratch/moved/share/doc/drun
[ -s "$documents/docs/index.md" ]
# Each example is a project of its own.
for example in allgather allreduce; do
  cmake -S "$documents/examples/$example" -B "$scratch/$example" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_PREFIX_PATH="$scratch/moved"
  cmake --build "$scratch/$example"
  "$scratch/moved/bin/drun" --nproc-per-node 2 "$scratch/$example/$example"
done
# So is the program in docs/cpp.md, the last C++ block with a main().
mkdir "$scratch/page"
awk '/^```cpp$/ { text = ""; inside = 1; next }
     /^```$/ { if (inside && text ~ /int main/) program = text; inside = 0 }
     inside { text = text $0 "\n" }
     END { printf "%s", program }' "$documents/docs/cpp.md" >"$scratch/page/main.cpp"
cat >"$scratch/page/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(page LANGUAGES CXX)
find_package(drun REQUIRED COMPONENTS store)
add_executable(neighbour main.cpp)
target_link_libraries(neighbour PRIVATE drun::store)
END
cmake -S "$scratch/page" -B "$scratch/page/build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_PREFIX_PATH="$scratch/moved"
cmake --build "$scratch/page/build"
"$scratch/moved/bin/drun" --timeout 60 --nproc-per-node 2 "$scratch/page/build/neighbour" | sort >"$scratch/said"
printf 'rank 0: the other is at 10.0.0.1:4711\nrank 1: the other is at 10.0.0.1:4710\n' | diff - "$scratch/said"
