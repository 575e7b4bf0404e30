#!/bin/sh
# Says which C++ files clang-format would change. Status 77: the tool is not installed.
# usage: check_format.sh ROOT
set -eu
format=$(command -v clang-format-14) || {
  echo "SKIP: clang-format-14 is missing: apt-get install clang-format-14"
  exit 77
}
cd "$1"
find include src tests examples -name '*.[ch]pp' -print0 |
  xargs -0 "$format" --dry-run --Werror --style=file
