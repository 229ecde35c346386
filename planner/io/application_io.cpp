#include "planner/io/application_io.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "planner/dag.h"
#include "tools/base/documents/document.h"
#include "tools/base/documents/text_file.h"

namespace leat::planner {
namespace {

constexpr double kLargestMs = 1e9;
constexpr double kLargestRate = 1e12;

struct NamedModule {
  Module module;
  std::vector<std::string> after;
};

// Of a model's file: its name without folder and ending, as `leat profile` calls it.
std::string profile_named(std::string model) {
  const std::filesystem::path file(model);
  return file.extension() == ".onnx" ? file.stem().string() : std::move(model);
}

NamedModule module_from(const JsonCursor& c) {
  c.only(kModuleKeys);
  NamedModule out;
  out.module.name = c.at("name").text();
  out.module.model = profile_named(c.text_or("model", out.module.name));
  out.module.items_per_request = c.number_or("items_per_request", 1, 1e-9, 1e6);
  out.module.fan_out_cap = static_cast<std::uint32_t>(
      c.integer_or("fan_out_cap", static_cast<std::int64_t>(std::ceil(out.module.items_per_request)), 1, 1 << 16));
  out.after = c.texts("after");
  return out;
}

// In topological order. Reports what is wrong with it at `list`.
std::vector<Module> in_order(std::vector<NamedModule> modules, const JsonCursor& list) {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> after;
  for (NamedModule& m : modules) names.push_back(m.module.name), after.push_back(std::move(m.after));
  NamedOrder order = order_of(names, after);
  if (!order.problem.empty()) {
    list.fail(order.problem);
    return {};
  }
  std::vector<Module> out;
  for (std::size_t k = 0; k < order.order.size(); ++k) {
    out.push_back(std::move(modules[order.order[k]].module));
    out.back().after = std::move(order.after[k]);
  }
  return out;
}

Application application_from(const JsonCursor& c) {
  c.only(kApplicationKeys, "slo_ns");
  Application out;
  out.name = c.at("name").text();
  if (c.has("slo_ns")) {
    out.slo_ns = c.at("slo_ns").integer(1, static_cast<std::int64_t>(kLargestMs * 1e6));
  } else if (c.has("slo_ms") && c.at("slo_ms").is_text()) {
    c.at("slo_ms").fail(
        "leatd chooses \"auto\" when it starts; to plan, write the milliseconds from capture to answer");
  } else {
    out.slo_ns = std::llround(c.at("slo_ms").number(1e-6, kLargestMs) * 1e6);
  }
  out.rate_rps = c.number_or("rate_rps", 0, 0, kLargestRate);
  if (c.has("rate_rps") && out.rate_rps <= 0)
    c.at("rate_rps").fail("is 0; state the expected rate, or leave the key out");
  out.weight = c.number_or("weight", 1, 1e-9, kLargestRate);
  const JsonCursor list = c.at("module");
  std::vector<NamedModule> modules;
  for (const auto& item : list.items()) modules.push_back(module_from(item));
  if (modules.empty()) list.fail("an application needs at least one module");
  out.modules = in_order(std::move(modules), list);
  return out;
}

}  // namespace

std::string problem_of(const Application& a) {
  if (a.name.empty()) return "an application has no name; name it";
  const std::string who = "application '" + a.name + "': ";
  if (a.slo_ns <= 0) return who + "slo must be positive";
  if (!(a.rate_rps >= 0) || !std::isfinite(a.rate_rps)) return who + "rate_rps must be a number, not negative";
  if (!(a.weight > 0) || !std::isfinite(a.weight)) return who + "weight must be positive";
  if (a.modules.empty()) return who + "needs at least one module";
  for (std::size_t i = 0; i < a.modules.size(); ++i) {
    const Module& m = a.modules[i];
    const std::string where = who + "module " + std::to_string(i) + " ('" + m.name + "'): ";
    if (m.name.empty() || m.model.empty()) return where + "needs a name and a model";
    if (!(m.items_per_request > 0) || !std::isfinite(m.items_per_request))
      return where + "items_per_request must be positive";
    if (m.fan_out_cap < 1) return where + "fan_out_cap must be 1 or more";
    for (const auto before : m.after) {
      if (before >= i)
        return where + "after names module " + std::to_string(before) + "; only earlier modules may stand there";
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (a.modules[j].name == m.name) return where + "its name stands twice; rename one";
    }
  }
  return {};
}

std::vector<Application> applications_from(const JsonCursor& list) {
  std::vector<Application> out;
  for (const auto& item : list.items()) {
    out.push_back(application_from(item));
    for (std::size_t i = 0; i + 1 < out.size(); ++i) {
      if (out[i].name == out.back().name) item.fail("two applications are named '" + out[i].name + "'; rename one");
    }
  }
  return out;
}

Result<std::vector<Application>> parse_applications(std::string_view text, const std::string& name) {
  const auto document = JsonDocument::of(name, text);
  const JsonCursor list = document->root().at("application");
  auto out = applications_from(list);
  if (out.empty()) list.fail("no application is given; add [[application]]");
  if (document->failed()) return document->error();
  for (const auto& a : out) {
    const std::string problem = problem_of(a);
    if (!problem.empty()) return Error{name + ": " + problem};
  }
  return out;
}

Result<std::vector<Application>> read_applications(const std::string& path) {
  const auto text = read_text_file(path);
  if (!text) return Error{text.error()};
  return parse_applications(*text, path);
}

}  // namespace leat::planner
