#include "tools/leat/gateway/kserve/routes.h"

#include <algorithm>

#include "tools/leat/gateway/http/text_job.h"
#include "tools/leat/gateway/kserve/describe.h"

namespace leat::gateway {
namespace {

std::unique_ptr<Job> answers(TextJob::Answer answer) { return std::make_unique<TextJob>(std::move(answer)); }
std::unique_ptr<Job> says(Reply reply) { return std::make_unique<TextJob>(std::move(reply)); }
std::unique_ptr<Job> says(const Json& json) {
  Reply reply;
  reply.body = json.dump();
  return says(std::move(reply));
}
std::unique_ptr<Job> refuses(int status, std::string_view why) { return says(error_reply(status, why)); }

Reply nothing_to_say() {
  Reply out;
  out.type = "";
  return out;
}

// Its class names come with a stream, which may have to be opened first.
class ConfigJob : public Job {
 public:
  ConfigJob(Serving& serving, std::shared_ptr<const Catalogue> catalogue, const Model& model)
      : serving_(serving), catalogue_(std::move(catalogue)), model_(model) {}
  void start(Channel& channel) override {
    StreamKey key;
    key.application = model_.name;
    std::vector<leat_tensor_shape> shapes;
    for (const Tensor& t : model_.inputs) shapes.push_back(t.shape);
    if (model_.pictures) return reply(channel, nullptr);
    channel.give_up_at(channel.began_ns() + 10'000'000'000);
    serving_.node.with_link(
        key, std::move(shapes),
        [this, &channel, alive = std::weak_ptr<bool>(alive_)](const std::shared_ptr<Link>& link, const Refusal&) {
          if (!alive.expired()) reply(channel, link.get());
        });
  }

 private:
  void reply(Channel& channel, const Link* link) {
    std::vector<std::string> names;
    for (std::int32_t i = 0; link != nullptr && i < 65536; ++i) {
      const char* const name = leat_class_name(link->raw(), 0, i);
      if (name == nullptr && leat_class_name(link->raw(), 0, i + 1) == nullptr) break;
      names.emplace_back(name != nullptr ? name : "");
    }
    Reply out;
    out.body = model_config(model_, names).dump();
    channel.reply(std::move(out));
  }
  Serving& serving_;
  const std::shared_ptr<const Catalogue> catalogue_;
  const Model& model_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// The next word of a path, which it is cut by.
std::string_view next_word(std::string_view& path) {
  while (path.starts_with('/')) path.remove_prefix(1);
  const std::size_t end = path.find('/');
  const std::string_view word = path.substr(0, end);
  path = end == std::string_view::npos ? std::string_view() : path.substr(end);
  return word;
}

// Takes as long whatever the texts are.
bool same_secret(std::string_view a, std::string_view b) {
  unsigned differ = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    differ |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]);
  return differ == 0;
}

constexpr std::string_view kHelp =
    "Leat's gateway: KServe v2 at /v2, pictures at /v1/vision/detection, figures at /metrics; docs/guide/gateway.md\n";

}  // namespace

std::optional<std::string> decoded(std::string_view path) {
  const auto hex = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 87 : -1;
  };
  std::string out;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '%') {
      out += path[i];
      continue;
    }
    if (i + 2 >= path.size() || hex(path[i + 1]) < 0 || hex(path[i + 2]) < 0) return std::nullopt;
    const int value = hex(path[i + 1]) * 16 + hex(path[i + 2]);
    if (value < ' ' || value == 0x7f || value == '/') return std::nullopt;  // no second way to write a path
    out += static_cast<char>(value);
    i += 2;
  }
  return out;
}

bool Routes::allowed(const Head& head, const Peer& peer) const {
  if (tokens_.empty() || peer.by_unix) return true;
  std::string_view given = head.field("authorization");
  if (!given.starts_with("Bearer ")) return false;
  given.remove_prefix(7);
  return std::any_of(tokens_.begin(), tokens_.end(), [&](const std::string& t) { return same_secret(given, t); });
}

std::unique_ptr<Job> Routes::begin(const Head& head, const Peer& peer) {
  const auto path = decoded(head.path);
  if (!path) return refuses(400, "the path cannot be read");
  const bool health = path->starts_with("/v2/health/");
  if (!health && !allowed(head, peer)) return refuses(401, "this needs a token: Authorization: Bearer TOKEN");
  if (*path == "/v2" || path->starts_with("/v2/")) return v2(head, std::string_view(*path).substr(3));
  const std::string method = head.method == "HEAD" ? "GET" : head.method;
  for (const auto& [key, other] : others_) {
    const bool prefix = key.second.ends_with('/');
    if (key.first == method && (prefix ? path->starts_with(key.second) : *path == key.second))
      return other(head, path->substr(std::min(path->size(), key.second.size())));
  }
  if (*path == "/") {
    Reply help;
    help.type = "text/plain; charset=utf-8";
    help.body = kHelp;
    return says(std::move(help));
  }
  return refuses(404, "there is no " + head.method + " " + *path + " here");
}

std::unique_ptr<Job> Routes::v2(const Head& head, std::string_view path) {
  const std::string whole(path);
  const bool gets = head.method == "GET" || head.method == "HEAD", posts = head.method == "POST";
  const std::string_view word = next_word(path);
  const Catalogue& catalogue = serving_.node.catalogue();
  if (word.empty() && gets) return says(server_metadata(serving_.regions != nullptr));
  if (word == "health" && gets) {
    const std::string_view which = next_word(path);
    if (which == "live") return says(nothing_to_say());
    if (which == "ready") {
      if (serving_.draining) return refuses(503, "this node is being drained");
      if (!serving_.node.ready()) return refuses(503, "not ready: " + serving_.node.why_not());
      return says(nothing_to_say());
    }
  }
  if (word == "repository" && posts) {
    if (next_word(path) == "index") return says(repository_index(catalogue));
    return refuses(501, "models are loaded by leatd's configuration, not by clients");
  }
  if (word == "systemsharedmemory" || word == "cudasharedmemory") return regions(head, whole);
  if (word == "models") {
    const std::string_view name = next_word(path);
    if (name == "stats" && path.empty() && gets) {
      Json list = Json::array();
      for (const Model& m : catalogue.models) list.push_back(model_statistics(m, serving_.counts[m.name]));
      Json out = Json::object();
      out["model_stats"] = list;
      return says(out);
    }
    std::string_view what = next_word(path), version;
    if (what == "versions") {
      version = next_word(path);
      what = next_word(path);
    }
    if (!name.empty() && path.empty()) return model(head, name, version, what);
  }
  return refuses(gets || posts ? 404 : 405, "there is no " + head.method + " /v2" + whole + " here");
}

std::unique_ptr<Job> Routes::model(const Head& head, std::string_view name, std::string_view version,
                                   std::string_view what) {
  auto catalogue = serving_.node.kept();
  const Model* const model = catalogue->find(name);
  if (model == nullptr) {
    if (!serving_.node.ready()) return refuses(503, "not ready: " + serving_.node.why_not());
    return refuses(404, "there is no model '" + std::string(name) + "' here");
  }
  if (!is_version(*model, version))
    return refuses(404, "model '" + model->name + "' is served in version " + model->version);
  if (head.method == "POST" && what == "infer")
    return std::make_unique<InferJob>(serving_, std::move(catalogue), *model);
  if ((head.method != "GET" && head.method != "HEAD") || what == "infer")
    return refuses(405, "a model takes POST .../infer, and GET for the rest");
  if (what == "ready") {
    if (serving_.draining) return refuses(503, "this node is being drained");
    if (!serving_.node.ready()) return refuses(503, "not ready: " + serving_.node.why_not());
    return says(nothing_to_say());
  }
  if (what.empty()) return says(model_metadata(*model));
  if (what == "config") return std::make_unique<ConfigJob>(serving_, std::move(catalogue), *model);
  if (what == "stats") {
    Json list = Json::array();
    list.push_back(model_statistics(*model, serving_.counts[model->name]));
    Json out = Json::object();
    out["model_stats"] = list;
    return says(out);
  }
  return refuses(404, "there is no '" + std::string(what) + "' of a model here");
}

std::unique_ptr<Job> Routes::regions(const Head& head, std::string_view path) {
  const bool cuda = next_word(path) == "cudasharedmemory", posts = head.method == "POST";
  std::string region;
  std::string_view what = next_word(path);
  if (what == "region") {
    region = next_word(path);
    what = next_word(path);
  }
  if (what != "status" && what != "register" && what != "unregister")
    return refuses(404, "there is no such request about shared memory");
  if ((what == "status") == posts) return refuses(405, "shared memory takes GET for status, and POST for the rest");
  SharedMemory* const memory = serving_.regions;
  if (cuda || memory == nullptr) {  // clients unregister what they never registered
    if (what == "status") return says(Json::array());
    if (what == "unregister") return says(nothing_to_say());
    return refuses(501, cuda ? "CUDA memory of clients is not taken; send tensors as binary data"
                             : "shared memory is not allowed here; start the gateway with --shared-memory");
  }
  if (what == "status")
    return answers([memory, region](std::string_view, const Channel& channel) {
      Reply out;
      out.body = memory->listed(region, channel.peer()).dump();
      return out;
    });
  if (what == "unregister")
    return answers([memory, region](std::string_view, const Channel& channel) {
      memory->remove(region, channel.peer());
      return nothing_to_say();
    });
  return answers([memory, region](std::string_view body, const Channel& channel) {
    try {
      const Json json = Json::parse(body);
      const std::string wrong =
          memory->add(region, json.at("key").get<std::string>(), json.value("offset", std::uint64_t{0}),
                      json.at("byte_size").get<std::uint64_t>(), channel.peer());
      return wrong.empty() ? nothing_to_say() : error_reply(400, wrong);
    } catch (const JsonError& error) {
      return error_reply(400, std::string("the request cannot be read: ") + error.what());
    }
  });
}

}  // namespace leat::gateway
