// A module as a worker runs it: pre-processing straight from the frame slots, an executor's session, post-processing
// straight into the result slots.
//
//   auto module = Module::open(spec);                      // control plane: loads the model, allocates everything
//   module->run(items, reports);                           // hot path: no allocation, no exception
//
// A batch can be run in two halves, so that the next one is prepared, and the one before answered, while its model
// runs:
//
//   module->begin(0, stream, first);                       // prepared here, and given to the stream
//   module->begin(1, stream, second);                      // beside it
//   module->finish(0, reports);                            // waits, and answers here
//
// A route of several stages splits the executor's part: the first stage pre-processes and writes features, the last
// reads features and post-processes; `features` below are one dense row an item, in memory that both workers map.
// Ownership: a Module owns its session and buffers. Thread rule: one thread, beside which the stream runs the model;
// Modules that run at the same time are independent.
// Errors: open() says in one line what and what to do. run() gives each item a reason; error() is the last failed run's
// line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/exec/frame_view.h"
#include "engine/exec/host_stream.h"
#include "engine/exec/onnx/graph_report.h"
#include "engine/exec/part.h"
#include "engine/exec/picture/sizes.h"
#include "engine/exec/recognise/recognise.h"
#include "leat/outcome.h"
#include "leat/result.hpp"
#include "leat/result_types.h"

namespace leat::exec {

class Device;

inline constexpr std::uint32_t kMaxRows = 64;  // rows of one batch
inline constexpr std::uint32_t kSets = 2;      // of buffers, where batches overlap

struct ModuleSpec {
  std::string name;               // for messages
  std::string executor = "onnx";  // a built-in ("onnx", "emulated"), an installed plug-in ("cuda"), or a plug-in's path
  std::string model_path;         // `onnx`: an ONNX file; `emulated`: a profile (docs/guide/profiles.md) or empty
  std::string as = {};      // `onnx`: the known model that it is (docs/reference/known-models.md); empty: nobody says
  std::string preprocess;   // preprocess.h's one line; empty: concluded from the model (`onnx`), or "raw"
  std::string postprocess;  // postprocess.h's one line; empty: concluded from the model (`onnx`), or "checksum"
  std::vector<std::string> labels;  // one entry a head, names separated by tabs; empty: as the model says
  std::uint32_t first_head = 0;     // what its first output is called in the labels it gives: below 255 with all others
  std::uint32_t batch_max = 1;      // rows, 1..kMaxRows
  std::uint32_t threads = 1;        // compute threads; the process is pinned already
  std::uint32_t first_block = 0, end_block = UINT32_MAX;  // of the model; UINT32_MAX: to its end
  std::vector<std::string>
      cuts;  // `onnx`: the tensors its blocks meet at (Profile::cuts); needed for a part of the model
  bool first_stage = true, last_stage = true;  // false: reads features; writes features
  std::uint32_t picture_width = 0,
                picture_height = 0;  // of the whole model's input: for `boxes` in a last stage that is not the first
  std::vector<std::int64_t> emulated_ns;  // `emulated` without a profile: time of a batch of i + 1 rows; empty: no time
  std::uint64_t emulated_in = 0,
                emulated_out = 0;  // `emulated` without a profile: bytes of an item's features; 0: none
  std::vector<std::pair<std::string, std::string>> extra;  // handed to the executor as key=value lines
  Device* device = nullptr;        // null: this host; else where executors run that can. It outlives the module
  bool host_features_out = false;  // on a device: what it writes for the next stage goes to host memory
  std::uint32_t sets = 1;          // of buffers, 1 or kSets: batches between begin() and finish() at once
};

// One item of a batch.
struct Item {
  FrameView frame;                // first stage only
  leat_result* result = nullptr;  // where the answer goes, last stage; and where the box comes from
  leat_part* parts = nullptr;     // this module's entries of the result's directory; null: no place for parts()
  std::int32_t detection = -1;    // >= 0: the item is result->detections[detection], and its labels go there
  std::uint32_t rows = 1;         // rows of the batch that it fills
};

struct ItemReport {
  Reason reason = Reason::none;  // none: done
  bool not_finite = false;       // some of the numbers that decide its answer were not finite (decode/post.h)
  std::uint32_t fan_out = 0;     // detections written
  std::uint32_t squeezed = 0;    // the width in pixels that it would have needed, where it was given less (sizes.h)
  std::uint64_t pixel_bytes_copied =
      0;  // copies after the producer's write; the one pass from slot to model input is none
};

// Called between items while a batch is prepared: whoever has others to answer need not wait for all of it.
using Pause = std::function<void()>;

class Module {
 public:
  static Result<std::unique_ptr<Module>> open(const ModuleSpec& spec);
  virtual ~Module() = default;

  // Runs items (at most batch_max rows in all); reports[i] answers items[i]. An item whose own input is unusable fails
  // alone; false: the executor failed and so did every item.
  // features_in: null on the first stage; features_out: null on the last. Both are feature_bytes_*() a row, in the
  // device's memory where on_device() (but for host_features_out).
  virtual bool run(std::span<const Item> items, std::span<ItemReport> reports, const std::byte* features_in = nullptr,
                   std::byte* features_out = nullptr) noexcept = 0;

  // How many sets of buffers it has: what the spec asks for, or 1, where its batches run one behind the other all the
  // same: pictures that vary in size, outputs that only a run tells.
  virtual std::uint32_t sets() const noexcept = 0;
  virtual void keep_one_set() noexcept = 0;  // nothing is between begin() and finish()
  // The two halves of run(), of a batch whose buffers are those of `set`, below sets(); the items outlive the second.
  // Halves come in the same order, of all modules on a stream, and run() between none. Within pause() the batch before
  // may be finished, and nothing else be called.
  virtual void begin(std::uint32_t set, HostStream& stream, std::span<const Item> items,
                     const std::byte* features_in = nullptr, std::byte* features_out = nullptr,
                     const Pause& pause = {}) noexcept = 0;
  virtual bool ended(std::uint32_t set) const noexcept = 0;  // finish() need not wait
  virtual bool finish(std::uint32_t set, std::span<ItemReport> reports) noexcept = 0;

  virtual std::uint64_t feature_bytes_in() const noexcept = 0;       // 0: this stage starts from frames
  virtual std::uint64_t feature_bytes_out() const noexcept = 0;      // 0: this stage ends with results
  virtual std::vector<PartSpec> parts() const = 0;                   // of the result's directory, that one item needs
  virtual std::vector<leat_tensor_shape> tensor_shapes() const = 0;  // what its frames must be; empty: pictures
  virtual std::vector<std::string> tensor_names() const = 0;         // the model's, of each of those
  // Where the size of its pictures varies: one for each cost class, smallest first (sizes.h). Items of one size run
  // together; a batch of several is run as several, one behind the other.
  virtual std::vector<Size> sizes() const = 0;
  // On a host: the next run lets go of the memory that larger ones, of all modules, took before it.
  virtual void give_back() noexcept = 0;
  virtual bool on_device() const noexcept = 0;
  virtual GraphReport graphs() const = 0;  // on a device: which batches run as graphs, of those that have run
  // A last stage: some output of some item so far held a value that is infinite or no number.
  virtual bool not_finite() const noexcept = 0;
  virtual std::string_view error() const noexcept = 0;
  // With the words that were concluded from the model where none were given; recognised() says from what.
  virtual const ModuleSpec& spec() const noexcept = 0;
  virtual const Recognised& recognised() const noexcept = 0;
};

}  // namespace leat::exec
