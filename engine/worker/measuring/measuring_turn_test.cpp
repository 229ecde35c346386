#include "engine/worker/measuring/measuring_turn.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace leat::worker {
namespace {

Fd shared_file() { return Fd(::memfd_create("turns", MFD_CLOEXEC)); }
Fd copy_of(const Fd& fd) { return Fd(::dup(fd.get())); }

// Another worker, which has its turn until it ends.
class Other {
 public:
  explicit Other(const Fd& file) {
    EXPECT_EQ(::pipe2(has_.data(), O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(ends_.data(), O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      MeasuringTurn turn(copy_of(file));
      char c = turn.take() ? 'y' : 'n';
      (void)!::write(has_[1], &c, 1);
      ::close(ends_[1]);
      (void)!::read(ends_[0], &c, 1);  // or its parent has ended
      ::_exit(0);
    }
    ::close(has_[1]);
    ::close(ends_[0]);
  }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;
  [[nodiscard]] bool has_turn() const {
    char c = 0;
    return ::read(has_[0], &c, 1) == 1 && c == 'y';
  }
  void end() {
    ::close(ends_[1]);
    (void)::waitpid(pid_, nullptr, 0);
  }

 private:
  std::array<int, 2> has_{}, ends_{};
  pid_t pid_ = 0;
};

TEST(MeasuringTurn, IsOnesAloneUntilHeEnds) {
  const Fd file = shared_file();
  Other other(file);
  ASSERT_TRUE(other.has_turn());
  MeasuringTurn mine(copy_of(file), 20'000'000);
  EXPECT_FALSE(mine.take()) << "his";
  EXPECT_FALSE(mine.take()) << "and no patience is left";
  other.end();
  EXPECT_TRUE(mine.take());
}

TEST(MeasuringTurn, IsGivenOn) {
  const Fd file = shared_file();
  MeasuringTurn mine(copy_of(file), 20'000'000);
  EXPECT_TRUE(mine.take());
  mine.give();
  Other other(file);
  EXPECT_TRUE(other.has_turn());
  other.end();
}

TEST(MeasuringTurn, NeedsNobody) {
  MeasuringTurn alone;
  EXPECT_TRUE(alone.take());
  alone.give();
}

}  // namespace
}  // namespace leat::worker
