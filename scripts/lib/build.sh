# One way to build and test for all scripts. Sourced, with the current directory at the top of the project.

if command -v ninja >/dev/null; then export CMAKE_GENERATOR="${CMAKE_GENERATOR:-Ninja}"; fi
if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER="${CMAKE_CXX_COMPILER_LAUNCHER:-ccache}"; fi
jobs="${REDLEASE_JOBS:-$(nproc)}"

# A test whose server is missing fails instead of being skipped.
export REDLEASE_REQUIRE_SERVER=1

build() { # preset [cmake arguments]
  local preset=$1
  shift
  cmake --preset "$preset" --log-level=WARNING "$@" && cmake --build --preset "$preset" --parallel "$jobs"
}

build_and_test() { # preset [cmake arguments]
  build "$@" && ctest --preset "$1"
}
