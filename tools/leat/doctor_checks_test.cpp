#include "tools/leat/doctor_checks.h"

#include <gtest/gtest.h>

#include <set>

#include "tools/leat/doctor_gpu.h"
#include "tools/leat/doctor_workers.h"

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

TEST(Doctor, WorkersThatAreRootAreANote) {
  const Finding root = finding_from_status(R"({"workers_are_root": true})", "/s");
  EXPECT_EQ(root.health, Health::note);
  EXPECT_NE(root.cure.find("[workers] user"), std::string::npos) << root.cure;
  for (const char* text : {"", R"({"workers_are_root": false})", "{}", "nothing"})
    EXPECT_EQ(finding_from_status(text, "/s").health, Health::good) << text;
}

std::string probe_report(const std::string& problem, const std::string& answers) {
  return R"({"leat_gpu_probe": 1, "problem": ")" + problem + R"(", "answers": [)" + answers + "]}";
}

constexpr const char* kWorks =
    R"({"id": "handover.works", "answer": "yes", "note": "", "conditions": {"mechanism": "vmm_fd", "signal": "message", "mps": "off"}},
       {"id": "handover.works", "answer": "no", "note": "", "conditions": {"mechanism": "pool", "signal": "message", "mps": "off"}},
       {"id": "mps.client", "answer": "no", "note": "", "conditions": {}})";

TEST(Doctor, SumsTheGpuProbeUp) {
  const Finding finding = finding_from_probe(probe_report("", kWorks));
  EXPECT_EQ(finding.health, Health::good);
  EXPECT_EQ(finding.found,
            "hand-over in place: vmm_fd; between MPS clients: none; MPS: no; MIG: not asked; client frames in place: "
            "not asked; "
            "cuDNN: not asked");
}

TEST(Doctor, GpuProbeThatBrokeIsANoteWithItsCause) {
  const Finding broke = finding_from_probe(probe_report(
      "", std::string(kWorks) +
              R"(, {"id": "green.complete", "answer": "failed", "note": "its process died", "conditions": {}})"));
  EXPECT_EQ(broke.health, Health::note);
  EXPECT_EQ(broke.cause, "1 of 4 questions broke; the first: green.complete: its process died");
  const Finding driverless = finding_from_probe(probe_report("no NVIDIA driver", ""));
  EXPECT_EQ(driverless.health, Health::note);
  EXPECT_EQ(driverless.cause, "no NVIDIA driver");
  for (const char* text : {"", "nothing", "[]", "{}", R"({"problem": "", "answers": [{}]})"}) {
    const Finding unreadable = finding_from_probe(text);
    EXPECT_EQ(unreadable.health, Health::note) << text;
    EXPECT_FALSE(unreadable.cure.empty()) << text;
  }
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

TEST(DoctorGpu, PairsAreOneFindingAndOneGpuThatCannotShareIsANote) {
  const auto pair = [](const char* from, const char* to, const char* way, const char* why) {
    return std::string(R"({"from": ")") + from + R"(", "to": ")" + to + R"(", "way": ")" + way +
           R"(", "gbps": 200.5, "host_gbps": 90, "why_not": ")" + why + "\"}";
  };
  const Finding good = finding_from_pairs("{\"pairs\": [" + pair("GPU-a", "GPU-b", "peer", "") + ", " +
                                          pair("GPU-b", "GPU-a", "host", "refused") + "]}");
  EXPECT_EQ(good.health, Health::good);
  EXPECT_NE(good.found.find("GPU-a to GPU-b: peer, 200 Gbit/s, host rows 90"), std::string::npos) << good.found;
  EXPECT_NE(good.found.find("host"), std::string::npos);
  const Finding bad = finding_from_pairs("{\"pairs\": [" + pair("GPU-a", "GPU-a", "host", "it maps, but") + "]}");
  EXPECT_EQ(bad.health, Health::note);
  EXPECT_NE(bad.cause.find("it maps, but"), std::string::npos);
  EXPECT_EQ(finding_from_pairs("no driver").health, Health::note);
}

// Whatever this host has: it loads, or one line says what is missing.
TEST(DoctorGpu, WhetherTheCudaProviderLoadsIsOneLine) {
  const Finding finding = cuda_provider();
  const std::string said = finding.found + finding.cause;
  EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  EXPECT_EQ(said.find("it ended the process"), std::string::npos) << said;
  if (finding.found == "loads") return;
  EXPECT_TRUE(said.find("libonnxruntime") != std::string::npos || said.find("libcu") != std::string::npos ||
              said.find("driver") != std::string::npos)
      << said;
}

}  // namespace
}  // namespace leat::tools
