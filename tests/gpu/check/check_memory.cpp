// leat-gpu-check memory: device memory between processes as leatd passes it on. This process keeps the descriptor and
// never touches a driver, as leatd; makers and importers are children of their own.
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/src/protocol/control_protocol.h"
#include "tests/gpu/check/check.h"
#include "tests/gpu/check/sealed_pages.h"

namespace leat::check {
namespace {

constexpr cli::Option kOptions[] = {kGpuOption};
constexpr cli::Command kCommand = {.name = "leat-gpu-check memory",
                                   .summary = "device memory between processes, its maker's death, pinned host memory",
                                   .options = kOptions};
constexpr std::uint64_t kBytes = 8 << 20;

std::vector<std::uint32_t> pattern(std::uint32_t seed) {
  std::vector<std::uint32_t> out(kBytes / 4);
  for (auto& word : out) word = seed = seed * 1664525 + 1013904223;
  return out;
}

// Runs `act` in a child; its line is empty where all was good.
template <class Act>
std::string in_child(Act act, bool* killed = nullptr) {
  int pair[2];
  if (::pipe(pair) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(pair[0]);
    const std::string line = act();
    (void)!::write(pair[1], line.data(), line.size());
    ::_exit(0);
  }
  ::close(pair[1]);
  std::string line;
  char part[256];
  for (ssize_t got; (got = ::read(pair[0], part, sizeof part)) > 0;) line.append(part, static_cast<std::size_t>(got));
  ::close(pair[0]);
  int status = 0;
  (void)::waitpid(child, &status, 0);
  if (killed != nullptr) *killed = WIFSIGNALED(status);
  if (!WIFSIGNALED(status) || killed != nullptr) return line;
  return line + " ended by signal " + std::to_string(WTERMSIG(status));
}

std::string check_import(const cli::Arguments& arguments, int fd, std::uint32_t seed) {
  auto device = open_device(arguments);
  if (!device.ok()) return device.error();
  auto memory = (*device)->import_memory(fd, kBytes);
  if (!memory.ok()) return memory.error();
  std::vector<std::uint32_t> back(kBytes / 4);
  if (!(*device)->copy(back.data(), memory->data(), kBytes) || !(*device)->wait()) return (*device)->error();
  return back == pattern(seed) ? "" : "the bytes are others than the maker's";
}

// A sealed memfd as a client's frames are, read by the device where it lies.
std::string check_registration(const cli::Arguments& arguments, bool read_only) {
  auto device = open_device(arguments);
  if (!device.ok()) return device.error();
  auto pages = SealedPages::create(kBytes);
  if (!pages.ok()) return pages.error();
  const auto data = pattern(77);
  pages->write(0, {reinterpret_cast<const std::uint8_t*>(data.data()), kBytes});
  if (read_only)
    if (auto secured = pages->secure(); !secured.ok()) return secured.error();
  void* const at = read_only ? pages->data() : pages->writable();
  if (const Status pinned = (*device)->register_host(at, kBytes, read_only); !pinned.ok()) return pinned.error();
  auto there = (*device)->allocate(kBytes);
  if (!there.ok()) return there.error();
  std::vector<std::uint32_t> back(kBytes / 4);
  if (!(*device)->copy(there->data(), at, kBytes) || !(*device)->copy(back.data(), there->data(), kBytes) ||
      !(*device)->wait())
    return (*device)->error();
  (*device)->unregister_host(at);
  return back == data ? "" : "the device read other bytes";
}

int run(const cli::Arguments& arguments) {
  Answers answers("memory");
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0)
    return cli::fail("leat-gpu-check", "no socket pair");
  // The maker ends in two ways: by itself, and killed before anybody has imported.
  for (const bool murdered : {false, true}) {
    const std::uint32_t seed = murdered ? 5 : 3;
    bool was_killed = false;
    const std::string made = in_child(
        [&]() -> std::string {
          auto device = open_device(arguments);
          if (!device.ok()) return device.error();
          auto memory = (*device)->allocate(kBytes, true);
          if (!memory.ok()) return memory.error();
          const auto data = pattern(seed);
          if (!(*device)->copy(memory->data(), data.data(), kBytes) || !(*device)->wait()) return (*device)->error();
          auto fd = (*device)->export_memory(*memory);
          if (!fd.ok()) return fd.error();
          const int fds[] = {*fd};
          if (auto sent = shm::send_bytes(sockets[1], std::vector<std::byte>(1), fds); !sent) return sent.error();
          if (murdered) (void)::kill(::getpid(), SIGKILL);
          return {};
        },
        &was_killed);
    const std::string name = murdered ? "import_after_the_maker_was_killed" : "import_by_another_process";
    std::vector<std::byte> packet;
    std::vector<shm::Fd> fds;
    std::string text;
    if (!made.empty() || was_killed != murdered ||
        shm::receive(sockets[0], false, &packet, &fds, &text) != shm::Got::message || fds.size() != 1) {
      answers.verdict(name, false, made.empty() ? "no descriptor came" : made);
      continue;
    }
    // Kept by a process without CUDA, imported anew twice: a consumer, and the same after its restart.
    std::string why = in_child([&] { return check_import(arguments, fds[0].get(), seed); });
    if (why.empty()) why = in_child([&] { return check_import(arguments, fds[0].get(), seed); });
    answers.verdict(name, why.empty(), why);
  }
  for (const bool read_only : {false, true}) {
    const std::string why = in_child([&] { return check_registration(arguments, read_only); });
    answers.verdict(read_only ? "reads_read_only_frames" : "reads_frames", why.empty(), why);
  }
  auto device = open_device(arguments);
  if (!device.ok()) return cli::fail("leat-gpu-check", device.error());
  const leat_device_info& info = (*device)->info();
  answers.value("uuid", info.uuid);
  answers.value("name", info.name);
  answers.value("multiprocessors", info.multiprocessors);
  answers.value("memory_mib", info.memory_bytes >> 20);
  answers.value("pins_read_only", info.reads_read_only != 0);  // or else frames are copied once on the host
  answers.value("stand_in", info.has_provider == 0);
  answers.value("pictures", info.picture_source == LEAT_PICTURE_IN_PLACE ? "read in place" : "uploaded");
  return answers.print();
}

}  // namespace

extern const cli::Subcommand kCheckMemory;
const cli::Subcommand kCheckMemory = {&kCommand, run};

}  // namespace leat::check
