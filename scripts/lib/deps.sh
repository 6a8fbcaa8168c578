# Installs what is missing, and asks nobody for anything when all is there. Sourced.

# package, and the command that makes it unnecessary ("-": only the package itself will do)
build_packages="g++:g++ cmake:cmake ninja-build:ninja libhiredis-dev:- libssl-dev:-"
tool_packages="libcli11-dev:- libfmt-dev:- nlohmann-json3-dev:-"
server_packages="redis-server:redis-server"
test_packages="ccache:ccache binutils:nm libgtest-dev:- libbenchmark-dev:- openssl:openssl prometheus:promtool mandoc:mandoc zsh:zsh"
example_packages="libsqlite3-dev:-"
clang_packages="clang:clang++"
lint_packages="clang:clang++ clang-tidy:clang-tidy clang-format:clang-format"

installed() { # package command
  if [ "$2" != - ] && command -v "$2" >/dev/null; then return 0; fi
  [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null)" = "ii " ]
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

install_missing() { # "package:command ..." ...
  local pair missing=""
  for pair in $*; do
    installed "${pair%%:*}" "${pair#*:}" || missing="$missing ${pair%%:*}"
  done
  [ -n "$missing" ] || return 0
  if ! command -v apt-get >/dev/null; then
    echo "These are missing, and there is no apt-get to install them:$missing" >&2
    return 1
  fi
  if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
    echo "These are missing:$missing. Install them, or run this as root." >&2
    return 1
  fi
  echo "Installing:$missing"
  # The tests start servers of their own: none is to run from the package.
  local policy=/usr/sbin/policy-rc.d ours=""
  if [ ! -e "$policy" ]; then
    ours=1
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
    as_root chmod 755 "$policy"
  fi
  local result=0
  { as_root apt-get update -qq && as_root env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y -qq --no-install-recommends $missing >/dev/null; } || result=$?
  [ -z "$ours" ] || as_root rm -f "$policy"
  if [ "$result" -ne 0 ]; then
    echo "apt-get could not install:$missing" >&2
    return "$result"
  fi
  local service
  for service in redis-server prometheus; do
    case "$missing " in
      *" $service "*) if [ -d /run/systemd/system ]; then as_root systemctl disable -q "$service"; fi ;;
    esac
  done
}
