#!/bin/sh
# Packs the build with cpack, unpacks the .deb into a scratch root as dpkg would, and runs what is
# in it. Status 77: dpkg's tools are not installed.
# usage: check_deb.sh BUILD_DIR
set -eu
build=$1
for tool in dpkg-deb dpkg-shlibdeps file; do
  command -v "$tool" >/dev/null || {
    echo "SKIP: $tool is missing: apt-get install dpkg-dev file"
    exit 77
  }
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  echo "check_deb: $1" >&2
  exit 1
}

cpack --config "$build/CPackConfig.cmake" -B "$scratch/packages"
for package in "$scratch"/packages/*.deb; do
  dpkg-deb --info "$package"
  dpkg-deb -x "$package" "$scratch/root"
done
case $(dpkg-deb -f "$scratch"/packages/drun_*.deb Depends) in
  libc6*) ;;
  *) fail "the package must depend on the C library" ;;
esac

drun=$scratch/root/usr/bin/drun
ldd "$drun" | awk '{ print $1 }' | while read -r library; do
  case $library in
    linux-vdso.so.1 | libc.so.6 | libm.so.6 | /lib64/ld-linux-x86-64.so.2 | /lib/ld-linux-aarch64.so.1) ;;
    *) fail "drun needs $library: it would not run on another machine" ;;
  esac
done

# Without this machine's environment, too.
env -i "$drun" --version
env -i "$scratch/root/usr/bin/drun-launch" --dry-run train.py | grep -q -- --local-rank=0 ||
  fail "drun-launch does not keep the older contract"
for program in drun drun-launch drun-store drunctl; do
  for file in "bash-completion/completions/$program" "zsh/vendor-completions/_$program" \
    "fish/vendor_completions.d/$program.fish"; do
    [ -s "$scratch/root/usr/share/$file" ] || fail "$file is missing"
  done
  [ "$program" = drun-launch ] || [ -s "$scratch/root/usr/share/man/man1/$program.1" ] ||
    fail "the manual page of $program is missing"
done
for file in README.md LICENSE docs/index.md docs/overview.svg docs/timeline.png docs/migrating/from-torchrun.md examples/allreduce/CMakeLists.txt; do
  [ -s "$scratch/root/usr/share/doc/drun/$file" ] || fail "the document $file is missing"
done
hello=$scratch/root/usr/share/doc/drun/examples/shell/hello.sh
[ -x "$hello" ] || fail "the examples must stay executable"
[ "$("$drun" --nproc-per-node 2 "$hello" | sort | head -n 1)" = \
  "hello from rank 0 of 2 (local rank 0 on node 0)" ] || fail "the packaged example does not run"
[ -e "$scratch/root/usr/include/drun/store/client.hpp" ] || fail "libdrun-dev has no headers"
