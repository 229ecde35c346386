// Group 3: what MPS gives this user on this device: a private daemon, shares, limits, what a fault costs.
#include <memory>
#include <optional>
#include <sstream>

#include "bench/gpu/device/driver.h"
#include "bench/gpu/device/gpu.h"
#include "bench/gpu/questions/client.h"
#include "bench/gpu/questions/groups.h"

namespace leat::probe {
namespace {

using std::chrono::seconds;

constexpr int kShares[] = {14, 28, 43, 57, 71, 86, 100};
constexpr int kQuickShares[] = {43, 57, 100};
constexpr int kMaxClients = 16, kMaxClientsQuick = 4;
constexpr const char* kDaemonHow = "nvidia-cuda-mps-control -f in a private directory, as this user";

Environment with(Environment environment, const std::string& name, const std::string& value) {
  environment.emplace_back(name, value);
  return environment;
}

Environment with_share(const Environment& environment, int share) {
  return with(environment, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", std::to_string(share));
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// Is a process that was given the daemon's directory really its client? Without MPS it would run all the same.
void ask_client(Asker& asker, const Environment& environment) {
  asker.yes_no({"mps.client", "Is a process with the daemon's directory really an MPS client?",
                "SM count at a share of 50 % against that of a process without MPS; the daemon's list of servers"},
               [&] {
                 Client plain(Environment{}), client(with_share(environment, 50));
                 auto servers = asker.mps_command(environment, "get_server_list");
                 std::string note = std::to_string(client.sms()) + " of " + std::to_string(plain.sms()) + " SMs; ";
                 note += servers ? "server " + first_line(*servers) : servers.error();
                 return YesNo{client.sms() < plain.sms() && servers && !servers->empty(), note};
               });
}

// ---- shares ----

void ask_work(Asker& asker, Client& client, const std::string& work, const Conditions& conditions) {
  asker.number(
      {"mps.time_by_share", "How long does fixed work take at this share?",
       "events in the client; convolution: 3x3, 64 to 64 channels, 56x56, batch 64, fp32; copy: 128 MiB by a kernel; "
       "upload: 32 MiB from pinned memory. Busy: another client runs the convolution with the rest",
       [&] {
         Conditions all = conditions;
         all["work"] = work;
         return all;
       }()},
      "us", [&] { return Samples{client.measure(work, asker.repeats(100))}; });
}

void ask_share(Asker& asker, const Environment& environment, int share) {
  const Conditions conditions{{"share_percent", std::to_string(share)}};
  const Question sms{"mps.sms_by_share", "How many SMs does a client with this share see?",
                     "cudaDevAttrMultiProcessorCount; the note counts those that ran blocks", conditions};
  std::optional<Client> client;
  try {
    client.emplace(with_share(environment, share));
  } catch (const std::exception& problem) {
    asker.failed(sms, problem.what());
    return;
  }
  asker.number(sms, "count", [&] {
    const double seen = client->sms();
    return Samples{{seen},
                   std::to_string(client->census()) + " ran blocks; the context took " +
                       std::to_string(static_cast<int>(client->start_ms())) + " ms"};
  });
  for (const char* work : {"convolution", "copy", "upload"}) {
    Conditions alone = conditions;
    alone["others"] = "idle";
    ask_work(asker, *client, work, alone);
  }
  if (share == 100) return;  // no rest
  const Question begin{"mps.load", "Can another client use the rest at the same time?",
                       "a second client with the rest as its share", conditions};
  std::optional<Client> other;
  asker.yes_no(begin, [&] {
    other.emplace(with_share(environment, 100 - share));
    other->begin_load();
    return YesNo{true, std::to_string(other->sms()) + " SMs"};
  });
  if (!other) return;
  for (const char* work : {"convolution", "copy", "upload"}) {
    Conditions busy = conditions;
    busy["others"] = "busy";
    ask_work(asker, *client, work, busy);
  }
  asker.yes_no({"mps.load_ended", "Was the other client still well after that?",
                "it ends its load and runs a checked kernel", conditions},
               [&] {
                 other->end_load();
                 const std::string trouble = other->check();
                 return YesNo{trouble.empty(), trouble};
               });
}

// ---- limits ----

void ask_client_limit(Asker& asker, const Environment& environment) {
  const int max = asker.quick() ? kMaxClientsQuick : kMaxClients;
  asker.number({"mps.clients", "How many clients at once, before one is refused?",
                "clients are started one by one and kept; stopped at " + std::to_string(max)},
               "count", [&] {
                 std::vector<std::unique_ptr<Client>> clients;
                 std::string refusal = "none was refused";
                 while (static_cast<int>(clients.size()) < max) {
                   try {
                     clients.push_back(std::make_unique<Client>(environment));
                   } catch (const ProbeFailed& refused) {
                     refusal = refused.what();
                     break;
                   }
                 }
                 return Samples{{static_cast<double>(clients.size())}, refusal};
               });
}

// ---- clients' frames ----

// As frames.register, by a client of MPS; 512 MiB are more than many a container's /dev/shm, which MPS was said to
// need.
void ask_registration(Asker& asker, const Environment& environment) {
  for (const char* way : {"writable", "read-only", "read-only, marked"}) {
    for (const std::size_t mib : {std::size_t{16}, std::size_t{512}}) {
      asker.yes_no(
          {"mps.register",
           "Can a client register a mapping of a sealed memfd, and a kernel read it?",
           "cudaHostRegister in a client with half of the device, then a kernel adds up all words; compared with "
           "the host's sum",
           {{"mapping", way}, {"size_mib", std::to_string(mib)}}},
          [&] {
            Client client(with_share(environment, 50));
            const std::string trouble = client.register_host(way, mib * kMiB);
            return YesNo{trouble.empty(), trouble};
          });
    }
  }
}

// ---- faults ----

// One client writes to a bad address; what do the others see, and does a fresh group of clients work?
void ask_fault(Asker& asker, const Environment& environment, const std::string& mps) {
  const Conditions conditions{{"mps", mps}};
  asker.yes_no({"mps.fault_reaches_others", "Does one client's fault end the others' contexts?",
                "a child writes to a bad address, two bystanders then run a checked kernel", conditions},
               [&] {
                 Client first(environment), second(environment), victim(environment);
                 const std::string error = victim.fault();
                 const std::string a = first.check(), b = second.check();
                 std::string note =
                     "victim: " + error + "; bystanders: " + (a.empty() ? "well" : a) + "; " + (b.empty() ? "well" : b);
                 return YesNo{!a.empty() || !b.empty(), note};
               });
  const auto limit = asker.quick() ? seconds(5) : seconds(15);
  const auto begin = Clock::now();
  std::optional<double> ms;
  asker.yes_no(
      {"mps.group_restart_is_enough", "Do new clients work once the faulted group has ended, without a new daemon?",
       "clients end, then new ones are tried until one runs a checked kernel", conditions},
      [&] {
        std::string last;
        for (int tries = 1; Clock::now() - begin < limit; ++tries) {
          try {
            Client client(environment);
            last = client.check();
          } catch (const ProbeFailed& refused) {
            last = refused.what();
          }
          if (last.empty()) {
            ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
            return YesNo{true, "attempt " + std::to_string(tries)};
          }
        }
        return YesNo{false, last};
      });
  if (!ms) return;
  asker.number({"mps.restart_after_fault", "How long until a new client has run a kernel?",
                "host clock, from the end of the faulted group", conditions},
               "ms", [&] { return Samples{{*ms}}; });
}

// A bystander is killed while it holds memory and runs: do the others go on?
void ask_kill(Asker& asker, const Environment& environment) {
  asker.yes_no({"mps.survives_killed_client", "Do the others go on when a client is killed at work?",
                "SIGKILL of a client under load, then a checked kernel in another"},
               [&] {
                 Client stays(environment), goes(environment);
                 goes.begin_load();
                 goes.kill();
                 const std::string trouble = stays.check();
                 return YesNo{trouble.empty(), trouble};
               });
}

// ---- static partitions ----

// The daemon answers `sm_partition add` with "GPU/ID" or the id alone, by version, maybe with words around it.
std::string partition_name(const std::string& device, const std::string& answer) {
  std::string last;
  std::istringstream words(answer);
  for (std::string word; words >> word;) {
    if (word.find('/') != std::string::npos) return word;
    last = word;
  }
  return device + "/" + last;
}

// Driver 590 and later: the daemon divides the SMs itself, and every client must name its partition.
void ask_static_partitions(Asker& asker) {
  const Question question{"mps.static_partitions", "Static SM partitions?",
                          "nvidia-cuda-mps-control -S, then sm_partition add"};
  auto environment = asker.start_mps({"-S"});
  if (!environment) {
    asker.not_applicable(question, environment.error());
    return;
  }
  asker.yes_no(question, [&] {
    auto added = asker.mps_command(*environment, "sm_partition add " + asker.device() + " 2");
    if (!added) throw NotApplicable(added.error());
    const std::string name = partition_name(asker.device(), *added);
    Client client(with(*environment, "CUDA_MPS_SM_PARTITION", name));
    const int all = attribute(0, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    std::string note = name + ": " + std::to_string(client.sms()) + " of " + std::to_string(all) + " SMs seen, " +
                       std::to_string(client.census()) + " ran blocks";
    return YesNo{client.check().empty() && client.sms() < all, note};
  });
  if (auto stopped = asker.stop_mps(); !stopped) throw ProbeFailed(stopped.error());
}

}  // namespace

void ask_mps(Asker& asker) {
  ask_fault(asker, {}, "off");
  auto environment = asker.start_mps();
  const Question daemon{"mps.daemon", "Can this user start an MPS control daemon?", kDaemonHow};
  if (!environment) {
    asker.yes_no(daemon, [&] { return YesNo{false, environment.error()}; });
    return;
  }
  asker.yes_no(daemon, [&] {
    auto percentage = asker.mps_command(*environment, "get_default_active_thread_percentage");
    return YesNo{percentage.ok(), percentage ? "default share " + first_line(*percentage) : percentage.error()};
  });
  ask_client(asker, *environment);
  const std::span<const int> shares =
      asker.quick() ? std::span<const int>(kQuickShares) : std::span<const int>(kShares);
  for (int share : shares) ask_share(asker, *environment, share);
  ask_client_limit(asker, *environment);
  ask_registration(asker, *environment);
  ask_kill(asker, *environment);
  ask_fault(asker, *environment, "on");
  if (auto stopped = asker.stop_mps(); !stopped) throw ProbeFailed(stopped.error());
  ask_static_partitions(asker);
}

}  // namespace leat::probe
