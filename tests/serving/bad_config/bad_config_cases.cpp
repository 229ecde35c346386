#include "tests/serving/bad_config/bad_config_cases.h"

#include <gtest/gtest.h>

namespace leat::test {
namespace {

// Reading: what stands in the file itself.
std::vector<BadCase> faults_of_reading() {
  const std::string good = sound_config();
  const auto daemon = [&](const std::string& keys) { return "[daemon]\n" + keys + "\n" + good; };
  const auto limits = [&](const std::string& keys) { return "[limits]\n" + keys + "\n" + good; };
  const auto user = [&](const std::string& keys) { return "[limits.user]\n" + keys + "\n" + good; };
  const auto module = [&](const std::string& keys) { return good + keys + "\n"; };
  return {
      {"not TOML", "[[partition\n", {":1", "TOML"}},
      {"a letter outside of quotes", "# gr\u00f6\u00dfer\n[limits]\nrequests\u00e9 = 4\n", {":3", "TOML"}},
      {"a key twice", replaced(good, "slo_ms = 500", "slo_ms = 500\nslo_ms = 400"), {":7", "TOML"}},
      {"an empty file", "", {"names no partition"}},
      {"unknown key", replaced(good, "slo_ms", "slo_mss"), {":6", "slo_mss", "did you mean 'slo_ms'?"}},
      {"unknown table", good + "[deamon]\n", {":10", "deamon", "did you mean 'daemon'?"}},
      {"table as a value", "daemon = 3\n" + good, {":1", "daemon", "must be a table"}},
      {"wrong type", replaced(good, "500", "\"fast\""), {":6", "slo_ms", "number"}},
      {"missing key", replaced(good, "slo_ms = 500", ""), {":4", "application", "slo_ms", "missing"}},
      {"no module", good.substr(0, good.find("  [[")), {":4", "application", "at least one"}},
      {"an SLO of nothing", replaced(good, "500", "0"), {":6", "slo_ms"}},
      {"a negative rate", replaced(good, "slo_ms = 500", "slo_ms = 500\nrate_rps = -1"), {":7", "rate_rps"}},
      {"a nameless application", replaced(good, "\"echo\"", "\"\""), {":5", "name", "empty"}},
      {"a name too long", replaced(good, "\"echo\"", "\"" + std::string(64, 'x') + "\""), {":5", "63 bytes"}},
      {"duplicate partition", good + "[[partition]]\nname = \"p\"\n", {":11", "'p'", "twice"}},
      {"duplicate application", good + "[[application]]\nname = \"echo\"\nslo_ms = 5\n", {":11", "'echo'", "twice"}},
      {"duplicate module",
       module("  [[application.module]]\n  name = \"sum\"\n  latency_ms = [1]"),
       {"'sum'", "rename"}},
      {"no such predecessor", module("  after = [\"nobody\"]"), {"'nobody'", "does not exist"}},
      {"predecessors that are no list", module("  after = \"sum\""), {":10", "after", "list"}},
      {"cycle", module("  after = [\"sum\"]"), {"cycle"}},
      {"no partition", replaced(good, "[[partition]]\nname = \"p\"\nkind = \"emulated\"\n", ""), {"cpu = \"auto\""}},
      {"no application", "cpu = \"auto\"\n", {"no application"}},
      {"cpu is a number", "cpu = 2\n" + good, {":1", "cpu", "'2'", "\"auto\"", "[[partition]]"}},
      {"cpu is a word", "cpu = \"all\"\n" + good, {":1", "cpu", "'all'", "auto"}},
      {"unknown kind", replaced(good, "\"emulated\"", "\"tpu\""), {":3", "kind", "'tpu'"}},
      {"a cpu partition without cores", replaced(good, "\"emulated\"", "\"cpu\""), {":1", "needs cores"}},
      {"cores that are no list",
       replaced(good, "kind = \"emulated\"", "cores = \"a-b\""),
       {":3", "a-b", "list of cores"}},
      {"several cpu partitions", replaced(good, "kind = \"emulated\"", "cores = \"0\"\ncount = 2"), {":4", "count"}},
      {"too many partitions", replaced(good, "kind = \"emulated\"", "count = 129"), {":3", "count", "128"}},
      {"unknown executor", module("  executor = \"torch\""), {":10", "executor", "'torch'", "onnx"}},
      {"an executor's library that is not there", module("  executor = \"./none.so\""), {":10", "none.so", "no file"}},
      {"latencies for a model",
       module("  executor = \"onnx\"\n  model = \"c.toml\""),
       {":9", "latency_ms", "emulated"}},
      {"a known model for an emulated one", module("  as = \"arcface\""), {":10", "as", "ONNX", "emulated"}},
      {"no latency",
       replaced(good, "latency_ms = [0.5]", "executor = \"emulated\""),
       {":7", "latency_ms or a profile"}},
      {"a latency that is no number", replaced(good, "[0.5]", "[\"x\"]"), {":9", "latency_ms"}},
      {"a batch above the latencies", module("  batch = 2"), {":10", "batch", "latency_ms"}},
      {"a batch of nothing", module("  batch = 0"), {":10", "batch", "1 to 64"}},
      {"a batch too large", module("  batch = 65"), {":10", "batch", "1 to 64"}},
      {"a cap of nothing", module("  fan_out_cap = 0"), {":10", "fan_out_cap"}},
      {"no items", module("  items_per_request = 0"), {":10", "items_per_request"}},
      {"labels that are no list", module("  labels = \"circle\""), {":10", "labels", "list"}},
      {"names of nowhere", module("  labels_file = \"none.txt\""), {":10", "labels_file", "none.txt"}},
      {"names twice", module("  labels = [\"a\"]\n  labels_file = \"x.txt\""), {":11", "labels_file", "leave one"}},
      {"options that are lists", module("  options = { a = [1] }"), {":10", "options.a", "word"}},
      {"missing model", replaced(good, "latency_ms = [0.5]", "model = \"none.onnx\""), {":9", "none.onnx", "no file"}},
      {"missing profile", module("  profile = \"none.json\""), {":10", "profile", "none.json"}},
      {"a profile that is none", module("  profile = \"x.json\""), {":10", "x.json"}, {{"x.json", "{\"schema\": 3}"}}},
      {"an expected stream without a period", module("  [[application.stream]]"), {":10", "period_ms", "missing"}},
      {"a priority that is none",
       module("  [[application.stream]]\n  period_ms = 9\n  priority = \"top\""),
       {":12", "'top'"}},
      {"unknown preset", "[policy]\npreset = \"laet\"\n" + good, {":1", "laet", "leat"}},
      {"unknown policy key",
       "[policy]\nrisk_permile = 9\n" + good,
       {":1", "risk_permile", "did you mean 'risk_permille'?"}},
      {"a policy key of another preset",
       "[policy]\norder = \"lbf\"\n" + good,
       {":1", "order", "the keys here are", "pard"}},
      {"a policy key that nothing here looks at",
       "[policy]\nrisk_permille = 9\n" + good,
       {":1", "risk_permille: nothing here looks at it", "windows"}},
      {"a policy key's word", "[policy]\ncanaries = \"lifo\"\n" + good, {":1", "canaries", "true or false"}},
      {"a policy key's list", "[policy]\nrisk_permille = [1]\n" + good, {":2", "policy.risk_permille"}},
      {"a socket without a name", daemon("socket = \"\""), {":2", "socket", "empty"}},
      {"a socket's path too long", daemon("socket = \"/tmp/" + std::string(110, 'x') + "\""), {":2", "107 bytes"}},
      {"a mode that is none", daemon("socket_mode = \"rw\""), {":2", "'rw'", "file mode"}},
      {"a group that is not", daemon("socket_group = \"no-such-group\""), {":2", "no-such-group"}},
      {"users that are words", daemon("allow_uids = [\"me\"]"), {":2", "allow_uids", "whole number"}},
      {"unknown event loop", daemon("event_loop = \"kqueue\""), {":2", "'kqueue'", "epoll"}},
      {"unknown log level", daemon("log_level = \"loud\""), {":2", "'loud'"}},
      {"ranges of subordinate uids in no file", daemon("subuid_file = \"none/subuid\""), {":2", "subuid_file", "none"}},
      {"observers of a third kind", daemon("observers = \"some\""), {":2", "observers", "own", "all"}},
      {"a recorder without its folder", daemon("recorder = \"none/flight.bin\""), {":2", "recorder", "none"}},
      {"missing plan", daemon("plan = \"none.json\""), {":2", "none.json", "leat-plan"}},
      {"a limit of nothing", limits("clients = 0"), {":2", "limits.clients"}},
      {"a limit that is a word", limits("memory_mib = \"all\""), {":2", "memory_mib"}},
      {"unknown limit", limits("client = 3"), {":2", "did you mean 'clients'?"}},
      {"a user's priority", user("priority = \"top\""), {":2", "limits.user.priority", "'top'"}},
      {"a user's rules", user("overload = [\"drop\"]"), {":2", "'drop'", "never_drop"}},
      {"a user's few descriptors", user("descriptors = 1"), {":2", "descriptors"}},
      {"a user that is not", "[limits.users.no-such-user]\nstreams = 1\n" + good, {":1", "no-such-user"}},
      {"unknown key of a user", user("stream = 3"), {":2", "did you mean 'streams'?"}},
      {"a group without a name", "[limits.groups.no-such-group]\nstreams = 1\n" + good, {":1", "no group"}},
      {"one user twice", "[limits.users.root]\n[limits.users.0]\n" + good, {"number 0", "keep one"}},
      {"users that are no tables", limits("users = 3"), {":2", "[limits.users.NAME]"}},
      {"no rule at all", user("overload = []"), {":2", "names no rule"}},
      {"an SLO that is no number", user("min_slo_ms = \"1\""), {":2", "min_slo_ms", "number"}},
      {"no time for hello", limits("handshake_timeout_ms = 0"), {":2", "handshake_timeout_ms", "1 to"}},
      {"unknown sandbox", "[workers]\nsandbox = \"box\"\n" + good, {":2", "'box'", "devices"}},
      {"workers of nobody", "[workers]\nuser = \"no-such-user\"\n" + good, {":2", "no-such-user"}},
  };
}

// Starting: what only this host, the plan and the models can tell.
std::vector<BadCase> faults_of_starting(const std::string& models, const std::string& failing) {
  const std::string good = sound_config(), model = sound_model_config(models);
  const auto plug_in = [&](const std::string& options) {
    return replaced(
        model, "model = ", "executor = \"" + failing + "\"\n  options = { open = \"" + options + "\" }\n  model = ");
  };
  const auto pre = [&](const std::string& words) { return replaced(model, "letterbox mean=0.5 std=0.5", words); };
  const auto post = [&](const std::string& words) {
    return replaced(model, "boxes stride=8 score=0.2 iou=0.6", words);
  };
  const auto planned = [&](const std::string& text) {
    return BadCase{"", "[daemon]\nplan = \"p.json\"\n" + good, {}, {{"p.json", text}}};
  };
  std::vector<BadCase> cases = {
      {"a core that is not",
       replaced(good, "kind = \"emulated\"", "cores = \"4000\""),
       {":3", "partition.cores", "4000", "offers"}},
      {"a scheduler's core that is not",
       "[daemon]\nscheduler_core = 4000\n" + good,
       {":2", "scheduler_core", "4000", "offers"}},
      {"a model on emulated partitions",
       replaced(good, "latency_ms = [0.5]", "model = \"m.onnx\""),
       {":7", "no partition can run", "cpu partition"},
       {{"m.onnx", "x"}}},
      {"a socket where none can be",
       "[daemon]\nsocket = \"none/s.sock\"\n" + good,
       {":2", "daemon.socket", "none/s.sock"}},
      {"a broken model",
       replaced(model, models + "/detect.onnx", "b.onnx"),
       {":10", "application.module.model", "b.onnx", "partition 'c'"},
       {{"b.onnx", "this is no model"}}},
      {"an empty model", replaced(model, models + "/detect.onnx", "e.onnx"), {":10", "e.onnx"}, {{"e.onnx", ""}}},
      {"an unknown word before the model",
       pre("leterbox mean=0.5"),
       {":11", "application.module.preprocess", "leterbox"}},
      {"an unknown key before the model", pre("letterbox meen=0.5"), {":11", "preprocess", "meen=0.5"}},
      {"a number before the model", pre("letterbox mean=x"), {":11", "preprocess", "mean"}},
      {"a padding that is no number", pre("letterbox pad=x"), {":11", "preprocess", "pad=x"}},
      {"a known model that is none",
       replaced(model, "model = ", "as = \"arcfase\"\n  model = "),
       {":10", "application.module.as", "'arcfase'", "did you mean 'arcface'"}},
      {"raw frames for a model", pre("raw"), {":11", "preprocess", "raw"}},
      {"gray for a model of colours", pre("letterbox gray"), {":11", "preprocess"}},
      {"an unknown word behind the model",
       post("bocses stride=8"),
       {":12", "application.module.postprocess", "bocses"}},
      {"an unknown key behind the model", post("boxes strid=8"), {":12", "postprocess", "strid"}},
      {"a score of two", post("boxes stride=8 score=2"), {":12", "postprocess", "score"}},
      {"another layout than the model's", post("boxes layout=rows"), {":12", "postprocess", "layout"}},
      {"a checksum of a model", post("checksum"), {":12", "postprocess", "checksum"}},
      {"classes of a detector", post("classes"), {":12", "postprocess", "classes"}},
      {"a library that is no executor",
       replaced(model, "model = ", "executor = \"./x.so\"\n  model = "),
       {":10", "application.module.executor", "x.so"},
       {{"x.so", "no library"}}},
      {"an executor that refuses", plug_in("no"), {"the failing executor refuses", "partition 'c'"}},
      {"an executor that crashes",
       plug_in("crash"),
       {":12", "killed by signal 11", "before it was ready", "partition 'c'"}},
      {"an executor that ends its worker", plug_in("exit"), {":12", "status 7", "before it was ready"}},
  };
  const auto add = [&](const char* name, BadCase c, std::vector<std::string> says) {
    c.name = name;
    c.says = std::move(says);
    cases.push_back(std::move(c));
  };
  add("a plan that is no JSON", planned("{"), {":2", "daemon.plan", "p.json"});
  add("a plan of another schema", planned("{\"schema\": \"other\"}"), {":2", "daemon.plan", "p.json", "schema"});
  return cases;
}

}  // namespace

std::string sound_config() {
  return R"([[partition]]
name = "p"
kind = "emulated"
[[application]]
name = "echo"
slo_ms = 500
  [[application.module]]
  name = "sum"
  latency_ms = [0.5]
)";
}

std::string sound_model_config(const std::string& models) {
  return R"([[partition]]
name = "c"
kind = "cpu"
cores = "0"
[[application]]
name = "shapes"
slo_ms = 200
  [[application.module]]
  name = "detect"
  model = ")" +
         models + R"(/detect.onnx"
  preprocess = "letterbox mean=0.5 std=0.5"
  postprocess = "boxes stride=8 score=0.2 iou=0.6"
  labels = ["object"]
  batch = 2
)";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::vector<BadCase> bad_cases(const std::string& models, const std::string& failing_executor) {
  std::vector<BadCase> all = faults_of_reading();
  for (auto& c : faults_of_starting(models, failing_executor)) all.push_back(std::move(c));
  return all;
}

}  // namespace leat::test
