// A libonnxruntime.so.1 with a CUDA provider that is not there, before the real library (LEAT_REAL_ONNXRUNTIME), which
// computes on the host when the stand-in driver's stream comes to it. What is the provider's own behaviour is played:
// its options, plans that are remembered for the last shape alone, graphs, runs that somebody else captures, an arena
// that grows by what is asked for, host memory that runs pin and who gives it back, and where nodes go: Shape and what
// hangs on it to the host, as ONNX Runtime does on purpose, and Size and NonZero, with copies. What it cannot show: any
// kernel, any plan, any speed.
#include <dlfcn.h>
#include <onnxruntime_c_api.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cuda/fake/onnx_provider.h"

namespace {

using leat::fake::ProviderState;

ProviderState state;
const OrtApi* real = nullptr;
OrtApi api;

struct Options {
  std::map<std::string, std::string> provider, session;
  void* stream = nullptr;
  bool cuda = false;
  OrtLoggingFunction log = nullptr;
  void* log_to = nullptr;
};
// Host memory for the runs of a session. Who holds it last frees it, and on the stream that ends the process.
thread_local bool on_stream = false;
struct Pinned {
  ~Pinned() {
    if (!on_stream) return;
    std::fprintf(stderr, "CUDA failure 800: operation not permitted (cudaFreeHost(p))\n");
    std::abort();
  }
};

struct Work {
  OrtSession* session;
  std::vector<const char*> input_names, output_names;
  std::vector<const OrtValue*> inputs;
  std::vector<OrtValue*> outputs;
  OrtValue** made = nullptr;  // where outputs go that the runtime makes
  std::uint32_t us = 0;
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false, waited_for = false, captured = false;
  OrtStatus* status = nullptr;
  std::vector<OrtValue*> own;  // over the captured addresses
  Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  ~Work() {
    for (OrtValue* const value : own) real->ReleaseValue(value);
  }
};

struct Opened {
  Options options;
  std::vector<std::unique_ptr<Work>> captured;  // by somebody else, whose graphs run them
  std::int64_t planned_for = 0;
  std::vector<std::uint32_t> arena;    // rows of its regions
  std::map<std::int64_t, int> plain;   // runs of each batch
  std::map<int, std::int64_t> graphs;  // id: batch
  std::shared_ptr<Pinned> pinned = std::make_shared<Pinned>();
  std::uint32_t unsettled_runs = 0;  // whose part of it is given back behind a run that is waited for, or at the end
};
std::mutex mutex;
std::map<const void*, Options> sessions_options, provider_options;
std::map<const void*, Opened> sessions;
std::set<const void*> pinned_held;  // the allocators that were handed out
std::map<const void*, std::map<std::string, std::string>> run_options;

Options& provider_of(const void* options) { return provider_options[options]; }

OrtStatus* refuse(const std::string& text) { return real->CreateStatus(ORT_FAIL, text.c_str()); }

// An operator's type as a node holds it.
bool has_op(const std::string& model, const std::string& type) {
  return model.find(std::string{'\x22', static_cast<char>(type.size())} + type) != std::string::npos;
}

void say(const Options& o, OrtLoggingLevel level, const char* text) {
  if (o.log != nullptr) o.log(o.log_to, level, "onnxruntime", "", "", text);
}

// What the runtime says of a model on its way to a session, or why there will be none.
OrtStatus* place(const Options& o, const std::string& model) {
  if (!o.cuda) return nullptr;
  const bool shapes = has_op(model, "Shape"), data = has_op(model, "NonZero"), number = has_op(model, "Size"),
             copies = number || data;
  const auto entry = o.session.find("session.disable_cpu_ep_fallback");
  if ((shapes || copies) && entry != o.session.end() && entry->second == "1")
    return refuse(
        "This session contains graph nodes that are assigned to the default CPU EP, but fallback to CPU EP has been "
        "explicitly disabled by the user.");
  if (shapes || copies)
    say(o, ORT_LOGGING_LEVEL_VERBOSE, " Node(s) placed on [CPUExecutionProvider]. Number of nodes: 2");
  if (shapes) say(o, ORT_LOGGING_LEVEL_VERBOSE, "  Shape (/Shape)");
  if (shapes) say(o, ORT_LOGGING_LEVEL_VERBOSE, "  Gather (/Gather)");
  if (number) say(o, ORT_LOGGING_LEVEL_VERBOSE, "  Size (/Size)");
  if (data) say(o, ORT_LOGGING_LEVEL_VERBOSE, "  NonZero (/NonZero)");
  if (copies)
    say(o, ORT_LOGGING_LEVEL_WARNING, "2 Memcpy nodes are added to the graph main_graph for CUDAExecutionProvider.");
  const auto graphs = o.provider.find("enable_cuda_graph");
  if (copies && graphs != o.provider.end() && graphs->second == "1")
    return refuse("This session cannot use the graph capture feature as requested by the user.");
  return nullptr;
}

OrtStatus* opened(const OrtSessionOptions* from, const std::string& model, OrtStatus* status, OrtSession** out) {
  if (status != nullptr) return status;
  const std::lock_guard lock(mutex);
  const Options& o = sessions_options[from];
  if (OrtStatus* refused = place(o, model); refused != nullptr) {
    real->ReleaseSession(*out);
    *out = nullptr;
    return refused;
  }
  sessions[*out].options = o;
  if (const auto tf32 = o.provider.find("use_tf32"); tf32 != o.provider.end()) state.tf32 = tf32->second == "1" ? 1 : 0;
  if (o.cuda) state.most_sessions = std::max<std::uint32_t>(state.most_sessions, ++state.open_sessions);
  return nullptr;
}

OrtStatus* ORT_API_CALL create_session(const OrtEnv* env, const char* path, const OrtSessionOptions* options,
                                       OrtSession** out) noexcept {
  std::ifstream file(path, std::ios::binary);
  const std::string model{std::istreambuf_iterator<char>(file), {}};
  return opened(options, model, real->CreateSession(env, path, options, out), out);
}
OrtStatus* ORT_API_CALL create_session_from(const OrtEnv* env, const void* bytes, std::size_t count,
                                            const OrtSessionOptions* options, OrtSession** out) noexcept {
  return opened(options, std::string(static_cast<const char*>(bytes), count),
                real->CreateSessionFromArray(env, bytes, count, options, out), out);
}

// ---- a run ----

void take(std::uint32_t us) {
  if (us != 0) std::this_thread::sleep_for(std::chrono::microseconds(us));
}

// Of the driver, which the device's plug-in has loaded.
template <class Function>
Function of_driver(const char* name) {
  return reinterpret_cast<Function>(::dlsym(::dlopen("libcuda.so.1", RTLD_NOW), name));
}

std::int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

// All runs of a process are on one stream.
void note(std::int64_t began_ns) {
  const std::uint64_t n = state.ended_runs;
  leat::fake::RunSpan& span = state.spans[n % leat::fake::kRunSpans];
  span.began_ns = began_ns, span.ended_ns = now_ns();
  state.ended_runs = n + 1;
}

void run_on_stream(void* argument) {
  static const auto kCounted = of_driver<int (*)(std::uint32_t)>("leat_stand_in_counted");
  auto* const w = static_cast<Work*>(argument);
  const std::int64_t began_ns = now_ns();
  if (kCounted(w->us) == 0) take(w->us);
  OrtStatus* const status =
      real->Run(w->session, nullptr, w->input_names.data(), w->inputs.data(), w->inputs.size(), w->output_names.data(),
                w->output_names.size(), w->made != nullptr ? w->made : w->outputs.data());
  note(began_ns);
  std::unique_lock lock(w->mutex);
  w->status = status;
  w->done = true;
  if (w->waited_for) return w->ended.notify_all();
  lock.unlock();
  if (status != nullptr) {  // nobody hears of it otherwise
    std::fprintf(stderr, "a run on the stand-in's stream failed: %s\n", real->GetErrorMessage(status));
    std::abort();
  }
  if (!w->captured) delete w;
}

int put_on(void* stream, void (*function)(void*), void* argument) {
  static const auto kHostFunction = of_driver<int (*)(void*, void (*)(void*), void*)>("cuLaunchHostFunc");
  return kHostFunction(stream, function, argument);
}

// Behind what is on the stream by then.
void settle(const OrtSession* session) {
  std::unique_ptr<std::shared_ptr<Pinned>> held;
  void* stream = nullptr;
  {
    const std::lock_guard lock(mutex);
    const auto found = sessions.find(session);
    if (found == sessions.end() || std::exchange(found->second.unsettled_runs, 0) == 0) return;
    held = std::make_unique<std::shared_ptr<Pinned>>(found->second.pinned);
    stream = found->second.options.stream;
  }
  const auto give_back = [](void* argument) {
    const std::unique_ptr<std::shared_ptr<Pinned>> mine(static_cast<std::shared_ptr<Pinned>*>(argument));
    take(state.give_back_us);
    on_stream = true;
    mine->reset();
    on_stream = false;
  };
  if (put_on(stream, give_back, held.get()) == 0) (void)held.release();
}

void ran(const OrtSession* session, bool waited_for) {
  {
    const std::lock_guard lock(mutex);
    const std::uint32_t runs = ++sessions[session].unsettled_runs;
    state.most_unsettled_runs = std::max<std::uint32_t>(state.most_unsettled_runs, runs);
  }
  if (waited_for) settle(session);
}

void ORT_API_CALL release_session(OrtSession* session) noexcept {
  settle(session);
  std::shared_ptr<Pinned> pinned;
  {
    const std::lock_guard lock(mutex);
    const auto found = sessions.find(session);
    if (found != sessions.end()) {
      if (found->second.options.cuda) --state.open_sessions;
      pinned = std::move(found->second.pinned);
      sessions.erase(found);
    }
  }
  real->ReleaseSession(session);
}

// What a capture keeps of a value is its address.
OrtValue* over_the_same(const OrtValue* value) {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  OrtMemoryInfo* memory = nullptr;
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::size_t rank = 0, count = 0;
  std::int64_t dims[8] = {};
  void* data = nullptr;
  OrtValue* out = nullptr;
  constexpr std::size_t kLargestElement = 8;
  const bool good =
      real->GetTensorTypeAndShape(value, &info) == nullptr && real->GetTensorElementType(info, &type) == nullptr &&
      real->GetDimensionsCount(info, &rank) == nullptr && rank <= 8 &&
      real->GetDimensions(info, dims, rank) == nullptr && real->GetTensorShapeElementCount(info, &count) == nullptr &&
      real->GetTensorMutableData(const_cast<OrtValue*>(value), &data) == nullptr &&
      real->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory) == nullptr &&
      real->CreateTensorWithDataAsOrtValue(memory, data, count * kLargestElement, dims, rank, type, &out) == nullptr;
  if (!good) std::abort();
  real->ReleaseMemoryInfo(memory);
  real->ReleaseTensorTypeAndShapeInfo(info);
  return out;
}

bool is_captured(void* stream) {
  static const auto kIsCapturing = of_driver<int (*)(void*, int*)>("cuStreamIsCapturing");
  int status = 0;
  return kIsCapturing(stream, &status) == 0 && status != 0;
}

std::int64_t batch_of(const OrtValue* value) {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  std::size_t rank = 0;
  std::int64_t dims[8] = {};
  if (real->GetTensorTypeAndShape(value, &info) != nullptr) std::abort();
  if (real->GetDimensionsCount(info, &rank) != nullptr || rank > 8) std::abort();
  if (real->GetDimensions(info, dims, rank) != nullptr) std::abort();
  real->ReleaseTensorTypeAndShapeInfo(info);
  return rank == 0 ? 1 : dims[0];
}

constexpr int kRunsThatTake = 2;  // of a size, where the second does too

// One region a run, the smallest that is large enough; else one of just that size.
void take_arena(Opened& session, std::int64_t batch) {
  const auto rows = static_cast<std::uint32_t>(batch);
  if (++session.plain[batch] == kRunsThatTake && state.second_runs_take != 0) state.arena_rows += rows;
  if (std::any_of(session.arena.begin(), session.arena.end(), [rows](std::uint32_t r) { return r >= rows; })) return;
  session.arena.push_back(rows);
  state.arena_rows += rows;
}

std::uint32_t cold(std::uint32_t us) {
  std::uint32_t left = state.cold_runs;
  while (left != 0)
    if (state.cold_runs.compare_exchange_weak(left, left - 1)) return us * 10;
  return us;
}

// What a run costs, and whether it is one: an error where it is a capture that fails.
OrtStatus* account(OrtSession* session, const std::map<std::string, std::string>& words, std::int64_t batch, Work& w,
                   void** stream, bool* waits) {
  const auto word = [&words](const char* key) {
    const auto found = words.find(key);
    return found == words.end() ? std::string() : found->second;
  };
  const std::lock_guard lock(mutex);
  Opened& s = sessions[session];
  *stream = s.options.stream;
  *waits = word("disable_synchronize_execution_providers") != "1";
  const std::string id = word("gpu_graph_id");
  const int graph = id.empty() ? -1 : std::atoi(id.c_str());
  const bool captures = s.options.provider["enable_cuda_graph"] == "1" && graph >= 0;
  if (is_captured(s.options.stream)) {  // memory cannot be taken, nor a plan looked for, nor anything waited for
    const auto holds = [batch](std::uint32_t rows) { return rows >= static_cast<std::uint32_t>(batch); };
    const bool taken = state.second_runs_take == 0 || s.plain[batch] >= kRunsThatTake;
    const bool ready = taken && s.planned_for == batch && std::any_of(s.arena.begin(), s.arena.end(), holds);
    if (captures || *waits || !ready || state.refuses_captures != 0)
      return refuse("CUDA failure 900: operation not permitted when stream is capturing ; expr=cudaMalloc(&p, size)");
    w.captured = true;
    w.us = state.captured_us;
    ++state.captures;
    return nullptr;
  }
  if (captures && s.graphs.contains(graph)) {
    if (s.graphs[graph] != batch) return refuse("a graph was replayed with another shape than its own");
    ++state.replays;
    w.us = cold(state.replay_us);
    *waits = *waits || state.replays_wait != 0;
    return nullptr;
  }
  if (captures && state.refuses_graphs != 0)
    return refuse("CUDA failure 900: operation not permitted when stream is capturing");
  if (captures) s.graphs[graph] = batch;
  take_arena(s, batch);
  w.us = cold(state.run_us);
  if (s.planned_for != batch) {
    ++state.plans;
    w.us += state.plan_us;
  }
  s.planned_for = batch;
  ++state.runs;
  if (batch < 64) state.sizes |= std::uint64_t{1} << batch;
  return nullptr;
}

OrtStatus* ORT_API_CALL run(OrtSession* session, const OrtRunOptions* options, const char* const* input_names,
                            const OrtValue* const* inputs, std::size_t input_count, const char* const* output_names,
                            std::size_t output_count, OrtValue** outputs) noexcept {
  std::map<std::string, std::string> words;
  {
    const std::lock_guard lock(mutex);
    if (!sessions[session].options.cuda)
      return real->Run(session, options, input_names, inputs, input_count, output_names, output_count, outputs);
    words = run_options[options];
  }
  auto w = std::make_unique<Work>();
  w->session = session;
  w->input_names.assign(input_names, input_names + input_count);
  w->output_names.assign(output_names, output_names + output_count);
  w->inputs.assign(inputs, inputs + input_count);
  w->outputs.assign(outputs, outputs + output_count);
  void* stream = nullptr;
  bool waits = false;
  if (OrtStatus* refused = account(session, words, batch_of(inputs[0]), *w, &stream, &waits); refused != nullptr)
    return refused;
  if (w->captured) {
    for (const OrtValue*& in : w->inputs) in = w->own.emplace_back(over_the_same(in));
    for (OrtValue*& out : w->outputs) out = w->own.emplace_back(over_the_same(out));
    if (put_on(stream, run_on_stream, w.get()) != 0) return refuse("the stream takes no work");
    const std::lock_guard lock(mutex);
    sessions[session].captured.push_back(std::move(w));
    return nullptr;
  }
  if (std::find(w->outputs.begin(), w->outputs.end(), nullptr) != w->outputs.end()) w->made = outputs;
  w->waited_for = waits || w->made != nullptr;
  const bool waited_for = w->waited_for;
  if (put_on(stream, run_on_stream, w.get()) != 0) return refuse("the stream takes no work");
  Work* const put = w.release();  // what nobody waits for deletes itself
  OrtStatus* status = nullptr;
  if (waited_for) {
    std::unique_lock lock(put->mutex);
    put->ended.wait(lock, [&] { return put->done; });
    status = put->status;
    lock.unlock();
    delete put;
  }
  ran(session, waited_for);
  return status;
}

// Of its pinned memory alone, whatever was asked for.
OrtStatus* ORT_API_CALL create_allocator(const OrtSession* session, const OrtMemoryInfo* memory,
                                         OrtAllocator** out) noexcept {
  const std::lock_guard lock(mutex);
  const auto found = sessions.find(session);
  if (found == sessions.end() || !found->second.options.cuda) return real->CreateAllocator(session, memory, out);
  auto* const held = new std::shared_ptr<Pinned>(found->second.pinned);
  pinned_held.insert(held);
  *out = reinterpret_cast<OrtAllocator*>(held);
  return nullptr;
}
void ORT_API_CALL release_allocator(OrtAllocator* allocator) noexcept {
  auto* const held = reinterpret_cast<std::shared_ptr<Pinned>*>(allocator);
  {
    const std::lock_guard lock(mutex);
    if (pinned_held.erase(held) == 0) return real->ReleaseAllocator(allocator);
  }
  delete held;
}

void put_in_place() {
  using Cuda = OrtCUDAProviderOptionsV2;
  api.CreateSession = create_session;
  api.CreateSessionFromArray = create_session_from;
  api.ReleaseSession = release_session;
  api.Run = run;
  api.CreateAllocator = create_allocator;
  api.ReleaseAllocator = release_allocator;
  api.CreateMemoryInfo = [](const char* name, OrtAllocatorType type, int id, OrtMemType memory,
                            OrtMemoryInfo** out) noexcept -> OrtStatusPtr {
    return std::strncmp(name, "Cuda", 4) == 0 ? real->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, out)
                                              : real->CreateMemoryInfo(name, type, id, memory, out);
  };
  api.CreateCUDAProviderOptions = [](Cuda** out) noexcept -> OrtStatusPtr {
    *out = reinterpret_cast<Cuda*>(new char);
    return nullptr;
  };
  api.ReleaseCUDAProviderOptions = [](Cuda* options) noexcept {
    const std::lock_guard lock(mutex);
    provider_options.erase(options);
    delete reinterpret_cast<char*>(options);
  };
  api.UpdateCUDAProviderOptions = [](Cuda* options, const char* const* keys, const char* const* values,
                                     std::size_t count) noexcept -> OrtStatusPtr {
    const std::lock_guard lock(mutex);
    provider_of(options).provider.clear();  // keys that a call does not name are back at their defaults
    for (std::size_t i = 0; i < count; ++i) provider_of(options).provider[keys[i]] = values[i];
    return nullptr;
  };
  api.UpdateCUDAProviderOptionsWithValue = [](Cuda* options, const char*, void* value) noexcept -> OrtStatusPtr {
    const std::lock_guard lock(mutex);
    provider_of(options).stream = value;
    return nullptr;
  };
  api.SessionOptionsAppendExecutionProvider_CUDA_V2 = [](OrtSessionOptions* to,
                                                         const Cuda* options) noexcept -> OrtStatusPtr {
    const std::lock_guard lock(mutex);
    Options& o = sessions_options[to];
    o.provider = provider_of(options).provider;
    o.stream = provider_of(options).stream;
    o.cuda = true;
    return nullptr;
  };
  api.ReleaseSessionOptions = [](OrtSessionOptions* options) noexcept {
    {
      const std::lock_guard lock(mutex);
      sessions_options.erase(options);
    }
    real->ReleaseSessionOptions(options);
  };
  api.AddSessionConfigEntry = [](OrtSessionOptions* options, const char* key, const char* value) noexcept {
    const std::lock_guard lock(mutex);
    sessions_options[options].session[key] = value;
    return std::strcmp(key, "session.disable_cpu_ep_fallback") == 0 ? nullptr
                                                                    : real->AddSessionConfigEntry(options, key, value);
  };
  api.SetUserLoggingFunction = [](OrtSessionOptions* options, OrtLoggingFunction log,
                                  void* to) noexcept -> OrtStatusPtr {
    const std::lock_guard lock(mutex);
    sessions_options[options].log = log;
    sessions_options[options].log_to = to;
    return nullptr;  // the real one's nodes all go to the host
  };
  api.SetSessionLogSeverityLevel = [](OrtSessionOptions*, int) noexcept -> OrtStatusPtr { return nullptr; };
  api.AddRunConfigEntry = [](OrtRunOptions* options, const char* key, const char* value) noexcept -> OrtStatusPtr {
    const std::lock_guard lock(mutex);
    run_options[options][key] = value;
    return nullptr;
  };
  api.ReleaseRunOptions = [](OrtRunOptions* options) noexcept {
    {
      const std::lock_guard lock(mutex);
      run_options.erase(options);
    }
    real->ReleaseRunOptions(options);
  };
}

const OrtApi* ORT_API_CALL get_api(std::uint32_t version) noexcept {
  static const bool kLoaded = [version] {
    const char* const path = std::getenv("LEAT_REAL_ONNXRUNTIME");
    void* const library = path != nullptr ? ::dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (library == nullptr) return false;
    real = reinterpret_cast<const OrtApiBase* (*)()>(::dlsym(library, "OrtGetApiBase"))()->GetApi(version);
    if (real == nullptr) return false;
    api = *real;
    put_in_place();
    return true;
  }();
  return kLoaded ? &api : nullptr;
}

const char* ORT_API_CALL get_version() noexcept { return "of the stand-in"; }

}  // namespace

extern "C" __attribute__((visibility("default"))) const OrtApiBase* OrtGetApiBase() noexcept {
  static constexpr OrtApiBase kBase = {get_api, get_version};
  return &kBase;
}
extern "C" __attribute__((visibility("default"))) ProviderState* leat_stand_in_provider_state() { return &state; }
