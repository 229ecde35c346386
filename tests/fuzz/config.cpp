// leatd's configuration: any text is a Config, or one line that names the file. A Config is deployed on two cores.
#include "engine/daemon/configuration/config.h"

#include "engine/daemon/deployment/deployment.h"
#include "tests/fuzz/harness.h"

namespace leat::fuzz {

std::vector<std::string> seeds() {
  return {R"([daemon]
log_level = "error"
[limits]
requests = 64
batch_timeout_ms = 100
[limits.user]
sessions = 4
priority = "normal"
overload = ["latest", "fifo"]
[workers]
sandbox = "devices"
max_backoff_ms = 20
[policy]
preset = "pard"
window_ms = 2000
[[partition]]
name = "p"
kind = "emulated"
count = 3
[[partition]]
name = "c"
cores = "0-1"
[[application]]
name = "a"
slo_ms = 50
rate_rps = 10.5
weight = 2
  [[application.module]]
  name = "first"
  latency_ms = [0.5, 0.75]
  batch = 2
  labels = [["x", "y"], ["z"]]
  options = { key = "value" }
  [[application.module]]
  name = "second"
  after = ["first"]
  latency_ms = [1]
  fan_out_cap = 4
  items_per_request = 2.5
  [[application.stream]]
  period_ms = 33
  count = 4
  max_age_ms = 66
  priority = "high"
)",
          R"(cpu = "auto"
[[application]]
name = "b"
slo_ms = 1
[[application.module]]
name = "m"
model = "m.onnx"
preprocess = "letterbox mean=0.5"
postprocess = "boxes stride=8"
)"};
}

}  // namespace leat::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leat;
  constexpr std::uint32_t kCores[] = {0, 1};
  const std::string file = "/nowhere/fuzz.toml";
  const auto config = daemon::parse_config({reinterpret_cast<const char*>(data), size}, file);
  if (!config.ok()) {
    fuzz::insist(config.error().rfind(file, 0) == 0, "an error that does not name the file");
    return 0;
  }
  auto deployment = daemon::deploy(*config, kCores);
  if (!deployment.ok()) return 0;
  fuzz::insist(deployment->setups.size() == deployment->partitions.size(), "a partition without a setup");
  const std::vector<worker::Ready> ready(deployment->setups.size());
  if (daemon::complete_plan(*config, *deployment, ready).ok()) (void)daemon::unschedulable(*deployment);
  return 0;
}
