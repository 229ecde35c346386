// From windows of one record to its figures. Pure.
#pragma once

#include "tools/leat/top/facts/facts.h"

namespace leat::tools::top {

// The samples that a second's figures are of: a null one is not there.
struct Windows {
  const Sample* now = nullptr;
  const Sample *one = nullptr, *five = nullptr, *ten = nullptr, *minute = nullptr;
};

[[nodiscard]] StreamFigures measure_stream(const Windows& windows, const shm::RecordSnapshot& record,
                                           StreamReading* reading);
[[nodiscard]] PartitionFigures measure_partition(const Windows& windows, const shm::RecordSnapshot& record);
[[nodiscard]] ModuleFigures measure_module(const Windows& windows, const shm::RecordSnapshot& record);
[[nodiscard]] UserFigures measure_user(const Windows& windows, const shm::RecordSnapshot& record);
[[nodiscard]] DaemonFigures measure_daemon(const Windows& windows);
void measure_clients(const Windows& windows, Second* second);  // its streams are measured
void measure_within(const Windows& windows, Second* second);   // users' requests within their share; the same
[[nodiscard]] std::vector<ReasonFigures> measure_reasons(const Windows& windows);

[[nodiscard]] std::string name_of_user(const Sample& sample, std::uint32_t index);

}  // namespace leat::tools::top
