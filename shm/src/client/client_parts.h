// What the files of the client library need of each other.
#pragma once

#include "leat/leat.h"
#include "shm/src/client/client_state.h"

namespace leat::shm {

leat_error disconnected(leat_client* client);  // from now on it is; the error that every call returns then
// For a client whose application waits on its descriptor: leaves the sleep word set, so that the descriptor becomes
// readable when an answer comes, or a stream that asks is told something. False: something has slipped in.
bool arm_descriptor(leat_client* client);

}  // namespace leat::shm
