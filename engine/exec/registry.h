// Finds executors: the built-in `emulated` and `onnx`, and plug-ins loaded with dlopen, all behind the C ABI of
// executor.h. Control plane; any thread. Plug-ins stay loaded until the process ends. Errors: one line, what and what
// to do.
#pragma once

#include <string>

#include "leat/executor.h"
#include "leat/result.hpp"

namespace leat::exec {

// name: a built-in's, a plug-in's path (it holds a '/'), or NAME of an installed libleat_executor_NAME.so, looked for
// in $LEAT_PLUGINS, beside the program, in its ../lib/leat, and where the loader looks.
Result<const leat_executor*> find_executor(const std::string& name);

// The built-ins' entries, as a plug-in would export them.
const leat_executor* emulated_executor();
const leat_executor* onnx_executor();
// Of a session of onnx_executor() on a host: its next run lets go of what all of them took and none holds.
void onnx_give_back(leat_session* session) noexcept;

// For executors: writes "TEXT" into error, cut to error_bytes; returns 1.
int executor_error(char* error, size_t error_bytes, const std::string& text) noexcept;
// The value of `key` in leat_session_options::extra's key=value lines; empty when it is not there.
std::string extra_value(const char* extra, const std::string& key);

}  // namespace leat::exec
