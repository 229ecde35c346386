// The core's deadline queue (a treap threaded through the tasks) against the other candidate, a min-max heap of task
// ids with their positions, on the same operations: steady size, an insertion for every removal, deadlines near arrival
// order. Both must remove the same tasks. What the heap cannot do: go through the queue in order, which expiry, batch
// cutting and fitting need.
#include "engine/core/queue/deadline_queue.h"

#include <bit>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "engine/sim/workload/random.h"
#include "tools/base/cli/command.h"
#include "tools/base/cli/json_output.h"
#include "tools/base/json/json.h"

namespace {

using namespace leat;
using core::Task;
using core::TaskId;

constexpr TaskId kNone = core::kNone;

// Levels alternate: on even ones a node is no later than what hangs below it, on odd ones no earlier.
class MinMaxHeap {
 public:
  explicit MinMaxHeap(std::size_t tasks) : at_(tasks, 0) { heap_.reserve(tasks); }
  [[nodiscard]] TaskId front() const { return heap_.empty() ? kNone : heap_[0]; }
  [[nodiscard]] TaskId back(const Task* t) const {
    if (heap_.size() < 3) return heap_.empty() ? kNone : heap_.back();
    return less(t, heap_[1], heap_[2]) ? heap_[2] : heap_[1];
  }
  void insert(const Task* t, TaskId id) {
    heap_.push_back(id);
    at_[id] = heap_.size() - 1;
    up(t, heap_.size() - 1);
  }
  void erase(const Task* t, TaskId id) {
    const std::size_t hole = at_[id];
    const TaskId last = heap_.back();
    heap_.pop_back();
    if (hole == heap_.size()) return;
    put(hole, last);
    down(t, hole);
    up(t, at_[last]);
  }

 private:
  static bool less(const Task* t, TaskId a, TaskId b) {
    return t[a].deadline_ns != t[b].deadline_ns ? t[a].deadline_ns < t[b].deadline_ns : t[a].serial < t[b].serial;
  }
  static bool on_min_level(std::size_t i) { return (std::bit_width(i + 1) & 1) == 1; }
  [[nodiscard]] bool before(const Task* t, std::size_t a, std::size_t b, bool min) const {
    return min ? less(t, heap_[a], heap_[b]) : less(t, heap_[b], heap_[a]);
  }
  void put(std::size_t i, TaskId id) {
    heap_[i] = id;
    at_[id] = i;
  }
  void swap(std::size_t a, std::size_t b) {
    const TaskId x = heap_[a], y = heap_[b];
    put(a, y);
    put(b, x);
  }
  void up(const Task* t, std::size_t i) {
    if (i == 0) return;
    bool min = on_min_level(i);
    if (before(t, (i - 1) / 2, i, min)) {
      swap(i, (i - 1) / 2);
      i = (i - 1) / 2;
      min = !min;
    }
    for (; i > 2 && before(t, i, ((i - 1) / 2 - 1) / 2, min); i = ((i - 1) / 2 - 1) / 2) swap(i, ((i - 1) / 2 - 1) / 2);
  }
  void down(const Task* t, std::size_t i) {
    const bool min = on_min_level(i);
    for (std::size_t child = 2 * i + 1; child < heap_.size(); child = 2 * i + 1) {
      std::size_t best = child;
      for (const std::size_t c : {child + 1, 2 * child + 1, 2 * child + 2, 2 * child + 3, 2 * child + 4}) {
        if (c < heap_.size() && before(t, c, best, min)) best = c;
      }
      if (!before(t, best, i, min)) return;
      swap(i, best);
      if (best <= child + 1) return;  // a child has no grandchildren of this kind
      if (before(t, (best - 1) / 2, best, min)) swap(best, (best - 1) / 2);
      i = best;
    }
  }
  std::vector<TaskId> heap_;
  std::vector<std::size_t> at_;
};

struct Mix {
  const char* name;
  std::uint32_t front, middle;  // removals in permille; the rest at the back
};
constexpr Mix kMixes[] = {{"earliest first", 1000, 0}, {"both ends", 500, 0}, {"both ends and the middle", 450, 100}};
constexpr std::uint32_t kSizes[] = {16, 128, 1024, 8192};

struct Measured {
  double ns = 0;              // per insertion and removal
  std::uint64_t removed = 0;  // hash of the removed tasks
};

template <class Insert, class Front, class Back, class Erase>
Measured drive(std::vector<Task>& tasks, const Mix& mix, std::uint32_t size, std::uint64_t operations, Insert insert,
               Front front, Back back, Erase erase) {
  sim::Random random(7);
  std::uint64_t serial = 0, hash = 1;
  const auto add = [&](TaskId id) {
    tasks[id].serial = ++serial;
    tasks[id].deadline_ns = static_cast<core::TimeNs>(serial * 1000 + random.below(64'000));
    insert(id);
  };
  for (TaskId id = 0; id < size; ++id) add(id);
  const auto started = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < operations; ++i) {
    const std::uint64_t draw = random.below(1000);
    const TaskId id = draw < mix.front                ? front()
                      : draw < mix.front + mix.middle ? static_cast<TaskId>(random.below(size))
                                                      : back();
    erase(id);
    hash = hash * 0x100000001B3u + id;
    add(id);
  }
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - started;
  return {took.count() / static_cast<double>(operations), hash};
}

constexpr cli::Option kOptions[] = {
    cli::integer_option("operations", "300000", 100, 1e9, "per measurement"),
    cli::integer_option("repeats", "3", 1, 100, "the least time of so many counts"),
    cli::json_option(),
};
constexpr cli::Command kCommand = {
    .name = "deadline_queue", .summary = "the treap of the deadline queue against a min-max heap", .options = kOptions};

}  // namespace

int main(int argc, char** argv) {
  const cli::Arguments args = cli::parse_or_exit(kCommand, argc, argv);
  const auto operations = static_cast<std::uint64_t>(args.integer("operations"));
  Json out = {{"operations", operations}};
  const cli::JsonOutput json(args);
  if (!json.alone())
    std::printf("ns per removal and insertion\n%-26s %8s %8s %8s %8s\n", "removals", "tasks", "treap", "heap", "ratio");
  for (const Mix& mix : kMixes) {
    for (const std::uint32_t size : kSizes) {
      double treap = 1e18, heap = 1e18;
      for (std::int64_t r = 0; r < args.integer("repeats"); ++r) {
        std::vector<Task> tasks(size);
        core::DeadlineQueue queue;
        const Measured a = drive(
            tasks, mix, size, operations, [&](TaskId id) { queue.insert(tasks.data(), id); },
            [&] { return queue.front(); }, [&] { return queue.back(); },
            [&](TaskId id) { queue.erase(tasks.data(), id); });
        MinMaxHeap other(size);
        const Measured b = drive(
            tasks, mix, size, operations, [&](TaskId id) { other.insert(tasks.data(), id); },
            [&] { return other.front(); }, [&] { return other.back(tasks.data()); },
            [&](TaskId id) { other.erase(tasks.data(), id); });
        if (a.removed != b.removed) {
          std::fprintf(stderr, "deadline_queue: treap and heap removed different tasks (%s, %u tasks)\n", mix.name,
                       size);
          return 1;
        }
        treap = std::min(treap, a.ns);
        heap = std::min(heap, b.ns);
      }
      out["ns"][mix.name][std::to_string(size)] = {{"treap", treap}, {"heap", heap}};
      if (!json.alone()) std::printf("%-26s %8u %8.1f %8.1f %8.2f\n", mix.name, size, treap, heap, treap / heap);
    }
  }
  return json.write(out.dump(1));
}
