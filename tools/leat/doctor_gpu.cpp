#include "tools/leat/doctor_gpu.h"

#include <chrono>

#include "engine/daemon/deployment/device_pairs.h"
#include "engine/exec/onnx/onnx_device.h"
#include "planner/child/solver_process.h"
#include "tools/base/json/json.h"
#include "tools/base/subprocess/program.h"
#include "tools/base/subprocess/run.h"
#include "tools/leat/library_search.h"

namespace leat::tools {
namespace {

// The probe's groups end by themselves, within minutes.
constexpr std::chrono::seconds kProviderLimit{60}, kProbeLimit{1800};

Finding note(std::string found, std::string cause, std::string cure) {
  return {.subject = kGpuProbeSubject,
          .health = Health::note,
          .found = std::move(found),
          .cause = std::move(cause),
          .cure = std::move(cure)};
}

bool is_yes(const Json& answer) { return answer.at("answer") == "yes"; }

// Mechanisms that hand device memory over between two processes, without MPS or between its clients.
std::string mechanisms(const Json& answers, const char* mps) {
  std::string names;
  for (const Json& answer : answers) {
    if (answer.at("id") != "handover.works" || !is_yes(answer)) continue;
    const Json& conditions = answer.at("conditions");
    if (conditions.value("signal", "") != "message" || conditions.value("mps", "") != mps) continue;
    names += (names.empty() ? "" : ", ") + conditions.at("mechanism").get<std::string>();
  }
  return names.empty() ? "none" : names;
}

// "yes", "no" or "not asked"; yes if any answer of this id is.
std::string any(const Json& answers, const char* id) {
  std::string result = "not asked";
  for (const Json& answer : answers) {
    if (answer.at("id") != id) continue;
    if (is_yes(answer)) return "yes";
    if (answer.at("answer") == "no") result = "no";
  }
  return result;
}

}  // namespace

Finding finding_from_probe(std::string_view report) {
  try {
    const Json json = Json::parse(report);
    if (const auto problem = json.at("problem").get<std::string>(); !problem.empty()) {
      return note("could not ask the GPU", problem,
                  "install the driver's libraries of the same version as its kernel module");
    }
    const Json& answers = json.at("answers");
    Finding finding{.subject = kGpuProbeSubject};
    finding.found =
        "hand-over in place: " + mechanisms(answers, "off") + "; between MPS clients: " + mechanisms(answers, "on") +
        "; MPS: " + any(answers, "mps.client") + "; MIG: " + any(answers, "devices.mig") +
        "; client frames in place: " + any(answers, "frames.register") + "; cuDNN: " + any(answers, "cudnn.found");
    int failed = 0;
    for (const Json& answer : answers) {
      if (answer.at("answer") != "failed") continue;
      if (failed++ == 0)
        finding.cause = answer.at("id").get<std::string>() + ": " + answer.at("note").get<std::string>();
    }
    if (failed > 0) {
      finding.health = Health::note;
      finding.cause = std::to_string(failed) + " of " + std::to_string(answers.size()) +
                      " questions broke; the first: " + finding.cause;
      finding.cure = "run leat-gpu-probe for the whole report; is the driver of the same version as its libraries?";
    }
    return finding;
  } catch (const JsonError& problem) {
    return note("its report cannot be read", problem.what(), "install leat and leat-gpu-probe of the same version");
  }
}

Finding cuda_provider() {
  Finding finding{.subject = "CUDA provider"};
  const auto tried = subprocess::run_function(
      [] {
        const Status status = exec::try_cuda_provider();
        return status.ok() ? std::string("loads") : status.error();
      },
      {.limit = kProviderLimit});  // what libraries say meanwhile is kept apart, and forgotten
  if (!tried.ok()) return finding.found = "not asked: " + tried.error(), finding;
  std::string text = tried->output;
  if (text == "loads") return finding.found = "loads", finding;
  if (text.empty()) text = "it ended the process that tried";
  if (find_gpus().count == 0) {
    finding.found = "does not load, and there is no GPU to need it: " + text;
    return finding;
  }
  finding.health = Health::note;
  finding.found = "does not load; GPU partitions cannot serve";
  finding.cause = text;
  finding.cure = "see the cause; tools/setup --gpu brings the provider, not CUDA's own libraries";
  return finding;
}

Finding finding_from_pairs(std::string_view json) {
  Finding finding{.subject = "between GPUs"};
  const auto pairs = daemon::parse_device_pairs(json);
  if (!pairs.ok()) {
    finding.health = Health::note;
    finding.found = "could not be asked";
    finding.cause = pairs.error();
    finding.cure = "run leat-gpu peers";
    return finding;
  }
  for (const daemon::DevicePair& p : *pairs) {
    finding.found += (finding.found.empty() ? "" : "; ") + p.from + " to " + p.to + ": " + daemon::text_of(p);
    // One GPU whose processes cannot share its memory is no matter of wiring.
    if (p.from != p.to || p.way == daemon::Handover::in_place) continue;
    finding.health = Health::note;
    finding.cause = "on " + p.from + " one process does not see what another writes: " + p.why_not;
    finding.cure = "features go through the host there; is the driver of the same version as its libraries?";
  }
  if (pairs->empty()) finding.found = "no device";
  return finding;
}

Finding device_pairs() {
  if (find_gpus().count == 0) return {.subject = "between GPUs", .found = "not asked, as there is no GPU"};
  constexpr std::chrono::milliseconds kLimit{300'000};
  const planner::SolverRun run = planner::run_solver({planner::gpu_tool_path(), "peers", "--json"}, kLimit);
  return finding_from_pairs(run.end == planner::SolverRun::End::done ? run.output : run.message);
}

Finding gpu_probe() {
  if (find_gpus().count == 0) return {.subject = kGpuProbeSubject, .found = "not asked, as there is no GPU"};
  const std::string program = subprocess::named_or_near("LEAT_GPU_PROBE", "leat-gpu-probe");
  const auto asked =
      subprocess::run({.words = {program, "--quick", "--only", "devices,handover,frames,cudnn", "--json"}},
                      {.limit = kProbeLimit, .errors = subprocess::Errors::callers});
  if (!asked.ok() || asked->output.empty()) {
    return note("could not be asked", program + " cannot be started",
                "build with a CUDA toolkit, or name the program with LEAT_GPU_PROBE; without it, hand-over goes "
                "through the host");
  }
  return finding_from_probe(asked->output);
}

}  // namespace leat::tools
