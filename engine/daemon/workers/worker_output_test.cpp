#include "engine/daemon/workers/worker_output.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <regex>
#include <string>

namespace leat::daemon {
namespace {

// What goes to standard error meanwhile.
class Caught {
 public:
  Caught() : file_(std::tmpfile()), kept_(::dup(STDERR_FILENO)) { ::dup2(::fileno(file_), STDERR_FILENO); }
  ~Caught() {
    ::dup2(kept_, STDERR_FILENO);
    ::close(kept_);
    std::fclose(file_);
  }
  Caught(const Caught&) = delete;
  Caught& operator=(const Caught&) = delete;
  [[nodiscard]] std::string text() const {
    std::string out(1 << 16, '\0');
    out.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::pread(::fileno(file_), out.data(), out.size(), 0))));
    return out;
  }

 private:
  std::FILE* file_;
  int kept_;
};

TEST(WorkerOutput, EveryLineHasItsTimeAndPiecesOfOneHaveOne) {
  WorkerOutput output;
  TimedCalls calls;
  auto worker = output.open();
  ASSERT_TRUE(worker.ok()) << worker.error();
  const Caught caught;
  for (const std::string piece : {"one\ntw", "o\n", "three\n"}) {
    ASSERT_EQ(::write(worker->get(), piece.data(), piece.size()), static_cast<ssize_t>(piece.size()));
    EXPECT_TRUE(output.pass_on(1, calls));
  }
  const std::string time = R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} )";
  EXPECT_TRUE(std::regex_match(caught.text(), std::regex(time + "one\n" + time + "two\n" + time + "three\n")))
      << caught.text();
}

// The times count too, else lines of nothing would be twenty times as long.
TEST(WorkerOutput, EmptyLinesFillNoLog) {
  WorkerOutput output;
  TimedCalls calls;
  auto worker = output.open();
  ASSERT_TRUE(worker.ok()) << worker.error();
  const Caught caught;
  const std::string nothing(4096, '\n');
  for (int i = 0; i < 16; ++i) {
    ASSERT_EQ(::write(worker->get(), nothing.data(), nothing.size()), static_cast<ssize_t>(nothing.size()));
    EXPECT_TRUE(output.pass_on(1, calls));
  }
  EXPECT_LE(caught.text().size(), 64U << 10);
}

}  // namespace
}  // namespace leat::daemon
