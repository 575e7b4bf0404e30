#!/bin/sh
# Installs the build into a scratch folder and builds a consumer against it with find_package.
# usage: check_install.sh BUILD_DIR COMPILER
set -eu
build=$1
compiler=$2
here=$(dirname "$0")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# build_against_installed SOURCE BUILD [OPTION...]
build_against_installed() {
  source=$1
  folder=$2
  shift 2
  cmake -S "$source" -B "$folder" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$scratch/moved" "$@"
  cmake --build "$folder"
}

cmake --install "$build" --prefix "$scratch/prefix" >"$scratch/install.log"
# The tree may be moved: nothing in it remembers where it was installed to.
mv "$scratch/prefix" "$scratch/moved"
build_against_installed "$here/consumer" "$scratch/consumer" -DCMAKE_BUILD_TYPE=Release
"$scratch/consumer/consumer"
"$scratch/consumer/async_consumer"

# What is installed is what is meant to be: a header becomes an interface by being there. Each one
# stands alone.
headers=$scratch/moved/include
(cd "$headers" && find . -type f | sort) >"$scratch/headers"
sort >"$scratch/wanted" <<'END'
./drun/base/endpoint.hpp
./drun/base/log.hpp
./drun/base/result.hpp
./drun/events/event.hpp
./drun/status/job_status.hpp
./drun/store/async_client.hpp
./drun/store/barrier.hpp
./drun/store/client.hpp
./drun/store/control_client.hpp
./drun/store/errors.hpp
./drun/store/lease.hpp
./drun/store/limits.hpp
./drun/store/place.hpp
./drun/store/server.hpp
./drun/store/tcpstore_version.hpp
./drun/store/values.hpp
./drun/version.hpp
./drun/worker.hpp
END
diff "$scratch/wanted" "$scratch/headers"
while read -r header; do
  echo "#include <${header#./}>" | "$compiler" -std=c++20 -Wall -Wextra -Werror -fsyntax-only -I "$headers" -x c++ -
done <"$scratch/headers"
# A program that is compiled for an older standard hears why that fails.
for header in worker.hpp events/event.hpp status/job_status.hpp store/client.hpp store/async_client.hpp store/barrier.hpp store/lease.hpp; do
  if echo "#include <drun/$header>" | "$compiler" -std=c++17 -fsyntax-only -I "$headers" -x c++ - 2>"$scratch/older"; then
    echo "drun/$header says nothing of C++17"
    exit 1
  fi
  grep -q 'drun needs C++20: compile with -std=c++20' "$scratch/older"
done

# The documents lie where their links lead.
documents=$scratch/moved/share/doc/drun
[ -s "$documents/docs/index.md" ]
# Each example is a project of its own.
for example in allgather allreduce; do
  build_against_installed "$documents/examples/$example" "$scratch/$example"
  "$scratch/moved/bin/drun" --nproc-per-node 2 "$scratch/$example/$example"
done
for example in job_events job_status; do
  build_against_installed "$documents/examples/$example" "$scratch/$example"
done
# shellcheck disable=SC2016 # for the worker's shell
"$scratch/moved/bin/drun" --rdzv-id seen --events "$scratch/events" \
  sh -c '"$0" status --json seen | "$1" >"$2"' "$scratch/moved/bin/drunctl" "$scratch/job_status/job_status" "$scratch/status"
grep -qx 'seen: running, round 1, 0 of 0 restarts' "$scratch/status"
"$scratch/job_events/job_events" "$scratch/events" | grep -qx 'job seen: round 1, restarts 0, SUCCEEDED, exit code 0'
# A node that was lost does not run for ever.
cat >"$scratch/gone" <<'EVENTS'
{"event":"worker_started","time":"2026-11-28T14:30:00.000000000Z","run_id":"a","round":1,"node":"t2","hostname":"node2","global_rank":8}
{"event":"node_gone","time":"2026-11-28T14:30:01.000000000Z","run_id":"a","round":1,"node":"t0","hostname":"node0","peer":"t2","peer_host":"node2"}
EVENTS
"$scratch/job_events/job_events" "$scratch/gone" | grep -qx '  node2: gone'
echo '{"id":"a","absent":[{"host":"node7","state":"lost","note":"not back"}]}' | "$scratch/job_status/job_status" | grep -qx '  node7: lost, not back'
# Without CMake, too.
if command -v pkg-config >/dev/null; then
  PKG_CONFIG_PATH=$(dirname "$(find "$scratch/moved" -name drun.pc)")
  export PKG_CONFIG_PATH
  # shellcheck disable=SC2046 # words
  "$compiler" -std=c++20 "$documents/examples/allgather/main.cpp" $(pkg-config --cflags --libs drun) -o "$scratch/gather"
  "$scratch/moved/bin/drun" --nproc-per-node 2 "$scratch/gather" | grep -qx 'rank 1 of 2 got 0 1'
  said=$(echo 'DRUN_VERSION_STRING' | "$compiler" -E -P -include "$headers/drun/version.hpp" -x c++ - | tail -n 1)
  [ "$said" = "\"$(pkg-config --modversion drun)\"" ]
else
  echo "pkg-config is missing, so drun.pc was not tried: apt-get install pkgconf"
fi
# So are the programs in docs/cpp.md, with its list and its command.
page=$documents/docs/cpp.md
mkdir "$scratch/page"
awk -v folder="$scratch/page/" '
     /^```cpp$/ { text = ""; inside = 1; next }
     /^```$/ { if (inside && text ~ /int main/) { ++programs; printf "%s", text >(folder "main" programs ".cpp") } inside = 0 }
     inside { text = text $0 "\n" }' "$page"
[ "$(cd "$scratch/page" && echo *)" = "main1.cpp main2.cpp" ]
if command -v pkg-config >/dev/null; then
  cp "$scratch/page/main1.cpp" "$scratch/page/main.cpp"
  (cd "$scratch/page" && sh -ec "'$compiler' $(sed -n 's/^\$ g++ //p' "$page")")
  "$scratch/moved/bin/drun" --nproc-per-node 2 "$scratch/page/train" | grep -qx 'rank 1 got 2 numbers'
fi
awk '/^```$/ { inside = 0 } inside { print } /^```cmake$/ { inside = 1 }' "$page" >"$scratch/page/CMakeLists.txt"
cp "$scratch/page/main2.cpp" "$scratch/page/main.cpp"
build_against_installed "$scratch/page" "$scratch/page/build"
"$scratch/moved/bin/drun" --timeout 60 --nproc-per-node 2 "$scratch/page/build/train" | sort >"$scratch/said"
printf 'rank 0: the other is at 10.0.0.1:4711\nrank 1: the other is at 10.0.0.1:4710\n' | diff - "$scratch/said"
