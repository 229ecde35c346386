// Every counter and event of the counters segment and every histogram of it is written by somebody: what is always
// empty is no figure. (All are read: `leat top --once --json` prints the tables whole.)
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "shm/src/counters/counters.h"
#include "tests/rules/source_files.h"

namespace {

using leat::shm::RecordKind;
using leat::test::kRoot;

std::string product() {
  std::string all;
  for (const std::string& file : leat::test::sources()) {
    if (!file.starts_with("engine/daemon/") || file.find("_test.") != std::string::npos) continue;
    std::ifstream in(kRoot / file);
    all.append(std::istreambuf_iterator<char>(in), {});
  }
  return all;
}

TEST(Counters, EachHasAWriter) {
  const std::string code = product();
  const std::vector<std::pair<RecordKind, std::string>> kKinds = {
      {RecordKind::stream, "Stream"}, {RecordKind::client, "Client"},       {RecordKind::user, "User"},
      {RecordKind::module, "Module"}, {RecordKind::partition, "Partition"}, {RecordKind::edge, "Edge"},
      {RecordKind::daemon, "Daemon"}};
  for (const auto& [kind, word] : kKinds) {
    const auto names = leat::shm::counter_names(kind);
    ASSERT_FALSE(names.empty());
    for (const auto& counter : names)
      EXPECT_TRUE(std::regex_search(code, std::regex(word + "Counter::" + std::string(counter.name) + "\\b")))
          << "nothing in engine/daemon writes " << word << "Counter::" << counter.name;
  }
}

TEST(Events, EachHasAWriter) {
  const std::string code = product();
#define X(name, value)                                                          \
  if ((value) != 0) {                                                           \
    EXPECT_TRUE(std::regex_search(code, std::regex("EventKind::" #name "\\b"))) \
        << "nothing in engine/daemon writes the event " #name;                  \
  }
  LEAT_EVENTS(X)
#undef X
}

}  // namespace
