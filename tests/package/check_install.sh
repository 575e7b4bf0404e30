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
