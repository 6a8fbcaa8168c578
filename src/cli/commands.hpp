#pragma once
#include "cli/context.hpp"

namespace redlease::cli {

// Each adds one command with its options to the command line, and sets Context::action when it is the one given.

void add_run(CLI::App&, Context&);
void add_acquire(CLI::App&, Context&);
void add_renew(CLI::App&, Context&);
void add_release(CLI::App&, Context&);
void add_show(CLI::App&, Context&);
void add_ls(CLI::App&, Context&);
void add_wait(CLI::App&, Context&);
void add_break(CLI::App&, Context&);
void add_watch(CLI::App&, Context&);
void add_trace(CLI::App&, Context&);
void add_doctor(CLI::App&, Context&);
void add_bench(CLI::App&, Context&);

}  // namespace redlease::cli
