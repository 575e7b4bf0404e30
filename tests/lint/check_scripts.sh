#!/bin/sh
# Runs shellcheck over every shell script of the tree. Status 77: the tool is not installed.
# usage: check_scripts.sh ROOT
set -eu
command -v shellcheck >/dev/null || {
  echo "SKIP: shellcheck is missing: apt-get install shellcheck"
  exit 77
}
cd "$1"
# A script is what begins with #!, a shell and nothing else before it.
find . \( -name build -o -name .git \) -prune -o -type f ! -name '*.md' -print0 |
  xargs -0 grep -lIEZ -m1 '^#!(/usr/bin/env |/bin/)(ba)?sh' |
  xargs -0 shellcheck
