// KServe's v2 calls by gRPC, each passed on to the gateway and its answer back. What may be asked, budgets, limits,
// figures and the ledger are the gateway's alone; nothing is kept here between two calls.
// Thread rule: gRPC's threads, one for each call.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include "tools/grpc/upstream.h"

namespace leat::grpc_door {

// `upstream` must outlive it.
std::shared_ptr<grpc::Service> make_service(Upstream& upstream);

}  // namespace leat::grpc_door
