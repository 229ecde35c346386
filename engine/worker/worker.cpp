#include "engine/worker/worker.h"

#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "engine/exec/onnx/onnx_split.h"
#include "engine/worker/calibrate.h"
#include "engine/worker/sandbox/confine.h"
#include "shm/src/protocol/protocol.h"
#include "shm/src/rings/clock.h"
#include "tools/base/cores/cores.h"

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

}  // namespace

// ---- start ----

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
  if (status.ok()) confinement.settle();
  if (status.ok()) status = w->open_device(ready);
  if (status.ok()) confinement.device_opened();
  if (status.ok()) status = w->make_edges();
  if (status.ok()) status = w->map_edges();
  if (status.ok()) status = w->open_modules(ready);
  if (status.ok()) {
    const Status enclosed = enclose(w->setup_.sandbox);
    ready.sandbox = enclosed.ok() ? w->setup_.sandbox : Sandbox::off;
    if (!enclosed.ok()) ready.not_enclosed = enclosed.error();
  }
  if (!status.ok()) {
    *device_lost = w->never_had_device_ || w->exit_status() == kDeviceLost;
    (void)shm::send_bytes(w->control_.get(), encode_failed(status.error()), {});
    return Error{status.error()};
  }
  if (auto told = w->tell(encode(ready)); !told) return Error{told.error()};
  return w;
}

Status Worker::tell(const std::vector<std::byte>& packet) const {
  ssize_t n;
  do n = ::send(control_.get(), packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  while (n < 0 && errno == EINTR);
  if (n >= 0) return Done{};
  return Error{std::string("cannot send a control message: ") + std::strerror(errno)};
}

Status Worker::next_message() {
  std::string text;
  pollfd ready{control_.get(), POLLIN, 0};
  while (poll(&ready, 1, -1) < 0 && errno == EINTR) {
  }
  fds_.clear();
  if (shm::receive(control_.get(), true, &packet_, &fds_, &text) != shm::Got::message)
    return Error{"leatd closed the control socket before the setup came " + text};
  ++messages_;
  return Done{};
}

Status Worker::receive_setup() {
  if (auto status = next_message(); !status) return status;
  auto setup = decode_setup(packet_);
  if (!setup.ok()) return Error{setup.error()};
  setup_ = std::move(*setup);
  if (fds_.size() != 2)
    return Error{"the setup came without its channel; install leatd and leat-worker of one release"};
  constexpr ChannelLayout kLayout = channel_layout();
  auto mapping = shm::Mapping::map(fds_[0].get(), kLayout.bytes, shm::Access::read_write, true);
  if (!mapping.ok()) return Error{mapping.error()};
  channel_ = std::move(*mapping);
  bell_ = Bell(std::move(fds_[1]));
  dispatches_ = {channel_.at<DispatchCell>(kLayout.dispatch_cells), kDispatchRing,
                 channel_.at<shm::IndexLine>(kLayout.dispatch_index)};
  reports_ = {channel_.at<ReportCell>(kLayout.report_cells), kReportRing,
              channel_.at<shm::IndexLine>(kLayout.report_index)};
  sleep_ = channel_.at<shm::SleepWord>(kLayout.worker_sleep);
  daemon_waker_ = shm::Waker(channel_.at<shm::SleepWord>(kLayout.daemon_sleep));
  pools_.resize(kMaxPools);
  return receive_files();
}

Status Worker::open_device(Ready& ready) {
  const DeviceSetup& wanted = setup_.device;
  if (wanted.plugin.empty()) return Done{};
  auto device = exec::Device::open(wanted.plugin, wanted.uuid, &never_had_device_);
  if (!device.ok()) return Error{device.error()};
  device_ = std::move(*device);
  const leat_device_info& info = device_->info();
  ready.device.name = info.name;
  ready.device.multiprocessors = info.multiprocessors;
  ready.device.memory_bytes = info.memory_bytes;
  if (info.multiprocessors < wanted.multiprocessors_least || info.multiprocessors > wanted.multiprocessors_most)
    return Error{"sees " + std::to_string(info.multiprocessors) + " multiprocessors of " + std::string(info.name) +
                 ", its share has " + std::to_string(wanted.multiprocessors_least) + " to " +
                 std::to_string(wanted.multiprocessors_most) +
                 "; is it a client of leatd's own MPS daemon? see leatd's log"};
  return Done{};
}

leat_device_usage Worker::usage() const {
  leat_device_usage out{};
  if (device_) device_->note(device_->api()->usage(device_->handle(), &out, nullptr, 0));
  return out;
}

// After a module was opened and warmed.
void Worker::note_device(const leat_device_usage& before, const exec::Module& module, Ready& ready) {
  if (!device_) return;
  const leat_device_usage now = usage();
  const std::uint64_t own = now.allocated_bytes - std::min(now.allocated_bytes, before.allocated_bytes),
                      taken = before.free_bytes - std::min(before.free_bytes, now.free_bytes);
  const bool provider = device_->info().has_provider != 0;
  ready.device.modules.push_back(
      {.graphs = module.graphs(), .bytes = own, .provider_bytes = provider ? taken - std::min(taken, own) : 0});
  ready.device.memory = memory_ = {now.allocated_bytes, now.imported_bytes, now.pinned_bytes};
}

void Worker::report_memory() {
  const leat_device_usage now = usage();
  const DeviceMemory memory{now.allocated_bytes, now.imported_bytes, now.pinned_bytes};
  if (memory == memory_) return;
  memory_ = memory;
  (void)tell(encode(memory));  // leatd gone: the loop notices
}

// What others wait for comes before what this one waits for: makers of two edges may each read the other's.
Status Worker::make_edges() {
  edges_.resize(setup_.edges.size());
  for (std::uint32_t i = 0; i < setup_.edges.size(); ++i) {
    const EdgeSetup& e = setup_.edges[i];
    if (!e.make) continue;
    auto memory = device_->allocate(e.spec.bytes(), true);
    if (!memory.ok()) return Error{memory.error()};
    auto fd = device_->export_memory(*memory);
    if (!fd.ok()) return Error{fd.error()};
    const shm::Fd descriptor(*fd);
    const int fds[] = {descriptor.get()};
    if (auto sent = shm::send_bytes(control_.get(), encode_edge_made(i), fds); !sent) return sent;
    edges_[i] = shm::FeatureView::on_device(e.spec, memory->data());
    edge_memory_.push_back(std::move(*memory));
  }
  return Done{};
}

Status Worker::take_edge(shm::Fd fd, std::uint32_t index) {
  const EdgeSetup& e = setup_.edges[index];
  if (e.device) {
    auto memory = device_->import_memory(fd.get(), e.spec.bytes());
    if (!memory.ok()) return Error{memory.error()};
    edges_[index] = shm::FeatureView::on_device(e.spec, memory->data());
    edge_memory_.push_back(std::move(*memory));
    return Done{};
  }
  auto view = shm::FeatureView::map(e.spec, std::move(fd), e.writes ? shm::Access::read_write : shm::Access::read_only);
  if (!view.ok()) return Error{view.error()};
  edges_[index] = std::move(*view);
  if (device_ == nullptr) return Done{};
  // The device copies to and from these rows. Without pinning it still does, more slowly.
  if (auto pinned = device_->register_host(edges_[index]->memory().data(), edges_[index]->memory().size(), !e.writes);
      !pinned)
    std::fprintf(stderr, "leat-worker %s: features are not pinned: %s\n", setup_.partition.c_str(),
                 pinned.error().c_str());
  return Done{};
}

// Streams may open meanwhile.
Status Worker::map_edges() {
  while (std::any_of(edges_.begin(), edges_.end(), [](const auto& e) { return !e.has_value(); })) {
    if (auto status = next_message(); !status) return status;
    const auto type = type_of(packet_);
    if (!type.ok() || *type != ControlType::edge) {
      obey(packet_, fds_);
      if (ending_) return Error{"leatd ended it while it started"};
      continue;
    }
    const auto index = decode_edge(packet_);
    if (!index.ok() || *index >= edges_.size() || edges_[*index] || fds_.size() != 1)
      return Error{"the features of an edge did not come; install leatd and leat-worker of one release"};
    if (auto status = take_edge(std::move(fds_[0]), *index); !status) return status;
  }
  return Done{};
}

// Only leatd's own code has run until now.
Status Worker::become_user() {
  const auto trouble = [this](const std::string& what) {
    return Error{"cannot become the user '" + setup_.user + "' of [workers]: " + what};
  };
  const passwd* user = getpwnam(setup_.user.c_str());
  if (user == nullptr) return trouble("there is no such user; make it, or name another");
  if (user->pw_uid == geteuid()) return Done{};
  if (initgroups(user->pw_name, user->pw_gid) != 0 || setresgid(user->pw_gid, user->pw_gid, user->pw_gid) != 0 ||
      setresuid(user->pw_uid, user->pw_uid, user->pw_uid) != 0)
    return trouble(std::string(std::strerror(errno)) + "; start leatd as root, or leave the key out");
  // The kernel has forgotten that this process dies with leatd. If leatd is gone already, the control socket says so.
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  return Done{};
}

Status Worker::open_modules(Ready& ready) {
  const auto edge = [this](std::uint32_t i) { return i == kNoEdge ? nullptr : &*edges_[i]; };
  for (const auto& m : setup_.modules) {
    const auto index = static_cast<std::uint32_t>(modules_.size());
    if (auto sent = shm::send_bytes(control_.get(), encode_opening(index), {}); !sent) return Error{sent.error()};
    if (auto status = pin(m); !status) return status;
    const shm::FeatureView* const in = edge(m.edge_in);
    const shm::FeatureView* const out = edge(m.edge_out);
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
    spec.threads = setup_.threads;
    for (const auto& l : m.latency_by_batch) spec.emulated_ns.push_back(l.p50_ns);
    spec.extra = m.extra;
    spec.first_block = m.first_block;
    spec.end_block = m.end_block;
    spec.cuts = m.cuts;
    spec.first_stage = in == nullptr;
    spec.last_stage = out == nullptr;
    spec.device = device_.get();
    spec.host_features_out = out != nullptr && !out->on_device();
    if (in != nullptr) spec.emulated_in = in->spec().row_bytes;
    if (out != nullptr) spec.emulated_out = out->spec().row_bytes;
    if (in != nullptr && out == nullptr && m.executor != "emulated") {
      if (auto status = add_picture(spec); !status) return status;
    }
    const leat_device_usage before = usage();
    auto module = exec::Module::open(spec);
    if (!module.ok()) {
      ask_of_all(index, module.error());
      return Error{module.error()};
    }
    if (m.executor != "onnx")
      if (auto status = pin(m); !status) return status;
    modules_.push_back(std::move(*module));
    exec::Module& opened = *modules_.back();
    auto features = StageFeatures::open(opened, in, out, in != nullptr && setup_.edges[m.edge_in].peer);
    if (!features.ok()) return Error{features.error()};
    features_.push_back(std::move(*features));
    ready.parts.push_back(opened.parts());
    ready.tensors.push_back(opened.tensor_shapes());
    ready.recognised.push_back(opened.recognised());
    has_parts_.push_back(!ready.parts.back().empty());
    said_squeezed_.push_back(false);
    ready.latency_by_batch.emplace_back();
    ready.latency_by_size.emplace_back();
    const bool measures = setup_.calibrate && m.latency_by_batch.empty();
    // On a device every batch has run before any is measured: its first run chooses how the others run.
    if (m.executor != "emulated" && (!measures || setup_.alone_only || opened.on_device())) {
      if (auto status = warm_up(opened, m.batch, m.after_fan_out); !status)
        return Error{spec.name + ": " + status.error()};
    }
    if (measures) {
      std::int64_t told_ns = shm::monotonic_ns();
      const auto tell_now_and_then = [&](std::uint32_t done, std::uint32_t most) {
        const std::int64_t now = shm::monotonic_ns();
        if (now - told_ns < kTellEveryNs) return;
        told_ns = now;
        (void)tell(encode(MeasuringProgress{done, most}));
      };
      auto measured = calibrate(opened, setup_.alone_only ? 1 : m.batch, m.after_fan_out, tell_now_and_then);
      if (!measured.ok()) return Error{spec.name + ": " + measured.error()};
      ready.undisturbed_percent = std::min(ready.undisturbed_percent, measured->undisturbed_percent);
      ready.latency_by_batch.back() = std::move(measured->latency_by_batch);
      ready.latency_by_size.back() = std::move(measured->latency_by_size);
    }
    note_device(before, opened, ready);
  }
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
  (void)shm::send_bytes(control_.get(), encode_failed(why), {});
  for (std::uint32_t i = failed + 1; i < setup_.modules.size(); ++i) {
    const std::string line = question(setup_.modules[i]);
    if (line.empty()) continue;
    (void)shm::send_bytes(control_.get(), encode_opening(i), {});
    (void)shm::send_bytes(control_.get(), encode_failed(line), {});
  }
}

// ---- control ----

bool Worker::read_control(bool blocking) {
  std::string text;
  fds_.clear();
  if (blocking) {
    pollfd ready{control_.get(), POLLIN, 0};
    while (poll(&ready, 1, -1) < 0 && errno == EINTR) {
    }
  }
  switch (shm::receive(control_.get(), false, &packet_, &fds_, &text)) {
    case shm::Got::message:
      ++messages_;
      obey(packet_, fds_);
      return true;
    case shm::Got::nothing:
      return false;
    case shm::Got::closed:
    case shm::Got::broken:
    case shm::Got::descriptors:
      ending_ = true;  // leatd is gone
      return false;
  }
  return false;
}

void Worker::obey(const std::vector<std::byte>& packet, std::vector<shm::Fd>& fds) {
  const auto type = type_of(packet);
  if (type.ok() && *type == ControlType::stop) {
    ending_ = true;
    return;
  }
  Status status =
      Error{"leatd sent a message this worker does not understand; install leatd and leat-worker of one release"};
  if (type.ok() && *type == ControlType::add_pool) {
    const auto add = decode_add_pool(packet);
    status = add.ok() ? add_pool(*add, fds) : Status(Error{add.error()});
  } else if (type.ok() && *type == ControlType::forget_pool) {
    const auto forget = decode_forget_pool(packet);
    if (forget.ok() && forget->pool < pools_.size()) {
      if (pools_[forget->pool].generation == forget->generation) forget_pool(pools_[forget->pool]);
      report_memory();
      return;
    }
  }
  if (type.ok() && *type == ControlType::measure) {
    const auto what = decode_measure(packet);
    status = what.ok() ? begin_measuring(*what) : Status(Error{what.error()});
  }
  if (!status.ok()) complain(status.error());
}

void Worker::complain(std::string_view text) {
  const std::string line = complaints_.line(shm::monotonic_ns(), std::string(text));
  if (!line.empty()) std::fprintf(stderr, "leat-worker %s: %s\n", setup_.partition.c_str(), line.c_str());
}

Status Worker::add_pool(const AddPool& add, std::vector<shm::Fd>& fds) {
  if (add.pool >= pools_.size() || fds.size() != 2)
    return Error{"leatd sent a pool this worker cannot take; install leatd and leat-worker of one release"};
  auto view = shm::StreamView::map_for_worker(add.spec, std::move(fds[0]), std::move(fds[1]));
  if (!view.ok()) return Error{view.error()};
  Pool& pool = pools_[add.pool];
  forget_pool(pool);
  pool.view = std::move(*view);
  pool.generation = add.generation;
  pool.there = true;
  if (device_ == nullptr) return Done{};
  // Once for all frames of the stream. What cannot be pinned is uploaded frame by frame.
  const auto frames = pool.view.frames();
  const Status pinned = device_->register_host(frames.data(), frames.size(), true);
  pool.registered = pinned.ok();
  report_memory();
  return pinned;
}

// No batch on the device's stream reads it any more: each was waited for.
void Worker::forget_pool(Pool& pool) noexcept {
  if (pool.registered) device_->unregister_host(pool.view.frames().data());
  pool = Pool{};
}

// ---- batches ----

void Worker::run() {
  shm::WaitPolicy policy;
  policy.mode = setup_.yields != 0 ? shm::WaitMode::yield : shm::WaitMode::park;
  policy.yields = setup_.yields;
  shm::Waiter waiter(policy);
  while (!ending_) {
    if (take_batch()) {
      if (measuring_ != nullptr) give_up_measuring(100);
      waiter.reset();
    } else if (measuring_ != nullptr) {
      measure_on();
      waiter.reset();
    } else if (waiter.should_park(false)) {
      park();
      waiter.reset();
    }
  }
}

bool Worker::take_batch() {
  std::array<DispatchCell, kMaxBatch> cells;
  if (!dispatches_.pop(cells[0])) return false;
  const std::uint32_t count = cells[0].count;
  // The daemon publishes a batch's cells one after the other; the rest is there or about to be.
  for (std::uint32_t i = 1; i < count; ++i)
    while (!dispatches_.pop(cells[i])) {
    }
  while (!ending_ && static_cast<std::int32_t>(cells[0].control - messages_) > 0) (void)read_control(true);
  if (!ending_) run_batch(std::span(cells.data(), count));
  return true;
}

void Worker::prepare(const DispatchCell& cell, exec::Item& item, exec::ItemReport& report) {
  Pool* pool = cell.pool < pools_.size() ? &pools_[cell.pool] : nullptr;
  report = {};
  if (pool == nullptr || !pool->there || pool->generation != cell.pool_generation) {
    report.reason = Reason::partition_lost;  // its memory could not be mapped here
    return;
  }
  const shm::PoolLayout& layout = pool->view.layout();
  item = {};
  for (std::uint32_t p = 0; p < layout.planes; ++p) {
    item.frame.planes[p] = pool->view.plane(cell.slot, p);
    item.frame.strides[p] = layout.strides[p];
  }
  item.frame.format = pool->view.spec().format;
  item.frame.width = pool->view.spec().width;
  item.frame.height = pool->view.spec().height;
  item.frame.bytes = layout.frame_bytes;
  item.frame.tensors = pool->view.spec().tensors;
  item.frame.tensor_count = pool->view.spec().tensor_count;
  item.result = pool->view.writable_result(cell.slot);
  if (has_parts_[cell.module] && layout.result_stride > sizeof(leat_result))
    item.parts = exec::parts_of(item.result, setup_.modules[cell.module].index);
  item.rows = cell.items;
  // Behind a detector an item is one of its detections; behind anything else it is the frame again.
  const bool crop = setup_.modules[cell.module].after_fan_out && item.result->kind == LEAT_RESULT_DETECTIONS;
  item.detection = crop ? static_cast<std::int32_t>(cell.item) : -1;
}

void Worker::run_batch(std::span<const DispatchCell> cells) {
  BatchNumbers numbers{.started_ns = shm::monotonic_ns()};
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < cells.size(); ++i) {
    prepare(cells[i], items_[count], item_reports_[count]);
    task_reports_[i] = {static_cast<std::uint8_t>(item_reports_[count].reason), 0};
    if (item_reports_[count].reason != Reason::none) continue;
    task_of_[count++] = static_cast<std::uint16_t>(i);
  }
  exec::Module& module = *modules_[cells[0].module];
  StageFeatures& features = features_[cells[0].module];
  if (features.any() && count < cells.size()) {  // its rows are fixed, so that one task missing would shift the others
    for (TaskReport& r : task_reports_) r.reason = static_cast<std::uint8_t>(Reason::partition_lost);
    count = 0;
  }
  if (count != 0) {
    const std::span items(items_.data(), count);
    const std::span reports(item_reports_.data(), count);
    if (!module.run(items, reports, features.input(cells, &numbers.rows_copied), features.output(cells)))
      complain(module.error());
    if (device_ && device_->lost()) {  // this batch is answered when leatd sees how the process ended
      ending_ = true;
      return;
    }
    const ModuleSetup& setup = setup_.modules[cells[0].module];
    for (std::uint32_t i = 0; i < count; ++i) {
      numbers.pixel_bytes_copied += reports[i].pixel_bytes_copied;
      if (reports[i].squeezed != 0) {
        ++numbers.squeezed;
        say_squeezed(cells[0].module, reports[i].squeezed);
      }
      // Workers of modules side by side may write the same at once.
      if (items_[i].detection < 0 && setup.edge_out == kNoEdge)
        shm::atomic_ref(items_[i].result->model_version).store(setup.version, std::memory_order_relaxed);
      const bool detections = items_[i].result->kind == LEAT_RESULT_DETECTIONS && items_[i].detection < 0;
      task_reports_[task_of_[i]] = {static_cast<std::uint8_t>(reports[i].reason),
                                    static_cast<std::uint8_t>(detections ? std::min(reports[i].fan_out, 255u) : 1u)};
    }
  }
  numbers.ended_ns = shm::monotonic_ns();
  send_report(cells, numbers);
}

// Once for each module, since from then on the counter tells.
void Worker::say_squeezed(std::uint32_t module, std::uint32_t width) {
  if (said_squeezed_[module]) return;
  said_squeezed_[module] = true;
  const ModuleSetup& m = setup_.modules[module];
  const std::uint32_t widest = modules_[module]->sizes().back().width;
  std::fprintf(
      stderr,
      "leat-worker %s: warning: %s/%s: a picture that is %u pixels wide at its model's height was squeezed into "
      "%u, the widest that preprocess allows, and may be read wrongly; write wide=split for text, wide=start for "
      "a model that says which way up it is, or more widths= (further ones are counted: squeezed in leat top)\n",
      setup_.partition.c_str(), m.application.c_str(), m.name.c_str(), width, widest);
}

void Worker::send_report(std::span<const DispatchCell> cells, const BatchNumbers& numbers) {
  ReportCell cell;
  cell.batch = cells[0].batch;
  cell.batch_generation = cells[0].batch_generation;
  cell.stage = cells[0].stage;
  cell.count = static_cast<std::uint16_t>(cells.size());
  cell.started_ns = numbers.started_ns;
  cell.ended_ns = numbers.ended_ns;
  cell.pixel_bytes_copied = numbers.pixel_bytes_copied;
  cell.rows_copied = numbers.rows_copied;
  cell.squeezed = static_cast<std::uint16_t>(numbers.squeezed);
  for (std::uint32_t first = 0; first < cells.size(); first += kResultsPerCell) {
    cell.first = static_cast<std::uint16_t>(first);
    const auto here = std::min<std::size_t>(kResultsPerCell, cells.size() - first);
    std::copy_n(task_reports_.begin() + first, here, cell.results);
    while (!reports_.push(cell)) {  // never full by its size (channel.h) while leatd lives
      if (ending_ || reports_.corrupt()) return;
      (void)read_control(false);
    }
  }
  if (daemon_waker_.should_ring()) bell_.ring();
}

void Worker::park() {
  const auto announce = [this] {
    dispatches_.publish();
    shm::announce_sleep(*sleep_);
  };
  if (shm::may_sleep(announce, [this] { return dispatches_.empty(); })) {
    pollfd fds[2] = {{bell_.fd(), POLLIN, 0}, {control_.get(), POLLIN, 0}};
    (void)poll(fds, 2, -1);
    if (fds[0].revents != 0 && !bell_.drain()) ending_ = true;  // leatd is gone
    if (fds[1].revents != 0) {
      shm::announce_awake(*sleep_);
      (void)read_control(false);
      return;
    }
  }
  shm::announce_awake(*sleep_);
}

}  // namespace leat::worker
