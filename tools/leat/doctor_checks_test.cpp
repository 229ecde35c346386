#include "tools/leat/doctor_checks.h"

#include <gtest/gtest.h>

#include <set>

namespace leat::tools {
namespace {

TEST(Doctor, EveryFindingSaysWhatItFoundAndHowToCureIt) {
  std::set<std::string_view> subjects;
  for (const DoctorCheck check : doctor_checks()) {
    const Finding finding = check();
    EXPECT_TRUE(subjects.insert(finding.subject).second) << finding.subject;
    EXPECT_FALSE(finding.found.empty()) << finding.subject;
    EXPECT_EQ(finding.health == Health::good, finding.cause.empty()) << finding.subject << ": " << finding.cause;
    EXPECT_EQ(finding.health == Health::good, finding.cure.empty()) << finding.subject << ": " << finding.cure;
  }
  EXPECT_TRUE(subjects.contains("ONNX Runtime") && subjects.contains("GPU") && subjects.contains("io_uring"));
}

TEST(Doctor, ReadsKernelReleases) {
  EXPECT_TRUE(kernel_at_least("6.1.0-13-amd64", 5, 4));
  EXPECT_TRUE(kernel_at_least("5.4", 5, 4));
  EXPECT_TRUE(kernel_at_least("5.10.0", 5, 4));
  EXPECT_FALSE(kernel_at_least("5.3.99", 5, 4));
  EXPECT_FALSE(kernel_at_least("4.19.0", 5, 4));
  EXPECT_FALSE(kernel_at_least("", 5, 4));
  EXPECT_FALSE(kernel_at_least("unknown", 5, 4));
}

}  // namespace
}  // namespace leat::tools
