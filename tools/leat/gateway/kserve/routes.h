// Which request is what: KServe v2, health, and what other rooms add beside it. Requests from beyond this host need a
// token where the gateway has any; health does not. Thread rule: the gateway's thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/leat/gateway/http/job.h"
#include "tools/leat/gateway/kserve/infer_job.h"

namespace leat::gateway {

class Routes : public Service {
 public:
  explicit Routes(Serving& serving, std::vector<std::string> tokens) : serving_(serving), tokens_(std::move(tokens)) {}
  std::unique_ptr<Job> begin(const Head& head, const Peer& peer) override;

  // A path of another room; `rest` is what follows a prefix that ends in '/'.
  using Begin = std::function<std::unique_ptr<Job>(const Head& head, const std::string& rest)>;
  void add(const std::string& method, const std::string& path, Begin begin) {
    others_[{method, path}] = std::move(begin);
  }

 private:
  std::unique_ptr<Job> v2(const Head& head, std::string_view path);
  std::unique_ptr<Job> model(const Head& head, std::string_view name, std::string_view version, std::string_view what);
  std::unique_ptr<Job> regions(const Head& head, std::string_view path);
  [[nodiscard]] bool allowed(const Head& head, const Peer& peer) const;

  Serving& serving_;
  const std::vector<std::string> tokens_;
  std::map<std::pair<std::string, std::string>, Begin> others_;
};

// "%20" and the like; nothing: it is no text.
[[nodiscard]] std::optional<std::string> decoded(std::string_view path);

}  // namespace leat::gateway
