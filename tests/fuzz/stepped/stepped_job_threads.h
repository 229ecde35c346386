// See stepped_job_threads.cpp. Thread rule: one thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/daemon/clients/jobs/job_threads.h"

namespace leat::fuzz {

void run_jobs(std::uint32_t steps);  // at most
std::size_t waiting_jobs();          // jobs

}  // namespace leat::fuzz
