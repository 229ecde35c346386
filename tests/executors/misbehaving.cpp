// An executor that does what the first byte of its frame asks for, most of it what an executor must not do
// (tests/serving/sandbox_test.cpp). A call that is refused fails the batch with a line that says so; one that goes
// through leaves the frame completed. Before the worker is ready it is asked for nothing: the frames of calibration are
// grey.
#include "tests/executors/misbehaving.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "leat/executor.h"

extern char** environ;

struct Session {
  std::string file;  // what Ask::write_file makes
};

namespace {

using leat::test::Ask;

constexpr std::size_t kWork = 64 << 20;  // bytes that Ask::work takes

std::string option(const char* extra, const std::string& key) {
  std::string lines = extra != nullptr ? extra : "";
  const auto at = lines.find(key + "=");
  if (at == std::string::npos) return {};
  lines.erase(0, at + key.size() + 1);
  return lines.substr(0, lines.find('\n'));
}

// What serving needs: memory, threads, files to read, a program of its own in memory. 0, or an errno.
int work() {
  int error = 0;
  std::thread([&error] {
    void* memory = mmap(nullptr, kWork, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    char text[64];
    const int anonymous = memfd_create("misbehaving", MFD_CLOEXEC);
    if (memory == MAP_FAILED || file < 0 || read(file, text, sizeof(text)) <= 0 || anonymous < 0 ||
        ftruncate(anonymous, 4096) != 0 || mprotect(memory, 4096, PROT_READ | PROT_EXEC) != 0)
      error = errno;
    if (file >= 0) close(file);
    if (anonymous >= 0) close(anonymous);
    if (memory != MAP_FAILED) munmap(memory, kWork);
  }).join();
  return error;
}

// A float too small for all its digits, computed on a thread that is made here. 0: it is taken for zero.
int compute_denormals() {
  bool zero = false;
  std::thread([&zero] {
    volatile float min = 1.5e-38F, tenth = .1F;
    const volatile float denormal = min * tenth;
    zero = denormal == 0;
  }).join();
  return zero ? 0 : ERANGE;
}

int start_program() {
  char name[] = "true";
  char* argv[] = {name, nullptr};
  pid_t child = 0;
  const int error = posix_spawnp(&child, name, nullptr, nullptr, argv, environ);
  if (error == 0) (void)waitpid(child, nullptr, 0);
  return error;
}

int error_of(long result) { return result < 0 ? errno : 0; }

// 0: it went through; else the errno it was refused with.
int obey(const Session& session, Ask ask) {
  switch (ask) {
    case Ask::open_socket: {
      const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const int error = error_of(fd);
      if (fd >= 0) close(fd);
      return error;
    }
    case Ask::write_file: {
      const int fd = open(session.file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
      const int error = error_of(fd);
      if (fd >= 0) close(fd);
      return error;
    }
    case Ask::remove_file:
      return error_of(unlink(session.file.c_str()));
    case Ask::start_program:
      return start_program();
    case Ask::trace:
      return error_of(ptrace(PTRACE_SEIZE, getppid(), nullptr, nullptr));
    case Ask::signal:
      return error_of(kill(getppid(), SIGURG));
    case Ask::io_uring: {
      char parameters[120] = {};
      const long fd = syscall(SYS_io_uring_setup, 1, parameters);
      const int error = error_of(fd);
      if (fd >= 0) close(static_cast<int>(fd));
      return error;
    }
    case Ask::work:
      return work();
    case Ask::denormals:
      return compute_denormals();
    case Ask::crash:
      std::abort();
    case Ask::hang:
      for (;;) (void)pause();
    case Ask::nothing:
      return 0;
  }
  return 0;
}

int open_session(const leat_session_options* options, leat_session** out, char*, size_t) {
  *out = reinterpret_cast<leat_session*>(new Session{option(options->extra, "file")});
  return 0;
}

void close_session(leat_session* handle) { delete reinterpret_cast<Session*>(handle); }

int describe(leat_session*, std::uint32_t batch, leat_tensor* inputs, std::uint32_t* input_count, leat_tensor* outputs,
             std::uint32_t* output_count, char*, size_t) {
  inputs[0] = {};
  inputs[0].shape[0] = batch;
  inputs[0].rank = 2;
  inputs[0].dtype = LEAT_U8;
  outputs[0] = inputs[0];
  outputs[0].shape[1] = 8;
  outputs[0].bytes = batch * std::uint64_t{8};
  *input_count = *output_count = 1;
  return 0;
}

int run(leat_session* handle, std::uint32_t batch, const leat_tensor* inputs, std::uint32_t, leat_tensor* outputs,
        std::uint32_t, char* error, size_t error_bytes) {
  std::memset(outputs[0].data, 0, batch * std::size_t{8});
  for (std::uint32_t i = 0; i < batch; ++i) {
    const auto first = *static_cast<const unsigned char*>(inputs[i].data);
    const int refused = obey(*reinterpret_cast<Session*>(handle), static_cast<Ask>(first));
    if (refused == 0) continue;
    std::snprintf(error, error_bytes, "misbehaving: %d was refused: %s", first, std::strerror(refused));
    return 1;
  }
  return 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const leat_executor* leat_executor_entry(void) {
  static constexpr leat_executor kExecutor = {LEAT_EXECUTOR_ABI, "misbehaving", open_session,
                                              close_session,     describe,      run};
  return &kExecutor;
}
