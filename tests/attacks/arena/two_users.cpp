#include "tests/attacks/arena/two_users.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "tests/attacks/arena/arena.h"

namespace leat::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

Tally send(const std::string& socket, const Flow& flow) {
  Tally out;
  auto client = Client::connect(socket, "sender");
  auto stream = client.ok() ? client->open_stream(flow.stream) : Result<Stream>(Error{client.error()});
  if (!stream.ok()) {
    std::fprintf(stderr, "%s\n", stream.error().c_str());
    return out;
  }
  const auto take = [&](std::chrono::nanoseconds max) {
    const auto answer = client->next_answer(max);
    if (!answer) return;
    ++out.answered;
    out.in_time += answer->outcome() == Outcome::completed ? 1 : 0;
    out.refused += answer->outcome() == Outcome::rejected ? 1 : 0;
    out.poison += answer->reason() == Reason::poison ? 1 : 0;
  };
  const auto begin = Clock::now();
  for (std::uint32_t i = 0; i < flow.frames; ++i) {
    const auto due = begin + std::chrono::nanoseconds(static_cast<std::int64_t>(i / flow.rate * 1e9));
    for (auto now = Clock::now(); now < due; now = Clock::now()) take(due - now);
    auto frame = stream->acquire();
    if (!frame) continue;  // every slot waits for its answer
    flow.fill(frame->raw());
    out.submitted += frame->submit() == LEAT_ERROR_ok ? 1 : 0;
  }
  for (const auto end = Clock::now() + kPatience; out.answered < out.submitted && Clock::now() < end;) take(100ms);
  return out;
}

}  // namespace

Sender::Sender(std::uint32_t uid, const std::string& socket, const Flow& flow) {
  int words[2];
  if (pipe(words) != 0) return;
  pid_ = fork();
  if (pid_ == 0) {
    Tally tally;
    if (setgroups(0, nullptr) == 0 && setresgid(uid, uid, uid) == 0 && setresuid(uid, uid, uid) == 0)
      tally = send(socket, flow);
    (void)!write(words[1], &tally, sizeof tally);
    _exit(0);
  }
  close(words[1]);
  from_ = words[0];
}

Sender::~Sender() {
  if (pid_ > 0) (void)waitpid(pid_, nullptr, 0);
  close(from_);
}

Tally Sender::tally() const {
  Tally out;
  EXPECT_EQ(read(from_, &out, sizeof out), static_cast<ssize_t>(sizeof out));
  return out;
}

std::unique_ptr<Leatd> open_to_all(const std::string& config, bool as_root) {
  (void)setpriority(PRIO_PROCESS, 0, -15);  // all who take part, above the machine's other work
  const std::string user = std::to_string(kOtherUser);
  std::vector<std::string> prefix;
  if (!as_root) prefix = {"/usr/bin/setpriv", "--reuid", user, "--regid", user, "--clear-groups"};
  auto leatd = std::make_unique<Leatd>("[daemon]\nsocket_mode = \"0666\"\n" + config, std::vector<std::string>{},
                                       prefix, as_root ? getuid() : kOtherUser);
  const std::string& socket = leatd->socket();
  EXPECT_EQ(chmod(socket.substr(0, socket.rfind('/')).c_str(), 0755), 0);
  return leatd;
}

}  // namespace leat::test
