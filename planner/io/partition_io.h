// A partition as plans and hosts write it.
#pragma once

#include "planner/plan.h"
#include "tools/base/documents/document.h"

namespace leat::planner {

// "kind", "class", "share", "size", "price", "watts", "memory_bytes", "host", "selector"; all but the first two may be
// left out. Its name and its device are its file's. What is wrong is told to the document.
Partition partition_from(const JsonCursor& c);

}  // namespace leat::planner
