#include "tools/grpc/service.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <chrono>

#include "kserve.grpc.pb.h"
#include "tools/base/json/json.h"
#include "tools/grpc/translate.h"

namespace leat::grpc_door {
namespace {

using grpc::ServerContext;
using grpc::Status;
using grpc::StatusCode;

constexpr auto kLongest = std::chrono::hours(1);

StatusCode code_of(int http) {
  switch (http) {
    case 400:
    case 411:
    case 413:
      return StatusCode::INVALID_ARGUMENT;
    case 401:
      return StatusCode::UNAUTHENTICATED;
    case 403:
      return StatusCode::PERMISSION_DENIED;
    case 404:
      return StatusCode::NOT_FOUND;
    case 429:
      return StatusCode::RESOURCE_EXHAUSTED;
    case 501:
      return StatusCode::UNIMPLEMENTED;
    case 503:
      return StatusCode::UNAVAILABLE;
    case 504:
      return StatusCode::DEADLINE_EXCEEDED;
    default:
      return StatusCode::INTERNAL;
  }
}

std::string why_of(const HttpAnswer& answer) {
  const auto json = Json::try_parse(answer.body);
  const Json* const error = json ? json->find("error") : nullptr;
  return error != nullptr && error->is_string() ? error->get<std::string>()
                                                : "the gateway answers with status " + std::to_string(answer.status);
}

std::string text_of(grpc::string_ref text) { return {text.data(), text.size()}; }

bool is_local(const ServerContext& context) {
  const std::string peer = context.peer();
  return peer.starts_with("unix:") || peer.starts_with("ipv4:127.") || peer.starts_with("ipv6:[::1]") ||
         peer.starts_with("ipv6:%5B::1%5D");
}

// What the client's metadata says to the gateway.
Fields fields_of(const ServerContext& context) {
  Fields out;
  for (const auto& [key, value] : context.client_metadata())
    if (key == "authorization" || (key.starts_with("x-leat-") && !key.ends_with("-bin")))
      out.emplace_back(text_of(key), text_of(value));
  return out;
}

class Service final : public inference::GRPCInferenceService::Service {
 public:
  explicit Service(Upstream& upstream) : upstream_(upstream) {}

  Status ServerLive(ServerContext* context, const inference::ServerLiveRequest*,
                    inference::ServerLiveResponse* to) override {
    return says_yes(*context, "/v2/health/live", [to](bool yes) { to->set_live(yes); });
  }
  Status ServerReady(ServerContext* context, const inference::ServerReadyRequest*,
                     inference::ServerReadyResponse* to) override {
    return says_yes(*context, "/v2/health/ready", [to](bool yes) { to->set_ready(yes); });
  }
  Status ModelReady(ServerContext* context, const inference::ModelReadyRequest* asked,
                    inference::ModelReadyResponse* to) override {
    return says_yes(*context, model_path(asked->name(), asked->version()) + "/ready",
                    [to](bool yes) { to->set_ready(yes); });
  }
  Status ServerMetadata(ServerContext* context, const inference::ServerMetadataRequest*,
                        inference::ServerMetadataResponse* to) override {
    return told(*context, {.path = "/v2"}, to);
  }
  Status ModelMetadata(ServerContext* context, const inference::ModelMetadataRequest* asked,
                       inference::ModelMetadataResponse* to) override {
    return told(*context, {.path = model_path(asked->name(), asked->version())}, to);
  }
  Status ModelConfig(ServerContext* context, const inference::ModelConfigRequest* asked,
                     inference::ModelConfigResponse* to) override {
    return told(*context, {.path = model_path(asked->name(), asked->version()) + "/config"}, to->mutable_config());
  }
  Status ModelStatistics(ServerContext* context, const inference::ModelStatisticsRequest* asked,
                         inference::ModelStatisticsResponse* to) override {
    const std::string of = asked->name().empty() ? "/v2/models" : model_path(asked->name(), asked->version());
    return told(*context, {.path = of + "/stats"}, to);
  }
  Status RepositoryIndex(ServerContext* context, const inference::RepositoryIndexRequest*,
                         inference::RepositoryIndexResponse* to) override {
    return told(*context, {.method = "POST", .path = "/v2/repository/index"}, to, "models");
  }
  Status RepositoryModelLoad(ServerContext* context, const inference::RepositoryModelLoadRequest* asked,
                             inference::RepositoryModelLoadResponse*) override {
    return done(*context, "/v2/repository/models/" + path_word(asked->model_name()) + "/load");
  }
  Status RepositoryModelUnload(ServerContext* context, const inference::RepositoryModelUnloadRequest* asked,
                               inference::RepositoryModelUnloadResponse*) override {
    return done(*context, "/v2/repository/models/" + path_word(asked->model_name()) + "/unload");
  }

  Status ModelInfer(ServerContext* context, const inference::ModelInferRequest* asked,
                    inference::ModelInferResponse* to) override {
    return infer(*context, *asked, *to);
  }
  // One after the other; who wants several at once opens several streams, or asks without one.
  Status ModelStreamInfer(
      ServerContext* context,
      grpc::ServerReaderWriter<inference::ModelStreamInferResponse, inference::ModelInferRequest>* stream) override {
    inference::ModelInferRequest asked;
    while (stream->Read(&asked)) {
      inference::ModelStreamInferResponse out;
      const Status status = infer(*context, asked, *out.mutable_infer_response());
      if (!status.ok()) {
        out.mutable_infer_response()->Clear();
        out.mutable_infer_response()->set_id(asked.id());
        out.set_error_message(status.error_message());
      }
      if (!stream->Write(out)) break;
    }
    return Status::OK;
  }

  Status SystemSharedMemoryStatus(ServerContext* context, const inference::SystemSharedMemoryStatusRequest* asked,
                                  inference::SystemSharedMemoryStatusResponse* to) override {
    HttpAnswer answer;
    if (Status status = passed(*context, {.path = region_path("system", asked->name()) + "/status"}, answer);
        !status.ok())
      return status;
    const auto list = Json::try_parse(answer.body);
    if (!list || !list->is_array()) return {StatusCode::INTERNAL, "the gateway's list of regions cannot be read"};
    for (const Json& region : *list) {
      auto& one = (*to->mutable_regions())[region.value("name", "")];
      one.set_name(region.value("name", ""));
      one.set_key(region.value("key", ""));
      one.set_offset(region.value("offset", std::uint64_t{0}));
      one.set_byte_size(region.value("byte_size", std::uint64_t{0}));
    }
    return Status::OK;
  }
  Status SystemSharedMemoryRegister(ServerContext* context, const inference::SystemSharedMemoryRegisterRequest* asked,
                                    inference::SystemSharedMemoryRegisterResponse*) override {
    if (Status status = may_share(*context); !status.ok()) return status;
    const Json body = {{"key", asked->key()}, {"offset", asked->offset()}, {"byte_size", asked->byte_size()}};
    return done(*context, region_path("system", asked->name()) + "/register", body.dump());
  }
  Status SystemSharedMemoryUnregister(ServerContext* context,
                                      const inference::SystemSharedMemoryUnregisterRequest* asked,
                                      inference::SystemSharedMemoryUnregisterResponse*) override {
    if (Status status = may_share(*context); !status.ok()) return status;
    return done(*context, region_path("system", asked->name()) + "/unregister");
  }
  Status CudaSharedMemoryStatus(ServerContext*, const inference::CudaSharedMemoryStatusRequest*,
                                inference::CudaSharedMemoryStatusResponse*) override {
    return Status::OK;  // there is none
  }
  Status CudaSharedMemoryRegister(ServerContext* context, const inference::CudaSharedMemoryRegisterRequest* asked,
                                  inference::CudaSharedMemoryRegisterResponse*) override {
    return done(*context, region_path("cuda", asked->name()) + "/register");
  }
  Status CudaSharedMemoryUnregister(ServerContext*, const inference::CudaSharedMemoryUnregisterRequest*,
                                    inference::CudaSharedMemoryUnregisterResponse*) override {
    return Status::OK;
  }

 private:
  static std::string region_path(const std::string& kind, const std::string& name) {
    return "/v2/" + kind + "sharedmemory" + (name.empty() ? "" : "/region/" + path_word(name));
  }
  // The gateway takes whoever comes by loopback for a client of this host, and all of them come so from here.
  static Status may_share(const ServerContext& context) {
    if (is_local(context)) return Status::OK;
    return {StatusCode::PERMISSION_DENIED, "shared memory is for clients of this host; send tensors raw"};
  }

  // The gateway's answer, whatever its status; what the gateway says beside it goes with the call's.
  Status answered(ServerContext& context, HttpRequest request, HttpAnswer& out) {
    for (auto& field : fields_of(context)) request.fields.push_back(std::move(field));
    const auto left = context.deadline() - std::chrono::system_clock::now();
    const auto until = Upstream::Clock::now() + std::min<std::chrono::nanoseconds>(left, kLongest);
    auto answer = upstream_.exchange(request, until, [&] { return context.IsCancelled(); });
    if (!answer.ok()) return {StatusCode::UNAVAILABLE, answer.error()};
    out = std::move(*answer);
    return Status::OK;
  }
  // An answer with status 200.
  Status passed(ServerContext& context, HttpRequest request, HttpAnswer& out) {
    if (Status status = answered(context, std::move(request), out); !status.ok()) return status;
    return out.status == 200 ? Status::OK : Status(code_of(out.status), why_of(out));
  }
  Status done(ServerContext& context, const std::string& path, const std::string& body = {}) {
    HttpAnswer answer;
    return passed(context, {.method = "POST", .path = path, .body = {body}}, answer);
  }
  template <class Set>
  Status says_yes(ServerContext& context, const std::string& path, Set set) {
    HttpAnswer answer;
    if (Status status = answered(context, {.path = path}, answer); !status.ok()) return status;
    if (answer.status == 401 || answer.status == 403) return {code_of(answer.status), why_of(answer)};
    set(answer.status == 200);
    return Status::OK;
  }
  // JSON whose keys are the message's; with `list` an array which is the message's field of that name.
  Status told(ServerContext& context, HttpRequest request, google::protobuf::Message* to, const char* list = nullptr) {
    HttpAnswer answer;
    if (Status status = passed(context, std::move(request), answer); !status.ok()) return status;
    if (list != nullptr) answer.body = "{\"" + std::string(list) + "\":" + answer.body + "}";
    google::protobuf::util::JsonParseOptions options;
    options.ignore_unknown_fields = true;
    const auto read = google::protobuf::util::JsonStringToMessage(answer.body, to, options);
    if (!read.ok())
      return {StatusCode::INTERNAL, "the gateway's answer cannot be read: " + std::string(read.message())};
    return Status::OK;
  }

  Status infer(ServerContext& context, const inference::ModelInferRequest& asked, inference::ModelInferResponse& to) {
    if (names_shared_memory(asked))
      if (Status status = may_share(context); !status.ok()) return status;
    auto passing = passed_of(asked);
    if (!passing.ok()) return {StatusCode::INVALID_ARGUMENT, passing.error()};
    HttpRequest& request = passing->request;
    request.body.insert(request.body.begin(), passing->head);
    add_budget(context, asked, request.fields);
    HttpAnswer answer;
    const Status status = passed(context, std::move(request), answer);
    for (const auto& [name, value] : answer.fields)
      if (name.starts_with("x-leat-") || name == "retry-after" || name == "endpoint-load-metrics")
        context.AddTrailingMetadata(name, value);
    if (!status.ok()) return status;
    const std::string wrong = fill_response(answer, to);
    return wrong.empty() ? Status::OK : Status(StatusCode::INTERNAL, "the gateway: " + wrong);
  }
  // A call's deadline is its budget where it says no other.
  static void add_budget(const ServerContext& context, const inference::ModelInferRequest& asked, Fields& fields) {
    if (asked.parameters().contains("timeout") || context.client_metadata().count("x-leat-budget-us") != 0) return;
    const auto left =
        std::chrono::duration_cast<std::chrono::microseconds>(context.deadline() - std::chrono::system_clock::now());
    if (left < kLongest)
      fields.emplace_back("X-Leat-Budget-Us", std::to_string(std::max<std::int64_t>(left.count(), 1)));
  }

  Upstream& upstream_;
};

}  // namespace

std::shared_ptr<grpc::Service> make_service(Upstream& upstream) { return std::make_shared<Service>(upstream); }

}  // namespace leat::grpc_door
