// The client library's error text: one line per thread, about its last failed call.
#pragma once

#include <string>

#include "leat/leat.h"

namespace leat::shm {

leat_error fail(leat_error code, std::string text);
leat_error fail_static(leat_error code) noexcept;  // the table's text; for hot paths: allocates nothing
const char* last_error() noexcept;

}  // namespace leat::shm
