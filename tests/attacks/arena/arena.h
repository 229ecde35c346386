// Where attacks are fought: a leatd of its own, an honest client beside, its status asked all the while, and an
// assailant in a process and, where wanted, of a user of its own.
//
// fight() has the honest client alone and beside the attack by turns, and then expects what no attack may change:
//   * each of the honest client's frames is answered, rightly;
//   * its 99th percentile beside the attack is at most twice the one alone and 50 ms (not under a sanitizer): an attack
//     that works costs seconds. The bar proper, twice and 5 ms, depends on the machine and what else it does, so it is
//     held where one asks for it, with LEAT_ATTACK_BAR in the environment. Where a bound is missed, the assailant also
//     burns as much of the processors' time as the attack did and does nothing else: what the honest client loses to
//     that is the kernel's division of the cores, and nothing leatd could give it;
//   * leatd's status answers within a second;
//   * no turn of the scheduler thread takes over 1 ms of its own CPU time (not under a sanitizer). Interrupts, and
//     pauses of the whole virtual machine, count as CPU time of the thread they hit; so a thread beside does short
//     pieces of plain arithmetic and is measured alike, and what hits those is no fault of the scheduler thread;
//   * when the assailant is gone, so are its descriptors, memory, sessions and streams;
//   * where an attack has a purpose that leatd's counters show, it got there;
//   * leatd ends when told, while the attack goes on anew, within two seconds and with nothing in flight.
// Times are of one moment on a machine that others use too: a percentile is the median of several rounds', and each
// figure, the end's too, is measured again, up to twelve times, until it is good. What the attack itself does to the
// others shows each time. All who fight have one priority, by root's leave above the machine's other work. A round
// takes 0.2 s; LEAT_ATTACK_SECONDS in the environment is for all rounds of an attack together.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "shm/src/client/client_port.h"
#include "tests/serving/daemon_fixture.h"
#include "tools/base/text/sanitized.h"

namespace leat::test {

inline constexpr std::uint32_t kOtherUser = 65534;

enum class Setting : std::uint8_t {
  same_user,
  other_user,   // the assailant is kOtherUser
  unprivileged  // leatd is kOtherUser, with 1024 descriptors at most
};
// What this process may set up: all for root, the first for others. The first alone under a sanitizer.
std::vector<Setting> settings();
std::string name_of(const testing::TestParamInfo<Setting>& setting);
// leat_attacks(NAME): the tests of suite NAME in every setting.
#define LEAT_ATTACKS(suite)                                  \
  class suite : public ::testing::TestWithParam<Setting> {}; \
  INSTANTIATE_TEST_SUITE_P(As, suite, ::testing::ValuesIn(settings()), name_of)

// older: leatd is told to do without what new kernels offer (shm/src/protocol/kernel_features.h).
enum class Kernel : std::uint8_t { running, older };
std::string name_of_both(const testing::TestParamInfo<std::tuple<Setting, Kernel>>& both);
// The same in both ways.
#define LEAT_ATTACKS_ON_BOTH_KERNELS(suite)                                                                   \
  class suite : public ::testing::TestWithParam<std::tuple<Setting, Kernel>> {};                              \
  INSTANTIATE_TEST_SUITE_P(                                                                                   \
      As, suite,                                                                                              \
      ::testing::Combine(::testing::ValuesIn(settings()), ::testing::Values(Kernel::running, Kernel::older)), \
      name_of_both)

// One round of an attack, in the assailant's process: until about `until_ns` (CLOCK_MONOTONIC). What it keeps from
// round to round lives in what it captures. Returns what went otherwise than the attack supposes; empty: nothing.
using Attack = std::function<std::string(const std::string& socket, std::int64_t until_ns)>;

class Arena {
 public:
  // `limits`: more lines for [limits], and tables behind it. `more`: more TOML, behind the applications 'echo', which
  // the honest client uses (a millisecond a batch), and 'bulk' (large batches that take next to no time). `daemon`:
  // more lines for [daemon].
  Arena(Setting setting, Attack attack, const std::string& limits = {}, const std::string& more = {},
        const std::string& daemon = {}, Kernel kernel = Kernel::running);
  ~Arena();
  // `reached`: whether the attack got to what it is for; asked between rounds. Until then it goes on, for a minute at
  // most: how far a round gets is the processors' affair.
  using Purpose = std::function<bool(const Arena&)>;
  void fight(const Purpose& reached = nullptr);

  Leatd& leatd() { return *leatd_; }
  // Connections ended, by cause, over the whole fight; and counters of the daemon. All as of the last look.
  std::uint64_t violations(shm::Violation cause) const { return causes_.at(static_cast<std::size_t>(cause)); }
  std::uint64_t counted(shm::DaemonCounter counter) const;
  std::uint64_t late_cancels() const { return late_cancels_; }  // of the assailant's clients that were there last
  std::uint32_t assailant_uid() const;
  // What the assailant's user was refused, by cause, and ended for.
  std::uint64_t refusals(shm::Refusal why) const;
  std::uint64_t violations_of_user() const;
  const std::string& last_log() const { return log_; }  // of the leatd that is ended
  // What a [limits.users.UID] table of `lines` says for whoever attacks, in any setting.
  static std::string limits_of_assailant(Setting setting, const std::string& lines);

 private:
  struct Assailant;
  struct Honest;
  struct Watcher;
  struct Control;
  struct Figures {
    double alone_ms = 0, burning_ms = 0, beside_ms = 0, status_ms = 0;  // burning: 0 where it was not measured
    std::uint64_t own_stalls = 0, control_stalls = 0;  // of the scheduler thread, and of plain arithmetic beside it
    double excess_ms() const { return beside_ms - (2 * std::max(alone_ms, burning_ms) + allowed_ms()); }
    static double allowed_ms();
    std::uint64_t long_turns() const { return own_stalls - std::min(own_stalls, control_stalls); }
    bool good() const { return status_ms <= 1000 && (kSanitized || (excess_ms() <= 0 && long_turns() == 0)); }
    void keep_best_of(const Figures& other);  // of each figure for itself
  };
  Figures measure(Honest& honest, Watcher& watcher, const Control& control, Assailant& assailant, bool burn);
  void look();
  void expect_nothing_left(const Footprint& before);
  void expect_the_end();

  Setting setting_;
  Attack attack_;
  std::unique_ptr<Leatd> leatd_;
  std::vector<std::uint64_t> causes_;
  std::optional<shm::RecordSnapshot> daemon_, user_;
  std::uint64_t late_cancels_ = 0;
  std::string log_;
};

}  // namespace leat::test
