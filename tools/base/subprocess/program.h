// Programs of this project as files, and this process turned into another program. Thread rule: any.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

namespace leat::subprocess {

// The program of this name in the first of `folders`, seen from the running program's, that has it; else its bare name,
// which is looked up in PATH when it is started. Where it is installed all programs stand in one folder (""); the
// others are where a build puts them.
std::string near_this_program(const std::string& name, std::initializer_list<const char*> folders = {""});

// The environment's word for a program, or else as above.
std::string named_or_near(const char* variable, const std::string& name,
                          std::initializer_list<const char*> folders = {""});

// Runs the program in this process's place, with its environment and its descriptors that are not close-on-exec.
// Returns only where that fails: why.
std::string replace_this_program(const std::vector<std::string>& words);

}  // namespace leat::subprocess
