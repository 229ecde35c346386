// An executor that fails as its model file says, in words of key=value (tests/serving/change_faults_test.cpp):
//
//   version=N    what it answers
//   columns=N    how many values; 4
//   open=W       as it is opened
//   grey=W       on what it is measured with, which is grey
//   later=W      on every other frame
//   close=hang   it does not let itself be closed
//   on=NAME      open= is that partition's alone
//   until=FILE   grey= and later= are for while that file exists
//
// W: refuse, memory, crash, exit, hang, junk (on the control socket), hangup (of that), nan, inf, or a number of
// milliseconds that it takes.
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <thread>

#include "leat/executor.h"

namespace {

constexpr int kControlFd = 3;  // a worker's
constexpr std::uint8_t kGrey = 128;
constexpr std::size_t kTooMuch = std::size_t{1} << 60;

struct Faulty {
  std::map<std::string, std::string> words;
  std::uint32_t columns = 4;
  float version = 0;
  [[nodiscard]] std::string word(const std::string& key) const {
    const auto at = words.find(key);
    return at == words.end() ? std::string() : at->second;
  }
};

bool is_partition(const std::string& name) {
  std::ifstream file("/proc/self/cmdline");
  std::string program, partition;
  return std::getline(file, program, '\0') && std::getline(file, partition, '\0') && partition == name;
}

int fail(const std::string& line, char* error, std::size_t error_bytes) {
  std::snprintf(error, error_bytes, "%s", line.c_str());
  return 1;
}

// 0: nothing stands in the way.
int obey(const std::string& what, char* error, std::size_t error_bytes) {
  if (what == "refuse") return fail("the faulty executor refuses", error, error_bytes);
  if (what == "memory") {
    void* const none = mmap(nullptr, kTooMuch, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (none == MAP_FAILED) return fail(std::string("no memory for it: ") + std::strerror(errno), error, error_bytes);
  }
  if (what == "crash") (void)std::raise(SIGSEGV);
  if (what == "exit") std::_Exit(7);
  if (what == "hang")
    for (;;) (void)pause();
  if (what == "junk") {
    const char junk[64] = "junk";
    (void)send(kControlFd, junk, sizeof junk, MSG_NOSIGNAL);
  }
  if (what == "hangup") (void)shutdown(kControlFd, SHUT_RDWR);
  if (!what.empty() && what.find_first_not_of("0123456789") == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(what.c_str())));
  return 0;
}

int open_session(const leat_session_options* options, leat_session** out, char* error, std::size_t error_bytes) {
  auto* const session = new Faulty;
  std::ifstream file(options->model_path);
  for (std::string word; file >> word;)
    session->words[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  if (const std::string columns = session->word("columns"); !columns.empty())
    session->columns = static_cast<std::uint32_t>(std::atoi(columns.c_str()));
  session->version = static_cast<float>(std::atoi(session->word("version").c_str()));
  const std::string on = session->word("on");
  if (on.empty() || is_partition(on))
    if (obey(session->word("open"), error, error_bytes) != 0) {
      delete session;
      return 1;
    }
  *out = reinterpret_cast<leat_session*>(session);
  return 0;
}

void close_session(leat_session* handle) {
  auto* const session = reinterpret_cast<Faulty*>(handle);
  (void)obey(session->word("close"), nullptr, 0);
  delete session;
}

int describe(leat_session* handle, std::uint32_t batch, leat_tensor* inputs, std::uint32_t* input_count,
             leat_tensor* outputs, std::uint32_t* output_count, char*, std::size_t) {
  const auto* const session = reinterpret_cast<const Faulty*>(handle);
  inputs[0] = {};
  inputs[0].shape[0] = batch;
  inputs[0].rank = 2;
  inputs[0].dtype = LEAT_U8;
  outputs[0] = inputs[0];
  outputs[0].dtype = LEAT_F32;
  outputs[0].shape[1] = session->columns;
  outputs[0].bytes = batch * std::uint64_t{sizeof(float)} * session->columns;
  *input_count = *output_count = 1;
  return 0;
}

int run(leat_session* handle, std::uint32_t batch, const leat_tensor* inputs, std::uint32_t, leat_tensor* outputs,
        std::uint32_t, char* error, std::size_t error_bytes) {
  const auto* const session = reinterpret_cast<const Faulty*>(handle);
  const std::string until = session->word("until");
  const bool now = until.empty() || access(until.c_str(), F_OK) == 0;
  std::string what;
  for (std::uint32_t i = 0; i < batch && now; ++i) {
    const bool grey = *static_cast<const std::uint8_t*>(inputs[i].data) == kGrey;
    what = session->word(grey ? "grey" : "later");
  }
  if (obey(what, error, error_bytes) != 0) return 1;
  auto* const values = static_cast<float*>(outputs[0].data);
  for (std::uint32_t i = 0; i < batch * session->columns; ++i) values[i] = session->version;
  if (what == "nan") values[0] = std::numeric_limits<float>::quiet_NaN();
  if (what == "inf") values[session->columns - 1] = -std::numeric_limits<float>::infinity();
  return 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const leat_executor* leat_executor_entry(void) {
  static constexpr leat_executor kExecutor = {LEAT_EXECUTOR_ABI, "faulty", open_session, close_session, describe, run};
  return &kExecutor;
}
