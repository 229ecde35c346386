#include "engine/daemon/changes/wanted.h"

#include <algorithm>
#include <filesystem>

#include "tools/base/documents/text_file.h"

namespace leat::daemon {
namespace {

using Kind = ChangeRequest::Kind;

const ApplicationConfig* served(const Config& config, const std::string& name) {
  const auto at = std::ranges::find_if(
      config.applications, [&](const ApplicationConfig& a) { return !a.retired && a.application.name == name; });
  return at == config.applications.end() ? nullptr : &*at;
}

std::string names_of(const Config& config) {
  std::string out;
  for (const ApplicationConfig& a : config.applications)
    if (!a.retired) out += (out.empty() ? "'" : ", '") + a.application.name + "'";
  return out;
}

Status load(Additions& to, const ChangeRequest& request, const Config& running) {
  if (served(running, request.name) != nullptr)
    return Error{"there is an application '" + request.name +
                 "' already; give the new one another name, or its model another version with --replace"};
  to.unloaded.erase(request.name);
  to.loaded.emplace_back(request.name, request.text);
  return Done{};
}

Status unload(Additions& to, const ChangeRequest& request, const Config& running) {
  if (served(running, request.name) == nullptr)
    return Error{"there is no application '" + request.name + "'; there are: " + names_of(running)};
  if (std::ranges::count(running.applications, false, &ApplicationConfig::retired) == 1)
    return Error{"'" + request.name + "' is the only application; leatd serves one at least"};
  if (std::erase_if(to.loaded, [&](const auto& l) { return l.first == request.name; }) == 0)
    to.unloaded.insert(request.name);
  return Done{};
}

Status replace(Additions& to, const ChangeRequest& request, const Config& running) {
  const std::size_t slash = request.name.find('/');
  const std::string name = request.name.substr(0, slash);
  const ApplicationConfig* const app = served(running, name);
  if (app == nullptr) return Error{"there is no application '" + name + "'; there are: " + names_of(running)};
  std::string module = slash == std::string::npos ? "" : request.name.substr(slash + 1);
  const auto& modules = app->application.modules;
  if (module.empty() && modules.size() == 1) module = modules.front().name;
  if (std::ranges::find(modules, module, &planner::Module::name) == modules.end()) {
    std::string known;
    for (const auto& m : modules) known += (known.empty() ? "'" : ", '") + name + "/" + m.name + "'";
    return Error{"say which module's model is to be replaced: " + known};
  }
  to.models[name + "/" + module] = request.text;
  return Done{};
}

}  // namespace

const char* name_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::reload:
      return "reload";
    case Kind::plan:
      return "plan";
    case Kind::load:
      return "load";
    case Kind::unload:
      return "unload";
    case Kind::replace:
      return "replace";
  }
  return "";
}

std::string text_of(const ChangeRequest& request) {
  switch (request.kind) {
    case Kind::reload:
      return "reload";
    case Kind::plan:
      return request.automatic ? "replan: " + request.why : "plan " + request.text;
    case Kind::load:
      return "load of '" + request.name + "'";
    case Kind::unload:
      return "unload of '" + request.name + "'";
    case Kind::replace:
      return "another version of '" + request.name + "'";
  }
  return "";
}

namespace {

// The same applications with the same modules, by their names.
bool same_modules(const Config& running, const Config& wanted) {
  std::size_t known = 0;
  for (const ApplicationConfig& a : wanted.applications) {
    const ApplicationConfig* const r = served(running, a.application.name);
    known += r != nullptr && std::ranges::equal(r->application.modules, a.application.modules, {},
                                                &planner::Module::name, &planner::Module::name)
                 ? 1
                 : 0;
  }
  return known == wanted.applications.size() &&
         static_cast<std::ptrdiff_t>(known) ==
             std::ranges::count(running.applications, false, &ApplicationConfig::retired);
}

}  // namespace

Result<Additions> with(Additions a, const ChangeRequest& request, const Config& running) {
  Status status = Done{};
  switch (request.kind) {
    case Kind::reload:
      a.unloaded.clear();
      a.models.clear();
      a.plan.clear();
      a.own_plan.clear();
      break;
    case Kind::plan:
      (request.automatic ? a.own_plan : a.plan) = request.text;
      if (!request.automatic) a.own_plan.clear();
      break;
    case Kind::load:
      status = load(a, request, running);
      break;
    case Kind::unload:
      status = unload(a, request, running);
      break;
    case Kind::replace:
      status = replace(a, request, running);
      break;
  }
  if (!status) return Error{status.error()};
  return a;
}

Result<Config> read_wanted(const Config& running, const Additions& additions) {
  std::string text = running.text;
  if (!running.made_from_model) {
    const auto read = read_text_file(running.file);
    if (!read) return Error{read.error()};
    text = *read;
  }
  const std::string own = text;
  for (const auto& [name, toml] : additions.loaded) text += "\n" + toml;
  auto config = parse_config(text, running.made_from_model ? running.text_file : running.file,
                             running.made_from_model ? running.file : "");
  if (!config.ok()) return config;
  config->text = own;
  if (running.socket_place.empty()) {  // a command line has said it
    config->socket = running.socket;
    config->socket_place.clear();
  }
  std::erase_if(config->applications,
                [&](const ApplicationConfig& a) { return additions.unloaded.contains(a.application.name); });
  if (config->applications.empty()) return Error{config->file + ": names no application that was not unloaded"};
  for (ApplicationConfig& a : config->applications) {
    for (std::size_t m = 0; m < a.modules.size(); ++m) {
      const auto model = additions.models.find(a.application.name + "/" + a.application.modules[m].name);
      if (model == additions.models.end()) continue;
      if (!std::filesystem::is_regular_file(model->second)) return Error{"there is no file " + model->second};
      a.modules[m].model_path = a.application.modules[m].model = model->second;
    }
  }
  if (!additions.plan.empty()) {
    config->plan_path = additions.plan;
    config->plan_auto = false;
    config->plan_place.clear();
  }
  if (!additions.own_plan.empty() && same_modules(running, *config)) {
    config->plan_path = additions.own_plan;
    config->plan_auto = false;
    config->plan_place.clear();
  }
  return config;
}

std::string needs_restart(const Config& a, const Config& b) {
  std::string out;
  const auto name = [&](bool differs, const char* key) {
    if (differs) out += (out.empty() ? "" : ", ") + std::string(key);
  };
  name(a.socket != b.socket, "[daemon] socket");
  name(a.socket_mode != b.socket_mode, "[daemon] socket_mode");
  name(a.socket_group != b.socket_group, "[daemon] socket_group");
  name(a.subuid_file != b.subuid_file, "[daemon] subuid_file");
  name(a.scheduler_core != b.scheduler_core, "[daemon] scheduler_core");
  name(a.log_level != b.log_level, "[daemon] log_level");
  name(a.limits.clients != b.limits.clients, "[limits] clients");
  name(a.limits.streams != b.limits.streams, "[limits] streams");
  name(a.limits.requests != b.limits.requests, "[limits] requests");
  name(a.limits.batch_timeout_ns != b.limits.batch_timeout_ns, "[limits] batch_timeout_ms");
  name(a.workers.max_backoff_ns != b.workers.max_backoff_ns, "[workers] max_backoff_ms");
  name(a.workers.worker_start_timeout_ns != b.workers.worker_start_timeout_ns, "[workers] worker_start_timeout_ms");
  name(a.workers.user != b.workers.user, "[workers] user");
  name(a.preset != b.preset && (a.policy.scheduler != nullptr || b.policy.scheduler != nullptr), "[policy] preset");
  if (out.empty()) return out;
  return b.file + ": " + out + (out.find(',') == std::string::npos ? " has" : " have") +
         " changed, which a new start alone puts in force; restart leatd, or change it back; nothing is changed now";
}

}  // namespace leat::daemon
