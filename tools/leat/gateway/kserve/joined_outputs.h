// The outputs of several items, side by side: each item's are copied behind the one's before, so that its result's
// place is free for the next. Thread rule: the gateway's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "tools/leat/gateway/http/job.h"
#include "tools/leat/gateway/kserve/infer_reply.h"

namespace leat::gateway {

class JoinedOutputs {
 public:
  JoinedOutputs(HeldBytes& held, std::uint32_t items) : held_(held), items_(items) {}
  // What one item gave, in any order of items. Empty: it is kept; else why it cannot be.
  [[nodiscard]] std::string add(std::uint32_t item, const std::vector<FoundOutput>& outputs);
  // Views of what is kept here; shapes are those of one item.
  [[nodiscard]] std::vector<FoundOutput> all() const;

 private:
  struct Joined {
    FoundOutput one;
    std::string name;
    HeldMemory bytes;
  };
  HeldBytes& held_;
  const std::uint32_t items_;
  std::deque<Joined> outputs_;
};

}  // namespace leat::gateway
