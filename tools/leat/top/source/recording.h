// Recordings of observations: lines of JSON, raw counters, so that a later release computes anew; counters are known by
// the names of the first line, so that one which moved, came or went does no harm. The first line says what it is; each
// further one is an observation: what changed since the line before, and every minute all of it, so that a reader can
// begin there. A torn last line is left out.
//
//   {"leat_recording":1,"names":{"stream":["submitted",...],...}}
//   {"t":ns,"w":ns,"o":s,"full":true,"status":"...","r":[[kind,index,epoch,label,values,causes,first,second],...]}
//   {"t":ns,"w":ns,"o":s,"r":[...],"x":[[kind,index],...]}        values and buckets: place and difference, in turn
//   {"t":ns,"w":ns,"o":s,"gone":true}
// Cameras and GPUs ("cameras", "gpus") stand in a line where they are other than in the line before.
#pragma once

#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leat/result.hpp"
#include "tools/leat/top/facts/observation.h"

namespace leat::tools::top {

inline constexpr std::int64_t kWholeEveryNs = 60'000'000'000;

// Observations to lines. Pure.
class RecordingText {
 public:
  [[nodiscard]] static std::string head();
  [[nodiscard]] std::string line_of(const Observation& observation);

 private:
  std::map<std::pair<shm::RecordKind, std::uint32_t>, shm::RecordSnapshot> was_;
  std::int64_t whole_ns_ = 0;
  std::string status_, cameras_ = "[]", gpus_ = "[]";
  std::map<std::string, std::string> users_;
};

// Lines to observations.
class Recording {
 public:
  static Result<Recording> open(const std::string& path);
  // Empty: there is no further one, or it is torn.
  std::optional<Observation> next();
  // The next observation is the first of a whole line that is no later than this, or the first of all.
  void seek(std::int64_t wall_ns);
  [[nodiscard]] std::int64_t first_wall_ns() const noexcept { return first_wall_ns_; }
  [[nodiscard]] std::int64_t utc_offset_s() const noexcept { return utc_offset_s_; }

 private:
  std::string text_, path_;
  // Of each kind, where the recording's values lie today; kMaxValues: nowhere.
  std::array<std::vector<std::size_t>, shm::kRecordKinds> places_;
  bool read_names(const Json& names);
  void read_record(const Json& json);
  std::size_t at_ = 0, begin_ = 0;
  std::map<std::pair<shm::RecordKind, std::uint32_t>, shm::RecordSnapshot> records_;
  std::map<std::string, std::string> users_;
  std::vector<CameraFigures> cameras_;
  std::vector<HeatFigures> gpus_;
  std::int64_t first_wall_ns_ = 0, utc_offset_s_ = 0;
};

// A file that is being written.
class Recorder {
 public:
  static Result<Recorder> create(const std::string& path);
  Status write(const Observation& observation);
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
  RecordingText text_;
  std::string path_;
};

}  // namespace leat::tools::top
