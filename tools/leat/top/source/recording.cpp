#include "tools/leat/top/source/recording.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <span>

#include "tools/base/json/json.h"
#include "tools/leat/top/source/seen_json.h"

namespace leat::tools::top {
namespace {

using shm::RecordKind;
using shm::RecordSnapshot;

constexpr int kVersion = 1;
constexpr std::string_view kHead = R"({"leat_recording":)";

template <class T>
void append(std::string* out, T number) {
  char text[24];
  const auto end = std::to_chars(text, text + sizeof text, number).ptr;
  out->append(text, end);
}

// Place and difference in turn, of what differs; modulo 2^64, so that unknown values need no word of their own.
template <class Now, class Was>
std::size_t append_differences(std::string* out, const Now& now, const Was* was) {
  std::size_t count = 0;
  *out += '[';
  for (std::size_t i = 0; i < now.size(); ++i) {
    const std::uint64_t before = was != nullptr && i < was->size() ? (*was)[i] : 0;
    if (now[i] == before) continue;
    if (count++ != 0) *out += ',';
    append(out, i);
    *out += ',';
    append(out, static_cast<std::int64_t>(now[i] - before));
  }
  *out += ']';
  return count;
}

template <class F>
void for_each_record(const Sample& sample, F&& f) {
  for (const auto* single : {&sample.daemon, &sample.total})
    if (*single) f(**single);
  for (const auto* list :
       {&sample.clients, &sample.streams, &sample.modules, &sample.partitions, &sample.edges, &sample.users})
    for (const RecordSnapshot& record : *list) f(record);
}

// Empty: it is as it was.
std::string record_text(const RecordSnapshot& now, const RecordSnapshot* was) {
  if (was != nullptr && (was->epoch != now.epoch || was->label != now.label)) was = nullptr;
  std::string out = "[";
  append(&out, static_cast<unsigned>(now.kind));
  out += ',';
  append(&out, now.index);
  out += ',';
  append(&out, now.epoch);
  out += ',';
  out += was == nullptr ? Json(now.label).dump() : "0";
  std::size_t changed = was == nullptr ? 1 : 0;
  std::string parts[4];
  const std::span<const std::uint64_t> values(now.values.data(), shm::counter_names(now.kind).size());
  changed += append_differences(&parts[0], values, was == nullptr ? nullptr : &was->values);
  changed += append_differences(&parts[1], now.causes, was == nullptr ? nullptr : &was->causes);
  changed += append_differences(&parts[2], now.buckets[0], was == nullptr ? nullptr : &was->buckets[0]);
  changed += append_differences(&parts[3], now.buckets[1], was == nullptr ? nullptr : &was->buckets[1]);
  if (changed == 0) return {};
  int last = 3;
  while (last >= 0 && parts[last].size() == 2) --last;
  for (int i = 0; i <= last; ++i) out += "," + parts[i];
  return out + "]";
}

template <class To>
void add_differences(const Json& list, To* to) {
  for (std::size_t i = 0; i + 1 < list.size(); i += 2) {
    const auto place = list[i].get<std::size_t>();
    if (place < to->size()) (*to)[place] += static_cast<std::uint64_t>(list[i + 1].get<std::int64_t>());
  }
}

void put_into(Sample* sample, const RecordSnapshot& record) {
  switch (record.kind) {
    case RecordKind::daemon:
      sample->daemon = record;
      return;
    case RecordKind::total:
      sample->total = record;
      return;
    case RecordKind::client:
      return sample->clients.push_back(record);
    case RecordKind::stream:
      return sample->streams.push_back(record);
    case RecordKind::module:
      return sample->modules.push_back(record);
    case RecordKind::partition:
      return sample->partitions.push_back(record);
    case RecordKind::edge:
      return sample->edges.push_back(record);
    case RecordKind::user:
      return sample->users.push_back(record);
    case RecordKind::count_:
      return;
  }
}

// The number behind a key near the beginning of a line, without reading all of it; 0: it is not there.
std::int64_t number_behind(std::string_view line, std::string_view key) {
  const std::size_t at = line.substr(0, 200).find(key);
  std::int64_t value = 0;
  if (at != std::string_view::npos) std::from_chars(line.data() + at + key.size(), line.data() + line.size(), value);
  return value;
}

std::string_view line_at(const std::string& text, std::size_t at) {
  const std::size_t end = text.find('\n', at);
  return end == std::string::npos ? std::string_view() : std::string_view(text).substr(at, end - at);
}

}  // namespace

std::string RecordingText::head() {
  Json names = Json::object();
  for (std::uint32_t k = 0; k < shm::kRecordKinds; ++k) {
    Json list = Json::array();
    for (const shm::CounterName& counter : shm::counter_names(static_cast<RecordKind>(k))) list.push_back(counter.name);
    names[std::string(name_of(static_cast<RecordKind>(k)))] = std::move(list);
  }
  return std::string(kHead) + std::to_string(kVersion) + ",\"names\":" + names.dump() + "}\n";
}

std::string RecordingText::line_of(const Observation& o) {
  std::string out = "{\"t\":";
  append(&out, o.sample.at_ns);
  out += ",\"w\":";
  append(&out, o.wall_ns);
  out += ",\"o\":";
  append(&out, o.utc_offset_s);
  if (o.gone) {
    was_.clear();
    whole_ns_ = 0;
    return out + ",\"gone\":true}\n";
  }
  const bool whole = whole_ns_ == 0 || o.sample.at_ns - whole_ns_ >= kWholeEveryNs;
  if (whole) {
    whole_ns_ = o.sample.at_ns;
    was_.clear();
    out += ",\"full\":true";
  }
  if (o.status && (whole || *o.status != status_))
    status_ = *o.status, out += ",\"status\":" + Json(status_).dump();
  else if (whole && !status_.empty())
    out += ",\"status\":" + Json(status_).dump();
  const auto add_list = [&](const char* key, const std::string& now, std::string& was) {
    if (whole ? now != "[]" : now != was) out += std::string(",\"") + key + "\":" + now;
    was = now;
  };
  add_list("cameras", to_json(o.cameras).dump(), cameras_);
  add_list("gpus", to_json(o.gpus).dump(), gpus_);
  if (whole || o.sample.user_names != users_) {
    users_ = o.sample.user_names;
    out += ",\"users\":" + Json(users_).dump();
  }
  out += ",\"r\":[";
  bool first = true;
  std::map<std::pair<RecordKind, std::uint32_t>, RecordSnapshot> now;
  for_each_record(o.sample, [&](const RecordSnapshot& record) {
    const std::pair key(record.kind, record.index);
    const auto was = was_.find(key);
    const std::string text = record_text(record, was == was_.end() ? nullptr : &was->second);
    now[key] = record;
    if (text.empty()) return;
    if (!first) out += ',';
    first = false;
    out += text;
  });
  out += ']';
  std::string ended;
  for (const auto& [key, record] : was_)
    if (!now.contains(key)) {
      ended += (ended.empty() ? "[" : ",[") + std::to_string(static_cast<unsigned>(key.first)) + "," +
               std::to_string(key.second) + "]";
    }
  if (!ended.empty()) out += ",\"x\":[" + ended + "]";
  was_ = std::move(now);
  return out + "}\n";
}

Result<Recording> Recording::open(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{path + ": cannot be read: " + std::strerror(errno)};
  Recording out;
  out.path_ = path;
  out.text_.assign(std::istreambuf_iterator<char>(file), {});
  const std::string_view head = line_at(out.text_, 0);
  if (!head.starts_with(kHead)) return Error{path + ": this is no recording of leat top; make one with --record"};
  if (number_behind(head, kHead) != kVersion)
    return Error{path + ": this recording is of another release; show it with that one"};
  const auto json = Json::try_parse(head);
  if (!json || !json->contains("names") || !out.read_names(json->at("names")))
    return Error{path + ": the first line of this recording cannot be read; it was changed"};
  out.at_ = out.begin_ = head.size() + 1;
  const std::string_view first = line_at(out.text_, out.at_);
  out.first_wall_ns_ = number_behind(first, "\"w\":");
  out.utc_offset_s_ = number_behind(first, "\"o\":");
  if (first.empty()) return Error{path + ": nothing was recorded in it"};
  return out;
}

bool Recording::read_names(const Json& names) {
  for (std::uint32_t k = 0; k < shm::kRecordKinds; ++k) {
    const auto today = shm::counter_names(static_cast<RecordKind>(k));
    const Json* const list = names.find(name_of(static_cast<RecordKind>(k)));
    if (list == nullptr || !list->is_array()) return false;
    for (const Json& name : *list) {
      if (!name.is_string()) return false;
      const auto text = name.get<std::string>();
      const auto at =
          std::find_if(today.begin(), today.end(), [&](const auto& counter) { return counter.name == text; });
      places_[k].push_back(at == today.end() ? shm::kMaxValues : static_cast<std::size_t>(at - today.begin()));
    }
  }
  return true;
}

void Recording::read_record(const Json& json) {
  const auto kind = json[0].get<unsigned>(), index = json[1].get<unsigned>();
  if (kind >= shm::kRecordKinds || index >= shm::kMaxRecords[kind]) throw JsonError("no such record");
  RecordSnapshot& record = records_[{static_cast<RecordKind>(kind), index}];
  const std::vector<std::size_t>& places = places_[kind];
  if (json[3].is_string() || record.buckets[0].empty()) {
    record = {};
    record.kind = static_cast<RecordKind>(kind);
    record.index = index;
    if (json[3].is_string()) record.label = json[3].get<std::string>();
    record.values.fill(shm::kUnknown);  // what was not recorded is not known
    for (const std::size_t place : places)
      if (place < record.values.size()) record.values[place] = 0;
    for (auto& buckets : record.buckets) buckets.assign(shm::kBuckets, 0);
  }
  record.epoch = json[2].get<std::uint32_t>();
  record.live = true;
  if (json.size() > 4)
    for (std::size_t i = 0; i + 1 < json[4].size(); i += 2) {
      const auto from = json[4][i].get<std::size_t>();
      const std::size_t place = from < places.size() ? places[from] : shm::kMaxValues;
      if (place < record.values.size())
        record.values[place] += static_cast<std::uint64_t>(json[4][i + 1].get<std::int64_t>());
    }
  if (json.size() > 5) add_differences(json[5], &record.causes);
  if (json.size() > 6) add_differences(json[6], &record.buckets[0]);
  if (json.size() > 7) add_differences(json[7], &record.buckets[1]);
}

void Recording::seek(std::int64_t wall_ns) {
  std::size_t found = begin_;
  for (std::size_t at = begin_; at < text_.size();) {
    const std::string_view line = line_at(text_, at);
    if (line.empty()) break;
    if (number_behind(line, "\"w\":") > wall_ns) break;
    if (line.substr(0, 120).find("\"full\":true") != std::string_view::npos) found = at;
    at += line.size() + 1;
  }
  at_ = found;
  records_.clear();
}

std::optional<Observation> Recording::next() {
  const std::string_view line = line_at(text_, at_);
  if (line.empty()) return std::nullopt;
  at_ += line.size() + 1;
  const auto json = Json::try_parse(line);
  if (!json) return std::nullopt;
  try {
    Observation out;
    out.sample.at_ns = json->at("t").get<std::int64_t>();
    out.wall_ns = json->at("w").get<std::int64_t>();
    out.utc_offset_s = json->at("o").get<std::int64_t>();
    if (json->contains("gone")) {
      out.gone = true;
      records_.clear();
      return out;
    }
    if (json->contains("full")) {
      records_.clear();
      cameras_.clear();
      gpus_.clear();
    }
    if (json->contains("cameras")) cameras_ = cameras_recorded(json->at("cameras"));
    if (json->contains("gpus")) gpus_ = gpus_recorded(json->at("gpus"));
    out.cameras = cameras_;
    out.gpus = gpus_;
    if (json->contains("status")) out.status = json->at("status").get<std::string>();
    if (json->contains("users")) {
      users_.clear();
      for (const Json::Member& user : json->at("users").items()) users_[user.key] = user.value.get<std::string>();
    }
    for (const Json& record : json->at("r")) read_record(record);
    if (json->contains("x"))
      for (const Json& gone : json->at("x"))
        records_.erase({static_cast<RecordKind>(gone[0].get<unsigned>()), gone[1].get<std::uint32_t>()});
    for (const auto& [key, record] : records_) put_into(&out.sample, record);
    out.sample.user_names = users_;
    return out;
  } catch (const JsonError&) {
    return std::nullopt;
  }
}

Result<Recorder> Recorder::create(const std::string& path) {
  Recorder out;
  out.path_ = path;
  out.file_.reset(std::fopen(path.c_str(), "we"));
  if (!out.file_) return Error{path + ": cannot be written: " + std::strerror(errno)};
  const std::string head = RecordingText::head();
  std::fwrite(head.data(), 1, head.size(), out.file_.get());
  return out;
}

Status Recorder::write(const Observation& observation) {
  const std::string line = text_.line_of(observation);
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() || std::fflush(file_.get()) != 0)
    return Error{path_ + ": cannot be written any further: " + std::strerror(errno)};
  return Done{};
}

}  // namespace leat::tools::top
