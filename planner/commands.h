// The mains of leat-plan's sub-commands (command.h).
#pragma once

namespace leat::planner {

int run_check(int argc, char** argv);
int run_harpagon(int argc, char** argv);

}  // namespace leat::planner
