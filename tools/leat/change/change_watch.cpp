#include "tools/leat/change/change_watch.h"

#include <time.h>

#include <cstdio>
#include <optional>
#include <utility>

#include "leat/leat.h"
#include "tools/base/json/json.h"
#include "tools/leat/patience.h"

namespace leat::tools {
namespace {

// What the last look has said; none: the change is no longer the latest.
Result<Json> look(shm::Observer& observer, std::uint64_t number) {
  leat_error error{};
  const WaitingForLeatd waiting;
  const auto text = observer.status(&error);
  if (!text.ok()) return Error{text.error()};
  const auto status = Json::try_parse(*text);
  const Json* const change = status && status->is_object() ? status->find("change") : nullptr;
  if (change == nullptr || !change->is_object())
    return Error{"leatd's answer says nothing of the change; install the same release of leat and leatd"};
  if (change->at("number").get<std::uint64_t>() != number)
    return Error{"another change has followed before the end of this one was seen; leatd's log has it"};
  return *change;
}

std::string step_text(const Json& change) {
  const std::string state = change.at("state").get<std::string>();
  if (state == "starting")
    return "starting new workers, wave " + change.at("wave").dump() + " of " +
           std::to_string(change.at("waves").size());
  if (state == "reading") return "reading";
  if (state == "taking_over") return "the new plan takes over";
  if (state == "on_trial") return "in force, on trial";
  if (state == "emptying") return "in force; what was served before ends";
  if (state == "letting_go") return "in force; old workers end";
  if (state == "giving_up") return "giving up; new workers end";
  return {};
}

void print_waves(const Json& change) {
  for (const Json& line : change.at("differences")) std::printf("%s\n", line.get<std::string>().c_str());
  std::size_t wave = 0;
  for (const Json& names : change.at("waves")) {
    std::string text;
    for (const Json& name : names) text += (text.empty() ? "" : ", ") + name.get<std::string>();
    std::printf("wave %zu: new workers for %s\n", ++wave, text.c_str());
  }
}

}  // namespace

int watch_change(const cli::Command& command, const cli::Arguments& args, const shm::Change& what,
                 const std::string& text) {
  const cli::JsonOutput json(args);
  leat_error error{};
  const std::string socket = args.given("socket") ? args.text("socket") : ::leat_default_socket();
  std::optional<WaitingForLeatd> waiting(std::in_place);
  auto observer = shm::Observer::connect(socket, &error, kPatienceNs);
  const auto number = observer.ok() ? observer->change(what, text, &error) : Result<std::uint64_t>(Error{});
  waiting.reset();
  if (!observer.ok()) return cli::fail(command.name, observer.error());
  if (!number.ok()) {
    std::fprintf(stderr, "%s: %s\n", std::string(command.name).c_str(), number.error().c_str());
    return error == LEAT_ERROR_not_permitted || error == LEAT_ERROR_not_ready ? 1 : cli::kBadInput;
  }
  std::string said;
  Json change;
  for (;;) {
    auto seen = look(*observer, *number);
    if (!seen.ok()) return cli::fail(command.name, seen.error());
    change = std::move(*seen);
    if (const std::string step = step_text(change); !step.empty() && step != said) {
      std::fprintf(stderr, "%s\n", step.c_str());
      said = step;
    }
    if (change.at("over").get<bool>()) break;
    const timespec pause{0, 50'000'000};
    nanosleep(&pause, nullptr);
  }
  const std::string state = change.at("state").get<std::string>(), line = change.at("line").get<std::string>();
  if (!json.alone()) {
    if (state == "dry_run") print_waves(change);
    if (state == "done") std::printf("in force\n");
  }
  if (state == "failed") std::fprintf(stderr, "%s: %s\n", std::string(command.name).c_str(), line.c_str());
  const int written = json.write(change.dump(2));
  return written != 0 ? written : state == "failed" ? 1 : 0;
}

}  // namespace leat::tools
