#include "engine/exec/onnx/onnx_ways.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace leat::exec::ort {
namespace {

// The runtime takes memory in the first run of a size and, by a plan that it makes of that, in the second.
constexpr int kRunsBeforeACapture = 2;

void need(int status, const char* error) {
  if (status != LEAT_DEVICE_OK) throw std::runtime_error(error);
}

void bind(Session& s, Binding& b, std::uint32_t batch, void* const* data) {
  const std::size_t count = s.inputs.size() + s.outputs.size();
  b.batch = 0;  // not found by a later run if what follows fails
  b.values.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const bool input = i < s.inputs.size();
    const Port& port = input ? s.inputs[i] : s.outputs[i - s.inputs.size()];
    b.values.emplace_back(value_over(s, port, batch, data[i]));
    if (input)
      b.inputs[i] = b.values.back().get();
    else
      b.outputs[i - s.inputs.size()] = b.values.back().get();
  }
  std::copy_n(data, count, b.data);
  b.batch = batch;
}

// Where buffers move: values over the session's own in place of those.
Binding& still_binding(Session& s, std::vector<Binding>& bindings, std::uint32_t batch, void* const* data) {
  Binding& b = bindings.at(batch - 1);
  if (b.batch != 0) return b;
  void* still[2 * kMaxTensors];
  std::size_t next = 0;
  for (std::size_t i = 0; i < s.inputs.size() + s.outputs.size(); ++i)
    still[i] = (i < s.inputs.size() ? s.moves_in : s.moves_out) ? s.still[next++].memory.address : data[i];
  bind(s, b, batch, still);
  return b;
}

void run_on_stand_in(void* argument) {
  const auto& b = *static_cast<Binding*>(argument);
  try {
    run_binding(*b.session, b, nullptr);
    b.session->deferred.ended();
  } catch (const std::exception& e) {
    b.session->deferred.failed(e.what());
  }
}

// What a run pinned on the host (the addresses of a Concat's inputs, say) the provider keeps until a run that is waited
// for, and so every so many runs is. Not where there are graphs: those may hold such addresses, and a replay pins none.
constexpr std::uint32_t kRunsUntilSettled = 256;

const OrtRunOptions* plain_run_options(Session& s) {
  if (s.graphs || ++s.unsettled_runs < kRunsUntilSettled) return s.run_options.get();
  s.unsettled_runs = 0;
  return s.settling_run_options.get();
}

// A run of the model as it is captured by us. On a stand-in's stream each launch counts as a run (DeferredRuns).
void put_uncounted(Session& s, Binding& b) {
  if (s.provider) return run_binding(s, b, s.run_options.get());
  char error[512] = "";
  need(s.device_api->enqueue(s.device, run_on_stand_in, &b, error, sizeof error), error);
}

// The name of a graph of what `put` puts on the stream.
template <class Put>
std::uint32_t captured(Session& s, Put put) {
  char error[512] = "";
  std::uint32_t graph = 0;
  need(s.device_api->begin_capture(s.device, error, sizeof error), error);
  try {
    put();
  } catch (...) {
    (void)s.device_api->end_capture(s.device, nullptr, nullptr, 0);
    throw;
  }
  need(s.device_api->end_capture(s.device, &graph, error, sizeof error), error);
  return graph;
}

void launch(Session& s, std::uint32_t graph) {
  char error[512] = "";
  need(s.device_api->launch(s.device, graph, error, sizeof error), error);
  if (!s.provider) s.deferred.put();
}

void put_plain_over(Session& s, Binding& b) {
  if (s.provider) return run_binding(s, b, plain_run_options(s));
  put_uncounted(s, b);
  s.deferred.put();
}

// By the runtime's own graph, which on a stand-in's stream is one of the device's.
void put_model_graph(Session& s, Binding& b) {
  if (s.provider) return run_binding(s, b, b.graph_run.get());
  if (b.stand_in_graph == 0) b.stand_in_graph = captured(s, [&] { put_uncounted(s, b); });
  launch(s, b.stand_in_graph);
}

void copy_on_device(const Session& s, void* to, const void* from, std::uint64_t bytes) {
  char error[512] = "";
  need(s.device_api->copy(s.device, to, from, bytes, error, sizeof error), error);
}

// Over b's buffers: where those are others than the caller's, what it reads of the caller's `rows` is copied there
// before, and what it wrote of them from there behind it.
template <class Put>
void put_rows(Session& s, Binding& b, std::uint32_t rows, void* const* data, Put put) {
  const auto bytes = [&](const Port& port) { return (port.batched() ? rows : 1) * port.row_bytes; };
  const std::size_t in = s.inputs.size();
  for (std::size_t i = 0; i < in; ++i)
    if (b.data[i] != data[i]) copy_on_device(s, b.data[i], data[i], bytes(s.inputs[i]));
  put(s, b);
  for (std::size_t o = 0; o < s.outputs.size(); ++o)
    if (b.data[in + o] != data[in + o]) copy_on_device(s, data[in + o], b.data[in + o], bytes(s.outputs[o]));
}

// ONNX Runtime's convolutions remember how they ran for one size alone, and a change costs many times a run. So without
// graphs a provider sees few sizes: the next power of two, with rows of whatever was there, where there is room.
std::uint32_t few_sizes(const Session& s, std::uint32_t rows, const Given& given) {
  if (!s.provider || s.group != 0) return rows;
  const std::uint32_t size = std::min(std::bit_ceil(rows), std::max(s.batch_max, rows));
  return s.still_bindings.empty() && size > given.room ? rows : size;
}

void put_plain(Session& s, std::uint32_t rows, const Given& given) {
  const std::uint32_t size = few_sizes(s, rows, given);
  Binding& b = size == rows || s.still_bindings.empty() ? binding_for(s, size, given.data)
                                                        : still_binding(s, s.still_bindings, size, given.data);
  put_rows(s, b, rows, given.data, put_plain_over);
}

// Another size than this one's without a graph, whose buffers are there whatever rows it was given; 0: there is none.
std::uint32_t another_size(const Session& s, std::uint32_t rows, const Given& given) {
  if (!s.provider || s.group != 0) return 0;
  const std::uint32_t size = few_sizes(s, rows, given);
  if (size > 1) return size / 2;
  return s.batch_max > 1 && given.room > 1 && !s.moves_in && !s.moves_out ? 2 : 0;
}

// ---- each way, with what is around it ----

void put_batch_plain(Session& s, std::uint32_t rows, const Given& given, Around* around) {
  put_before(around);
  put_plain(s, rows, given);
  put_behind(around);
}

void put_batch_by_graph(Session& s, Binding& b, std::uint32_t rows, const Given& given, Around* around) {
  put_before(around);
  put_rows(s, b, rows, given.data, put_model_graph);
  put_behind(around);
}

void put_batch_at_once(Session& s, Binding& b, std::uint32_t rows, const Given& given, std::uint32_t set) {
  put_rows(s, b, rows, given.data, [set](Session& of, Binding& over) { launch(of, over.whole[set]); });
}

// Memory may not be taken meanwhile, nor may a convolution look for its plan: so the same is run before.
void capture_whole(Session& s, Binding& b, Around& around, std::uint32_t set) {
  for (int run = 0; run < kRunsBeforeACapture; ++run) put_plain_over(s, b);
  b.whole[set] = captured(s, [&] {
    if (!around.before(set)) throw std::runtime_error(around.error());
    put_uncounted(s, b);
    if (!around.behind(set)) throw std::runtime_error(around.error());
  });
}

Binding::Way way_of(const GraphTiming& timing) {
  return timing.whole() ? Binding::Way::whole : timing.graph() ? Binding::Way::graph : Binding::Way::plain;
}

// What the batches do that are chosen for already, by what is left to choose from.
void choose_again(Session& s) {
  for (auto* const all : {&s.bindings, &s.graph_bindings})
    for (Binding& b : *all) {
      const auto known = std::find_if(s.report.batches.begin(), s.report.batches.end(),
                                      [&b](const GraphTiming& t) { return t.batch == b.batch; });
      if (b.way == Binding::Way::untried && s.graphs) continue;
      b.way = b.way == Binding::Way::plain || known == s.report.batches.end() ? Binding::Way::plain : way_of(*known);
    }
}

// What cannot be captured ends it for all batches, since nothing is known of a session that has failed half-way: it is
// opened anew.
void give_up_graphs(Session& s, const std::string& why) {
  s.graphs = s.at_once = false;
  s.report.why_not = why;
  (void)s.device_api->end_capture(s.device, nullptr, nullptr, 0);
  for (GraphTiming& t : s.report.batches) t.graph_ns = t.whole_ns = 0;
  choose_again(s);
  s.open_again(false);
}

// The same of a batch as one launch alone: the runtime's own graphs stay.
void give_up_at_once(Session& s, const std::string& why) {
  s.at_once = false;
  s.report.why_apart = why;
  (void)s.device_api->end_capture(s.device, nullptr, nullptr, 0);
  for (GraphTiming& t : s.report.batches) t.whole_ns = 0;
  choose_again(s);
  try {
    s.open_again(true);
  } catch (const std::runtime_error& e) {
    give_up_graphs(s, e.what());
  }
}

bool try_capture_whole(Session& s, Binding& b, Around& around, std::uint32_t set) {
  try {
    capture_whole(s, b, around, set);
    return true;
  } catch (const std::runtime_error& e) {
    give_up_at_once(s, e.what());
    return false;
  }
}

// A batch's first run: each way in turns, copies and what is around it included.
void choose_way(Session& s, Binding& b, std::uint32_t rows, const Given& given, Around* around) {
  const std::uint32_t other = another_size(s, rows, given);
  const TimedWay plain{[&] { put_batch_plain(s, rows, given, around); },
                       other != 0 ? std::function<void()>([&] { put_plain(s, other, given); }) : nullptr};
  const TimedWay graph{[&] { put_batch_by_graph(s, b, rows, given, around); }, nullptr};
  GraphTiming timing{.batch = rows};
  const bool at_once = s.at_once && around != nullptr && try_capture_whole(s, b, *around, around->set());
  try {
    const bool moves = !s.graph_bindings.empty();
    const std::ptrdiff_t at = moves ? &b - s.graph_bindings.data() : &b - s.bindings.data();
    b.graph_run.reset(device_run_options(api(), false, static_cast<int>(at) + 1));
    std::vector<TimedWay> ways{plain};
    if (s.graphs) ways.push_back(graph);
    if (at_once) ways.push_back({[&] { put_batch_at_once(s, b, rows, given, around->set()); }, nullptr});
    const auto times = time_on_device(*s.device_api, s.device, ways);
    timing.plain_ns = times[0];
    if (s.graphs) timing.graph_ns = times[1];
    if (at_once) timing.whole_ns = times[2];
  } catch (const std::runtime_error& e) {
    give_up_graphs(s, e.what());
    timing.plain_ns = time_on_device(*s.device_api, s.device, {&plain, 1})[0];
  }
  if (!timing.whole()) s.release_whole(b);
  // In service no batch is to wait for a capture.
  for (std::uint32_t set = 0; timing.whole() && set < around->sets(); ++set)
    if (b.whole[set] == 0 && !try_capture_whole(s, b, *around, set)) timing.whole_ns = 0;
  if (!s.graphs) timing.graph_ns = 0;
  const auto later = std::find_if(s.report.batches.begin(), s.report.batches.end(),
                                  [rows](const GraphTiming& t) { return t.batch > rows; });
  s.report.batches.insert(later, timing);
  b.way = way_of(timing);
}

}  // namespace

Binding& binding_for(Session& s, std::uint32_t batch, void* const* data) {
  const std::size_t count = s.inputs.size() + s.outputs.size();
  for (Binding& b : s.bindings) {
    if (b.batch == batch && std::equal(data, data + count, b.data)) return b;
  }
  Binding& b = s.bindings[s.oldest];
  s.oldest = (s.oldest + 1) % s.bindings.size();
  // A graph holds the addresses of the buffers it was captured with: what takes another's place has none.
  b.way = b.batch == 0 ? Binding::Way::untried : Binding::Way::plain;
  bind(s, b, batch, data);
  return b;
}

void run_binding(Session& s, const Binding& b, const OrtRunOptions* options) {
  check(api().Run(s.session.get(), options, s.input_names.data(), b.inputs, s.inputs.size(), s.output_names.data(),
                  s.outputs.size(), const_cast<OrtValue**>(b.outputs)));
}

void put_before(Around* around) {
  if (around != nullptr && !around->before(around->set())) throw std::runtime_error(around->error());
}
void put_behind(Around* around) {
  if (around != nullptr && !around->behind(around->set())) throw std::runtime_error(around->error());
}

void put_on_device(Session& s, std::uint32_t rows, const Given& given, Around* around) {
  if (!s.graphs) return put_batch_plain(s, rows, given, around);
  const bool moves = !s.graph_bindings.empty();
  Binding& b = moves ? still_binding(s, s.graph_bindings, rows, given.data) : binding_for(s, rows, given.data);
  const bool complete = around == nullptr || around->complete();
  if (b.way == Binding::Way::untried && complete) choose_way(s, b, rows, given, around);
  if (b.way == Binding::Way::whole && around != nullptr && complete)
    return put_batch_at_once(s, b, rows, given, around->set());
  if (b.way == Binding::Way::graph || b.way == Binding::Way::whole)
    return put_batch_by_graph(s, b, rows, given, around);
  put_batch_plain(s, rows, given, around);
}

}  // namespace leat::exec::ort
