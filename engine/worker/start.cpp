// The worker's start: from the setup to the report that it is ready.
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "engine/exec/decode/postprocess.h"
#include "engine/exec/onnx/onnx_split.h"
#include "engine/worker/measuring/calibrate.h"
#include "engine/worker/measuring/overlap_gain.h"
#include "engine/worker/sandbox/confine.h"
#include "engine/worker/worker.h"
#include "planner/paying_batch.h"
#include "shm/src/rings/clock.h"
#include "tools/base/cores/cores.h"
#include "tools/base/subprocess/user.h"

namespace leat::worker {
namespace {

constexpr std::int64_t kTellEveryNs = 250'000'000;  // how far measuring is

// The picture that the whole model takes: what a last stage's post-processing needs to know of the first.
Status add_picture(exec::ModuleSpec& spec) {
  const auto graph = exec::OnnxGraph::read(spec.model_path);
  if (!graph.ok()) return Error{graph.error()};
  const auto shape = graph->input_shape();
  if (shape.size() != 3) return Done{};  // no picture: the module says what it misses
  spec.picture_height = static_cast<std::uint32_t>(shape[1]);
  spec.picture_width = static_cast<std::uint32_t>(shape[2]);
  return Done{};
}

// What an executor is asked to open. in, out: the features of the stage's edges; null: it starts from frames, ends with
// results.
exec::ModuleSpec spec_of(const Setup& setup, const ModuleSetup& m, exec::Device* device, const shm::FeatureView* in,
                         const shm::FeatureView* out) {
  exec::ModuleSpec spec;
  spec.name = m.application + "/" + m.name;
  spec.executor = m.executor;
  spec.model_path = m.model_path;
  spec.as = m.as;
  spec.preprocess = m.preprocess;
  spec.postprocess = m.postprocess;
  spec.labels = m.labels;
  spec.first_head = m.first_head;
  spec.batch_max = m.batch;
  spec.threads = setup.threads;
  for (const auto& l : m.latency_by_batch) spec.emulated_ns.push_back(l.p50_ns);
  spec.extra = m.extra;
  spec.first_block = m.first_block;
  spec.end_block = m.end_block;
  spec.cuts = m.cuts;
  spec.first_stage = in == nullptr;
  spec.last_stage = out == nullptr;
  spec.device = device;
  spec.host_features_out = out != nullptr && !out->on_device();
  if (in != nullptr) spec.emulated_in = in->spec().row_bytes;
  if (out != nullptr) spec.emulated_out = out->spec().row_bytes;
  return spec;
}

}  // namespace

Result<std::unique_ptr<Worker>> Worker::start(shm::Fd control, bool* device_lost) {
  std::unique_ptr<Worker> w(new Worker(std::move(control)));
  Ready ready;
  Status status = w->receive_setup();
  if (status.ok() && !w->setup_.cores.empty()) status = pin_process(w->setup_.cores);
  // Before anything is loaded and any thread started. Where the kernel does not let it, memory is near to whoever
  // touches it first.
  if (status.ok() && !w->setup_.cores.empty()) (void)bind_memory(w->setup_.cores);
  const Confinement confinement(w->setup_.sandbox, !w->setup_.device.plugin.empty());
  if (status.ok()) confinement.begin();
  if (status.ok() && !w->setup_.user.empty()) status = w->become_user();
  if (status.ok()) status = w->pin_all();
  if (status.ok()) confinement.settle();
  if (status.ok()) status = w->device_.open(w->setup_.device, ready.device);
  if (status.ok()) confinement.device_opened();
  if (status.ok()) status = w->edges_.make(w->setup_, w->device_.get(), w->control_);
  if (status.ok()) status = w->map_edges();
  if (status.ok()) status = w->open_modules(ready);
  (void)malloc_trim(0);  // what opening models took and let go of
  if (status.ok()) {
    const Status enclosed = enclose(w->setup_.sandbox);
    ready.sandbox = enclosed.ok() ? w->setup_.sandbox : Sandbox::off;
    if (!enclosed.ok()) ready.not_enclosed = enclosed.error();
  }
  if (!status.ok()) {
    *device_lost = w->device_.never_had() || w->device_.lost();
    (void)w->control_.send(encode_failed(status.error()));
    return Error{status.error()};
  }
  if (auto told = w->control_.tell(encode(ready)); !told) return Error{told.error()};
  return w;
}

Status Worker::receive_setup() {
  if (auto status = control_.wait_for_message(); !status) return status;
  auto setup = decode_setup(control_.packet);
  if (!setup.ok()) return Error{setup.error()};
  setup_ = std::move(*setup);
  std::vector<shm::Fd>& fds = control_.descriptors;
  if (fds.size() < 2 || fds.size() > 3)
    return Error{"the setup came without its channel; install leatd and leat-worker of one release"};
  auto channel = ChannelEnd::open(std::move(fds[0]), std::move(fds[1]));
  if (!channel.ok()) return Error{channel.error()};
  channel_ = std::move(*channel);
  if (fds.size() == 3) turn_ = MeasuringTurn(std::move(fds[2]));
  return receive_files();
}

// Streams may open meanwhile.
Status Worker::map_edges() {
  while (!edges_.complete()) {
    if (auto status = control_.wait_for_message(); !status) return status;
    const auto type = type_of(control_.packet);
    if (type.ok() && *type == ControlType::edge) {
      if (auto status = edges_.take(setup_, device_.get(), control_); !status) return status;
      continue;
    }
    handle_message();
    if (ending_) return Error{"leatd ended it while it started"};
  }
  return Done{};
}

// Only leatd's own code has run until now.
Status Worker::become_user() {
  if (const Status became = subprocess::become_user(setup_.user); !became)
    return Error{"cannot become the user '" + setup_.user + "' of [workers]: " + became.error()};
  // The kernel has forgotten that this process dies with leatd. If leatd is gone already, the control socket says so.
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  return Done{};
}

Status Worker::open_modules(Ready& ready) {
  for (std::uint32_t i = 0; i < setup_.modules.size(); ++i) {
    if (auto sent = control_.send(encode_opening(i)); !sent) return Error{sent.error()};
    const leat_device_usage before = device_.usage();
    if (auto status = open_module(i); !status) return status;
    const Served& served = modules_.back();
    ready.parts.push_back(served.module->parts());
    ready.tensors.push_back(served.module->tensor_shapes());
    ready.tensor_names.push_back(served.module->tensor_names());
    ready.recognised.push_back(served.module->recognised());
    ready.latency_by_batch.emplace_back();
    ready.latency_by_size.emplace_back();
    ready.overlap_permille.push_back(0);
    if (auto status = warm_and_measure(i, ready); !status)
      return Error{served.module->spec().name + ": " + status.error()};
    if (auto status = settle_overlap(i, ready); !status)
      return Error{served.module->spec().name + ": " + status.error()};
    device_.note(before, *served.module, ready.device);
  }
  if (std::ranges::none_of(modules_, [](const Served& s) { return s.module->sets() > 1; })) stream_.reset();
  if (auto status = keep_what_pays(ready); !status) return status;
  for (std::uint32_t i = 0; i < setup_.modules.size(); ++i) tell_not_finite(i);
  return Done{};
}

// On a host: what opening and measuring took goes, and what batches need is there before the first frame. Larger ones
// than those that pay are rare, and take theirs when they come.
Status Worker::keep_what_pays(const Ready& ready) {
  bool gives_back = true;
  for (std::uint32_t i = 0; i < setup_.modules.size(); ++i) {
    const ModuleSetup& m = setup_.modules[i];
    exec::Module& module = *modules_[i].module;
    if (m.executor == "emulated" || module.on_device()) continue;
    const std::vector<planner::Latency>& rows = ready.latency_by_batch[i];
    std::uint32_t most = m.batch;
    if (!rows.empty() && !m.after_fan_out)
      most = planner::paying_batch(1, static_cast<std::uint32_t>(rows.size()),
                                   [&](std::uint32_t b) { return rows[b - 1].p50_ns; });
    module.give_back();
    if (std::exchange(gives_back, false)) {
      if (auto status = warm_up(module, 1, m.after_fan_out); !status)
        return Error{module.spec().name + ": " + status.error()};
    }
    if (auto status = warm_up(module, most, m.after_fan_out); !status)
      return Error{module.spec().name + ": " + status.error()};
  }
  return Done{};
}

// Whether its batches overlap.
Status Worker::settle_overlap(std::uint32_t index, Ready& ready) {
  Served& served = modules_[index];
  if (served.module->sets() == 1) return Done{};
  if (stream_ == nullptr) {
    auto opened = exec::HostStream::open();
    if (!opened.ok()) return Error{opened.error()};
    stream_ = std::move(*opened);
  }
  std::uint32_t& permille = ready.overlap_permille.back();
  if (index < setup_.overlap_permille.size()) {
    permille = setup_.overlap_permille[index];
  } else {
    if (!served.module->on_device()) (void)turn_.take();
    const ModuleSetup& m = setup_.modules[index];
    const auto gain = measure_overlap(*served.module, *stream_, m.batch, m.after_fan_out);
    turn_.give();
    if (!gain.ok()) return Error{gain.error()};
    if (gain->pays() || setup_.overlap == Overlap::on) permille = gain->overlap_permille();
  }
  if (permille != 0 || setup_.overlap == Overlap::on) return Done{};
  served.module->keep_one_set();
  served.features.keep_one_set();
  return Done{};
}

// The file is asked for before and behind its opening where an executor opens it by its path.
Status Worker::open_module(std::uint32_t index) {
  const ModuleSetup& m = setup_.modules[index];
  const shm::FeatureView *const in = edges_.at(m.edge_in), *const out = edges_.at(m.edge_out);
  if (auto status = pin(m); !status) return status;
  exec::ModuleSpec spec = spec_of(setup_, m, device_.get(), in, out);
  // One core is the model's alone, and `emulated` takes its time asleep.
  const bool may_gain = m.executor != "emulated" && (device_.get() != nullptr || setup_.threads > 1);
  if (setup_.overlap == Overlap::on || (setup_.overlap == Overlap::measured && may_gain)) spec.sets = exec::kSets;
  if (in != nullptr && out == nullptr && m.executor != "emulated")
    if (auto status = add_picture(spec); !status) return status;
  auto module = exec::Module::open(spec);
  if (!module.ok()) {
    ask_of_all(index, module.error());
    return Error{module.error()};
  }
  if (m.executor != "onnx")
    if (auto status = pin(m); !status) return status;
  auto features = StageFeatures::open(**module, in, out, in != nullptr && setup_.edges[m.edge_in].peer);
  if (!features.ok()) return Error{features.error()};
  const auto words = exec::parse_postprocess((*module)->spec().postprocess);
  if (spec.last_stage && words.ok() && !words->outdated.empty())
    std::fprintf(stderr, "leat-worker %s: warning: %s: %s\n", setup_.partition.c_str(), spec.name.c_str(),
                 words->outdated.c_str());
  const bool has_parts = !(*module)->parts().empty();
  modules_.push_back({.module = std::move(*module), .features = std::move(*features), .has_parts = has_parts});
  return Done{};
}

Status Worker::warm_and_measure(std::uint32_t index, Ready& ready) {
  const ModuleSetup& m = setup_.modules[index];
  exec::Module& module = *modules_[index].module;
  const bool measures = setup_.calibrate && m.latency_by_batch.empty();
  // On a device every batch has run before any is measured: its first run chooses how the others run.
  if (m.executor != "emulated" && (module.on_device() || (measures && setup_.alone_only)))
    if (auto status = warm_up(module, m.batch, m.after_fan_out); !status) return status;
  if (!measures) return Done{};
  std::int64_t told_ns = shm::monotonic_ns();
  const auto tell_now_and_then = [&](std::uint32_t done, std::uint32_t of) {
    const std::int64_t now = shm::monotonic_ns();
    if (now - told_ns < kTellEveryNs) return;
    told_ns = now;
    (void)control_.tell(encode(MeasuringProgress{done, of}));
  };
  if (!module.on_device()) (void)turn_.take();
  auto measured = calibrate(module, setup_.alone_only ? 1 : m.batch, m.after_fan_out, tell_now_and_then);
  turn_.give();
  if (!measured.ok()) return Error{measured.error()};
  ready.undisturbed_percent = std::min(ready.undisturbed_percent, measured->undisturbed_percent);
  ready.latency_by_batch.back() = std::move(measured->latency_by_batch);
  ready.latency_by_size.back() = std::move(measured->latency_by_size);
  return Done{};
}

// Where a module misses words, leatd hears in one round what the others miss too.
void Worker::ask_of_all(std::uint32_t failed, const std::string& why) {
  const auto question = [](const ModuleSetup& m) {
    const bool open = m.executor == "onnx" && (m.preprocess.empty() || m.postprocess.empty());
    if (!open) return std::string();
    const auto known = exec::recognise(m.model_path, {m.preprocess, m.postprocess, !m.labels.empty()});
    return known.ok() ? std::string() : "module '" + m.application + "/" + m.name + "': " + known.error();
  };
  if (question(setup_.modules[failed]).empty()) return;
  (void)control_.send(encode_failed(why));
  for (std::uint32_t i = failed + 1; i < setup_.modules.size(); ++i) {
    const std::string line = question(setup_.modules[i]);
    if (line.empty()) continue;
    (void)control_.send(encode_opening(i));
    (void)control_.send(encode_failed(line));
  }
}

}  // namespace leat::worker
