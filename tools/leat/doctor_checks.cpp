#include "tools/leat/doctor_checks.h"

#include <fcntl.h>
#include <liburing.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>

#include "leat/leat.h"
#include "shm/src/segments/control_groups.h"
#include "tools/leat/doctor_gpu.h"
#include "tools/leat/doctor_workers.h"
#include "tools/leat/library_search.h"

namespace leat::tools {
namespace {

std::string errno_text(int error) { return std::strerror(error); }

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

Finding kernel() {
  utsname name{};
  ::uname(&name);
  Finding finding{.subject = "kernel", .found = std::string("Linux ") + name.release};
  if (!kernel_at_least(name.release, 5, 4)) {
    finding.health = Health::fault;
    finding.cause = "Leat needs memfd seals and pidfd_open, which came with Linux 5.4";
    finding.cure = "install a kernel of at least 5.4 (Debian 11 or later)";
  }
  return finding;
}

Finding memfd() {
  Finding finding{.subject = "memfd"};
  const int fd = ::memfd_create("leat-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  const bool made = fd >= 0 && ::ftruncate(fd, 4096) == 0;
  const bool sealed = made && ::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (sealed) {
    finding.found = "sealed shared memory can be made";
    return finding;
  }
  finding.health = Health::fault;
  finding.found = std::string(fd < 0 ? "memfd_create" : "sealing") + " fails: " + errno_text(error);
  finding.cause = "the kernel or a seccomp filter of the container refuses it";
  finding.cure = "allow memfd_create and fcntl(F_ADD_SEALS) in the container's seccomp profile";
  return finding;
}

Finding kernel_ring() {
  Finding finding{.subject = "io_uring"};
  struct io_uring ring {};
  const int error = -::io_uring_queue_init(8, &ring, 0);
  if (error == 0) {
    ::io_uring_queue_exit(&ring);
    finding.found = "works";
    return finding;
  }
  finding.health = Health::note;
  finding.found = "not usable: " + errno_text(error) + "; epoll and pread are used instead";
  const std::string disabled = first_line("/proc/sys/kernel/io_uring_disabled");
  if (error == ENOSYS) {
    finding.cause = "the kernel has no io_uring, or a sandbox hides it";
    finding.cure = "nothing is needed; for faster file reading use a kernel of at least 5.6";
  } else if (!disabled.empty() && disabled != "0") {
    finding.cause = "kernel.io_uring_disabled is " + disabled;
    finding.cure = "sysctl kernel.io_uring_disabled=0, if the host's policy allows it";
  } else if (error == ENOMEM) {
    finding.cause = "the locked-memory limit is too small for its rings";
    finding.cure = "raise it: ulimit -l unlimited, or LimitMEMLOCK=infinity in the unit";
  } else {
    finding.cause = "a seccomp filter refuses io_uring_setup (container run-times do so by default)";
    finding.cure = "nothing is needed; to use it, allow io_uring_* in the container's seccomp profile";
  }
  return finding;
}

Finding pidfd() {
  Finding finding{.subject = "pidfd"};
  const long fd = ::syscall(SYS_pidfd_open, ::getpid(), 0);
  if (fd >= 0) {
    ::close(static_cast<int>(fd));
    finding.found = "workers can be watched without races";
    return finding;
  }
  finding.health = Health::note;
  finding.found = "pidfd_open fails: " + errno_text(errno);
  finding.cause = "a sandbox refuses it";
  finding.cure = "allow pidfd_open in the seccomp profile; the end of a worker is still seen on its socket";
  return finding;
}

Finding open_files() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  Finding finding{
      .subject = "open files",
      .found = "limit " + std::to_string(limit.rlim_cur) + ", may be raised to " + std::to_string(limit.rlim_max)};
  if (limit.rlim_max < 1024) {
    finding.health = Health::note;
    finding.cause = "each stream takes about six descriptors of the daemon";
    finding.cure = "ulimit -n 4096, or LimitNOFILE=4096 in the unit";
  }
  return finding;
}

Finding locked_memory() {
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  Finding finding{.subject = "locked memory"};
  finding.found =
      limit.rlim_cur == RLIM_INFINITY ? "no limit" : "limit " + std::to_string(limit.rlim_cur / 1024) + " KiB";
  if (limit.rlim_cur < 64U << 20 && ::geteuid() != 0) {
    finding.health = Health::note;
    finding.cause = "registered io_uring buffers of 'leat feed' are counted against it on older kernels";
    finding.cure = "ulimit -l 262144, or LimitMEMLOCK=256M in the unit; otherwise pread is used";
  }
  return finding;
}

Finding memory() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  std::uint64_t kib = 0, available = 0;
  while (file >> key >> kib) {
    std::getline(file, unit);
    if (key == "MemAvailable:") available = kib;
  }
  Finding finding{.subject = "memory", .found = std::to_string(available / 1024) + " MiB available"};
  const std::string limit = first_line("/sys/fs/cgroup/memory.max");
  std::uint64_t bytes = 0;
  if (std::from_chars(limit.data(), limit.data() + limit.size(), bytes).ec == std::errc{}) {
    finding.found += ", control group limit " + std::to_string(bytes >> 20) + " MiB";
    available = std::min(available, bytes >> 10);
  }
  if (available < 512U << 10) {
    finding.health = Health::note;
    finding.cause = "a 1080p stream takes about 20 MiB of slots, a worker with ONNX Runtime about 100 MiB";
    finding.cure = "free memory, or raise the container's limit, or use fewer streams and partitions";
  }
  return finding;
}

Finding cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  ::sched_getaffinity(0, sizeof mask, &mask);
  const int usable = CPU_COUNT(&mask);
  const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
  Finding finding{.subject = "cores", .found = std::to_string(usable) + " of " + std::to_string(online) + " usable"};
  if (const shm::CpuQuota quota = shm::cpu_quota(); quota.cores > 0) {
    finding.found += ", a CPU quota of " + quota_text(quota) + " (" + quota.where + ")";
    finding.health = Health::note;
    finding.cause =
        "a CPU quota stops every thread for the rest of its period once it is used up: latency gets a long tail";
    finding.cure = "give whole cores instead (cpuset, AllowedCPUs=), at least two";
  } else if (usable < 2) {
    finding.health = Health::note;
    finding.cause =
        "scheduler, workers and clients share one core: nothing spins and every hand-over is a context switch";
    finding.cure = "allow at least two cores (taskset, cpuset)";
  }
  return finding;
}

Finding clock_source() {
  const std::string source = first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  Finding finding{.subject = "clock", .found = source.empty() ? "source unknown" : source};
  if (source == "hpet" || source == "acpi_pm" || source == "jiffies") {
    finding.health = Health::note;
    finding.cause = "reading this clock takes a microsecond or more, several times per frame";
    finding.cure = "boot with clocksource=tsc if the machine's TSC is stable";
  }
  return finding;
}

Finding onnx_runtime() {
  Finding finding{.subject = "ONNX Runtime"};
  const OnnxRuntimeFound found = find_onnx_runtime();
  if (!found.version.empty()) {
    finding.found = "version " + found.version + " (" + found.path + ")";
    return finding;
  }
  finding.health = Health::fault;
  finding.found = "libonnxruntime.so.1 could not be loaded";
  finding.cause = found.problem;
  finding.cure =
      "run tools/setup, install the distribution's libonnxruntime, or set ONNXRUNTIME_ROOT to an unpacked release";
  return finding;
}

Finding socket_place() {
  Finding finding{.subject = "socket"};
  const std::string path = ::leat_default_socket();
  const std::string folder = path.substr(0, path.find_last_of('/'));
  if (::access(path.c_str(), F_OK) == 0) {
    leat_client* client = nullptr;
    const leat_connect_options options{.socket = path.c_str(), .name = "leat doctor", .timeout_ns = 0};
    if (::leat_connect(&options, &client) == LEAT_ERROR_ok) {
      ::leat_disconnect(client);
      finding.found = "leatd answers at " + path;
      return finding;
    }
    finding.health = Health::note;
    finding.found = path + " is there, but nothing usable answers";
    finding.cause = ::leat_last_error();
    finding.cure = "start leatd (it replaces a stale socket), or name another with LEAT_SOCKET";
    return finding;
  }
  finding.found = "no daemon yet at " + path;
  if (::access(folder.c_str(), W_OK) != 0) {
    finding.health = Health::note;
    finding.cause = folder + " is " + (errno == ENOENT ? "not there" : "not writable for this user");
    finding.cure = "make it, or give leatd and its clients another path with LEAT_SOCKET";
  }
  return finding;
}

Finding gpu() {
  Finding finding{.subject = "GPU", .health = Health::note};
  const GpuFound found = find_gpus();
  if (found.count > 0) {
    finding.health = Health::good;
    finding.found = std::to_string(found.count) + " (" + found.names + "), driver " + found.driver;
    if (found.count != 0 && found.cuda_problem.empty()) return finding;
    finding.health = Health::note;
    finding.cause = found.cuda_problem;
    finding.cure =
        "install the CUDA driver library of the same version as the kernel driver (in a container: expose the "
        "'compute' capability)";
    return finding;
  }
  finding.found = "none; CPU partitions are used";
  finding.cause = found.problem;
  finding.cure =
      "nothing is needed for CPU partitions; for a GPU install its driver and, in a container, pass the device through";
  return finding;
}

}  // namespace

std::span<const DoctorCheck> doctor_checks() {
  static constexpr DoctorCheck kChecks[] = {kernel,   memfd, pidfd,         kernel_ring,  open_files,   locked_memory,
                                            memory,   cores, clock_source,  onnx_runtime, socket_place, workers_user,
                                            landlock, gpu,   cuda_provider, device_pairs, gpu_probe};
  return kChecks;
}

std::string_view name_of(Health health) {
  switch (health) {
    case Health::good:
      return "good";
    case Health::note:
      return "note";
    case Health::fault:
      return "fault";
  }
  return "unknown";
}

bool kernel_at_least(std::string_view release, int major, int minor) {
  int found_major = 0, found_minor = 0;
  const char* end = release.data() + release.size();
  const auto first = std::from_chars(release.data(), end, found_major);
  if (first.ec != std::errc{}) return false;
  if (first.ptr < end && *first.ptr == '.') std::from_chars(first.ptr + 1, end, found_minor);
  return found_major > major || (found_major == major && found_minor >= minor);
}

}  // namespace leat::tools
