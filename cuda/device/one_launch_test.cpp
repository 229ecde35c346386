// A batch as one launch: pictures, model and downloads captured by us around a run of ONNX Runtime, over a stand-in of
// its CUDA provider on the stand-in driver, which counts what is put on a stream. It cannot show that the provider's
// own runs can be captured so; the stand-in refuses what is known to spoil a capture: memory taken, a plan looked for,
// a wait.
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "cuda/device/modules.h"
#include "cuda/device/over_provider.h"
#include "engine/exec/host_stream.h"
#include "engine/exec/onnx/graph_report.h"
#include "engine/worker/measuring/calibrate.h"

namespace leat {
namespace {

// What is put by itself takes its time, so that one launch is the fastest by far; and reading frames in place faster
// than uploading them.
int with_dear_launches(const std::function<bool(fake::ProviderState&, exec::Device&)>& act) {
  return over_the_provider(
      [&act](fake::ProviderState& seen, exec::Device& device) {
        seen.run_us = seen.replay_us = 2000;
        NEED(device.info().picture_source == LEAT_PICTURE_IN_PLACE);
        return act(seen, device);
      },
      [](fake::Host& host) { host.state().put_us = 10'000; });
}

std::uint64_t launches() { return fake::Host::mine().state().launches; }

// A client's slot: pages that the device reads where they lie.
class Slot {
 public:
  static constexpr std::size_t kBytes = 3 * 4096;  // 64 x 64 pixels of 3 bytes
  Slot(exec::Device& device, unsigned seed) : device_(device) {
    at_ =
        static_cast<std::uint8_t*>(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::minstd_rand random(seed);
    for (std::size_t i = 0; i < kBytes; ++i) at_[i] = static_cast<std::uint8_t>(random() >> 8);
    if (!device.register_host(at_, kBytes, true).ok()) std::abort();
  }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  ~Slot() {
    device_.unregister_host(at_);
    (void)::munmap(at_, kBytes);
  }
  [[nodiscard]] Batch batch(std::uint32_t items) const {
    Batch out(items, 1);
    for (exec::Item& item : out.items) item.frame.planes[0] = at_, item.frame.bytes = kBytes;
    return out;
  }

 private:
  exec::Device& device_;
  std::uint8_t* at_;
};

std::vector<leat_result> answers_of(exec::Module& module, Batch batch) {
  if (!module.run(batch.items, batch.reports)) return {};
  return batch.answers;
}

TEST(OneLaunch, IsWhatABatchTakesAndItsAnswersAreThoseOfItsParts) {
  EXPECT_EQ(with_dear_launches([](fake::ProviderState& seen, exec::Device& device) {
              const Model model(Net::plain);
              Classifier c(device, {}, model.path, 3), parts(device, {{"graphs", "0"}}, model.path, 3);
              NEED(c.module && worker::warm_up(*c.module, 3, false).ok());
              NEED(parts.module && worker::warm_up(*parts.module, 3, false).ok());
              const exec::GraphReport report = c.module->graphs();
              NEED(report.batches.size() == 3 && report.why_not.empty() && report.why_apart.empty());
              for (const exec::GraphTiming& t : report.batches) NEED(t.whole() && t.graph() && t.graph_ns != 0);
              NEED(exec::text_of(report).find("ms in one launch, ") != std::string::npos);
              const std::uint32_t captures = seen.captures, replays = seen.replays, runs = seen.runs;
              for (const unsigned seed : {3U, 11U, 29U})
                for (const std::uint32_t batch : {2U, 1U, 3U}) {
                  const Slot slot(device, seed);
                  const std::uint64_t before = launches();
                  const auto answers = answers_of(*c.module, slot.batch(batch));
                  NEED(launches() - before == 1U);
                  NEED(same(answers, answers_of(*parts.module, slot.batch(batch))));
                }
              NEED(seen.captures == captures && seen.replays == replays && seen.runs == runs + 9);
              // What the device does not read where it lies is uploaded before it.
              const std::uint64_t before = launches();
              const auto uploaded = c.run(2, 7);
              NEED(launches() - before == 2U);
              NEED(same(uploaded, parts.run(2, 7)));
              return true;
            }),
            0);
}

// Each set has a graph of its own, captured while the module is warmed: none in service.
TEST(OneLaunch, OfBatchesThatOverlapIsEachSetsOwn) {
  EXPECT_EQ(with_dear_launches([](fake::ProviderState& seen, exec::Device& device) {
              const Model model(Net::plain);
              Classifier c(device, {}, model.path, 2, exec::kSets);
              Classifier parts(device, {{"graphs", "0"}}, model.path, 2);
              NEED(c.module && c.module->sets() == exec::kSets && worker::warm_up(*c.module, 2, false).ok());
              auto stream = exec::HostStream::open();
              NEED(stream.ok() && parts.module);
              const std::uint32_t captures = seen.captures;
              for (unsigned round = 0; round < 4; ++round) {
                const std::unique_ptr<Slot> slots[] = {std::make_unique<Slot>(device, 2 * round + 1),
                                                       std::make_unique<Slot>(device, 2 * round + 2)};
                Batch batches[] = {slots[0]->batch(2), slots[1]->batch(1 + round % 2)};
                const std::uint64_t before = launches();
                for (std::uint32_t set : {0U, 1U}) c.module->begin(set, **stream, batches[set].items);
                NEED(launches() - before == 2U);
                for (std::uint32_t set : {0U, 1U}) NEED(c.module->finish(set, batches[set].reports));
                for (std::uint32_t set : {0U, 1U})
                  NEED(same(batches[set].answers,
                            answers_of(*parts.module,
                                       slots[set]->batch(static_cast<std::uint32_t>(batches[set].items.size())))));
                // Alone again, whatever set was in use.
                NEED(same(answers_of(*c.module, slots[0]->batch(2)), batches[0].answers));
              }
              NEED(seen.captures == captures);
              return true;
            }),
            0);
}

// A size's second run takes memory by the plan that the first has made, and in a capture none may be taken.
TEST(OneLaunch, IsCapturedBehindTheRunsThatTakeMemory) {
  EXPECT_EQ(with_dear_launches([](fake::ProviderState& seen, exec::Device& device) {
              const Model model(Net::plain);
              seen.second_runs_take = 1;
              Classifier c(device, {}, model.path, 3, exec::kSets);
              NEED(c.module && worker::warm_up(*c.module, 3, false).ok());
              const exec::GraphReport report = c.module->graphs();
              NEED(report.batches.size() == 3 && report.why_not.empty() && report.why_apart.empty());
              for (const exec::GraphTiming& t : report.batches) NEED(t.whole_ns != 0);
              return true;
            }),
            0);
}

// From the first size on, and from the second: the runtime's own graphs stay, and it is said once.
TEST(OneLaunch, ThatCannotBeCapturedLeavesTheModelsGraphs) {
  for (const bool later : {false, true}) {
    EXPECT_EQ(with_dear_launches([later](fake::ProviderState& seen, exec::Device& device) {
                const Model model(Net::plain);
                seen.run_us = 80'000;
                Classifier c(device, {}, model.path, 3), parts(device, {{"graphs", "0"}}, model.path, 3);
                NEED(c.module && parts.module);
                if (later) NEED(same(c.run(3, 5), parts.run(3, 5)) && c.module->graphs().batches.at(0).whole());
                seen.refuses_captures = 1;
                for (const std::uint32_t batch : {2U, 3U, 1U, 3U}) NEED(same(c.run(batch, 9), parts.run(batch, 9)));
                const exec::GraphReport report = c.module->graphs();
                NEED(report.batches.size() == 3 && report.why_not.empty());
                for (const exec::GraphTiming& t : report.batches) NEED(t.graph() && !t.whole());
                const std::string text = exec::text_of(report);
                NEED(text.find("; none in one launch: CUDA failure 900") != std::string::npos);
                NEED(text.find('\n') == std::string::npos && seen.most_sessions == 2U);  // c's and parts'
                const std::uint32_t replays = seen.replays, captures = seen.captures;
                seen.refuses_captures = 0;
                NEED(same(c.run(3, 5), parts.run(3, 5)) && seen.replays > replays && seen.captures == captures);
                return true;
              }),
              0)
        << later;
  }
}

// An item whose frame is unusable has no picture: what the table holds of an earlier batch is not made into one.
TEST(OneLaunch, IsNotForABatchInWhichAPictureIsMissing) {
  EXPECT_EQ(with_dear_launches([](fake::ProviderState&, exec::Device& device) {
              const Model model(Net::plain);
              Classifier c(device, {}, model.path, 2), parts(device, {{"graphs", "0"}}, model.path, 2);
              NEED(c.module && worker::warm_up(*c.module, 2, false).ok() && parts.module);
              const Slot slot(device, 6);
              {
                const Slot gone(device, 5);
                NEED(!answers_of(*c.module, gone.batch(2)).empty());
              }
              Batch batch = slot.batch(2), wanted = slot.batch(2);
              batch.items[0].frame.width = wanted.items[0].frame.width = 0;
              NEED(c.module->run(batch.items, batch.reports) && parts.module->run(wanted.items, wanted.reports));
              NEED(batch.reports[0].reason == Reason::bad_frame && batch.reports[1].reason == Reason::none);
              NEED(std::memcmp(&batch.answers[1], &wanted.answers[1], sizeof(leat_result)) == 0);
              return true;
            }),
            0);
}

// Before it is launched, and while it runs: the batch fails, and the process knows that its device is lost.
TEST(OneLaunch, ThatMeetsAFaultLosesTheDeviceAsAnyBatchDoes) {
  for (const bool before : {true, false})
    EXPECT_EQ(with_dear_launches([before](fake::ProviderState& seen, exec::Device& device) {
                const Model model(Net::plain);
                Classifier c(device, {}, model.path, 2);
                NEED(c.module && worker::warm_up(*c.module, 2, false).ok());
                NEED(c.module->graphs().batches.at(1).whole());
                const Slot slot(device, 5);
                const auto fault = [](void*) { fake::Host::mine().state().fault_pid = ::getpid(); };
                if (before) fault(nullptr);
                if (!before) {
                  fake::Host::mine().state().counts_time = 0;
                  seen.captured_us = 20'000;
                  NEED(device.api()->enqueue(device.handle(), fault, nullptr, nullptr, 0) == LEAT_DEVICE_OK);
                }
                NEED(answers_of(*c.module, slot.batch(2)).empty() && device.lost());
                NEED(!c.module->error().empty());
                fake::Host::mine().state().fault_pid = 0;
                return true;
              }),
              0)
        << before;
}

TEST(OneLaunch, IsNotAskedWhereTheModelsGraphsAreWantedAlone) {
  EXPECT_EQ(with_dear_launches([](fake::ProviderState& seen, exec::Device& device) {
              const Model model(Net::plain);
              seen.run_us = 80'000;
              Classifier c(device, {{"graphs", "model"}}, model.path, 2);
              NEED(c.module && worker::warm_up(*c.module, 2, false).ok());
              for (const exec::GraphTiming& t : c.module->graphs().batches) NEED(t.graph() && t.whole_ns == 0);
              NEED(seen.captures == 0U && c.module->graphs().why_apart.empty());
              return true;
            }),
            0);
}

}  // namespace
}  // namespace leat
