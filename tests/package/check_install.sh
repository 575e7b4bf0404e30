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
# The example is a project of its own.
cmake -S "$documents/examples/allreduce" -B "$scratch/allreduce" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_PREFIX_PATH="$scratch/moved"
cmake --build "$scratch/allreduce"
"$scratch/moved/bin/drun" --nproc-per-node 2 "$scratch/allreduce/allreduce"
# So is the program in docs/store.md, the C++ block with a main().
mkdir "$scratch/page"
awk '/^```cpp$/ { text = ""; inside = 1; next }
     /^```$/ { if (inside && text ~ /int main/) printf "%s", text; inside = 0 }
     inside { text = text $0 "\n" }' "$documents/docs/store.md" >"$scratch/page/main.cpp"
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
