// Pages that one writes and others read while it does: records of counters, events, schedules, a segment's header.
// Of the thousand words of a record and the thirty of a schedule a few are watched; all are written and read alike.
#include <algorithm>
#include <array>
#include <initializer_list>
#include <memory>
#include <vector>

#include "shm/src/counters/counters.h"
#include "shm/src/counters/counters_view.h"
#include "shm/src/segments/schedule_page.h"
#include "tests/explore/models/models.h"

namespace leat::explore {
namespace {

using shm::RecordKind;
using shm::StreamCounter;

std::function<bool(const void*)> only(std::vector<const void*> words) {
  return [words = std::move(words)](const void* word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
}

// A counters segment, its reader, and the same memory for the set-up to write.
struct Counters {
  Counters()
      : writer(std::move(shm::CountersWriter::create()).value()),
        reader(std::move(shm::CountersReader::map(std::move(writer.share()).value(), writer.bytes())).value()),
        memory(std::move(shm::Mapping::map(std::move(writer.share()).value().get(), writer.bytes(),
                                           shm::Access::read_write, false))
                   .value()),
        layout(
            memory.at<shm::RecordLayout>(shm::counters_layout().offset[static_cast<std::size_t>(RecordKind::stream)])),
        head(memory.at<std::uint64_t>(shm::counters_layout().events_head)),
        cell(memory.at<shm::Event>(shm::counters_layout().events)) {}

  [[nodiscard]] std::uint64_t* word(StreamCounter c) const { return &layout->values[static_cast<std::size_t>(c)]; }
  [[nodiscard]] std::function<bool(const void*)> watched() const {
    return only({&layout->state, &layout->version, layout->label, word(StreamCounter::submitted),
                 word(StreamCounter::completed)});
  }

  shm::CountersWriter writer;
  shm::CountersReader reader;
  shm::Mapping memory;
  shm::RecordLayout* layout;
  std::uint64_t* head;
  shm::Event* cell;
  shm::Record record;
};

// A ledger that is always even, where the reader believes that it saw it whole.
Model ledger(const std::shared_ptr<Counters>& c, int updates, int looks, std::uint32_t bound) {
  return {.name = "a record's ledger",
          .set_up = [=] { c->record = c->writer.begin(RecordKind::stream, 0, "a"); },
          .actors = {[=] {
                       for (int i = 0; i < updates; ++i) {
                         const shm::Record::Update together(c->record);
                         c->record.add(StreamCounter::submitted);
                         c->record.add(StreamCounter::completed);
                       }
                     },
                     [=] {
                       std::uint64_t last = 0;
                       for (int i = 0; i < looks; ++i) {
                         const auto s = c->reader.snapshot(RecordKind::stream, 0);
                         require(s && s->live, "a live record was not found");
                         if (!s || !s->together) continue;
                         const auto submitted = s->value(StreamCounter::submitted),
                                    completed = s->value(StreamCounter::completed);
                         require(submitted == completed, "a torn record passes for whole");
                         require(submitted >= last, "a record goes back");
                         last = submitted.value_or(0);
                       }
                     }},
          .watched = c->watched(),
          .looks = bound};
}

// A record ends: its last values are there for whoever sees that it has, also those that no Update held together.
Model ended(const std::shared_ptr<Counters>& c) {
  return {.name = "a record, ended",
          .set_up = [=] { c->record = c->writer.begin(RecordKind::stream, 0, "a"); },
          .actors = {[=] {
                       c->record.set(StreamCounter::submitted, 7);
                       c->writer.end(RecordKind::stream, 0);
                     },
                     [=] {
                       const auto s = c->reader.snapshot(RecordKind::stream, 0, 1);
                       require(s.has_value(), "a record was not found");
                       if (s && !s->live)
                         require(s->value(StreamCounter::submitted) == 7u,
                                 "a record that ended misses its last values");
                     }},
          .watched = c->watched()};
}

// One that ended is begun anew for another stream, and counts.
Model used_again(const std::shared_ptr<Counters>& c, int looks) {
  return {.name = "a record, used again",
          .set_up =
              [=] {
                c->record = c->writer.begin(RecordKind::stream, 0, "a");
                c->record.set(StreamCounter::submitted, 7);
                c->record.set(StreamCounter::completed, 7);
                c->writer.end(RecordKind::stream, 0);
              },
          .actors = {[=] {
                       c->record = c->writer.begin(RecordKind::stream, 0, "b");
                       const shm::Record::Update together(c->record);
                       c->record.add(StreamCounter::submitted);
                       c->record.add(StreamCounter::completed);
                     },
                     [=] {
                       for (int i = 0; i < looks; ++i) {
                         const auto s = c->reader.snapshot(RecordKind::stream, 0, 1);
                         require(s.has_value(), "a record was not found");
                         if (!s) return;
                         const auto submitted = s->value(StreamCounter::submitted),
                                    completed = s->value(StreamCounter::completed);
                         if (s->live) {
                           require(s->label == "b", "a live record under the label of the one before");
                           require(submitted <= 1u && completed <= 1u,
                                   "a live record with the values of the one before");
                         }
                         if (!s->together) continue;
                         require(submitted == completed, "a torn record passes for whole");
                         require(s->label == (submitted == 7u ? "a" : "b"), "a record under another's label");
                       }
                     }},
          .watched = c->watched()};
}

// What an observer is shown: a copy of the record that another thread makes while its writer writes.
struct Shown {
  explicit Shown(const std::shared_ptr<Counters>& c)
      : counters(c),
        view(std::move(shm::CountersView::create()).value()),
        reader(std::move(shm::CountersReader::map(std::move(view.share()).value(), view.bytes())).value()),
        memory(std::move(shm::Mapping::map(std::move(view.share()).value().get(), view.bytes(), shm::Access::read_write,
                                           false))
                   .value()),
        layout(
            memory.at<shm::RecordLayout>(shm::counters_layout().offset[static_cast<std::size_t>(RecordKind::stream)])) {
  }
  void begin(std::uint64_t value) {
    std::fill_n(reinterpret_cast<std::byte*>(layout), sizeof *layout, std::byte{});
    counters->record = counters->writer.begin(RecordKind::stream, 0, "a");
    counters->record.set(StreamCounter::submitted, value);
    counters->record.set(StreamCounter::completed, value);
  }
  [[nodiscard]] std::function<bool(const void*)> watched(bool writer_writes) const {
    const auto of = [](shm::RecordLayout* r) {
      return std::vector<const void*>{&r->state, &r->version,
                                      &r->values[static_cast<std::size_t>(StreamCounter::submitted)],
                                      &r->values[static_cast<std::size_t>(StreamCounter::completed)]};
    };
    std::vector<const void*> words = of(layout);
    if (writer_writes)
      for (const void* word : of(counters->layout)) words.push_back(word);
    return only(words);
  }

  std::shared_ptr<Counters> counters;
  shm::CountersView view;
  shm::CountersReader reader;
  shm::Mapping memory;
  shm::RecordLayout* layout;
};

Model copied(const std::shared_ptr<Shown>& v, int updates) {
  return {.name = "a view of a ledger",
          .set_up = [=] { v->begin(0); },
          .actors = {[=] {
                       for (int i = 0; i < updates; ++i) {
                         const shm::Record::Update together(v->counters->record);
                         v->counters->record.add(StreamCounter::submitted);
                         v->counters->record.add(StreamCounter::completed);
                       }
                     },
                     [=] {
                       v->view.copy(v->counters->writer, RecordKind::stream, 0);
                       const auto s = v->reader.snapshot(RecordKind::stream, 0);
                       if (s && s->live)
                         require(s->value(StreamCounter::submitted) == s->value(StreamCounter::completed),
                                 "a torn record passes for whole");
                     }},
          .watched = v->watched(true)};
}

Model shown(const std::shared_ptr<Shown>& v) {
  return {.name = "a view, begun and ended",
          .set_up = [=] { v->begin(7); },
          .actors = {[=] {
                       v->view.copy(v->counters->writer, RecordKind::stream, 0);
                       v->view.end(RecordKind::stream, 0);
                     },
                     [=] {
                       const auto s = v->reader.snapshot(RecordKind::stream, 0, 1);
                       if (s) require(s->value(StreamCounter::submitted) == 7u, "a record is shown before its values");
                     }},
          .watched = v->watched(false)};
}

// The flight recorder comes round: the event read is overwritten meanwhile.
Model events(const std::shared_ptr<Counters>& c, std::uint64_t written) {
  const auto event = [](std::uint64_t n) {
    shm::Event e;
    e.at_ns = static_cast<std::int64_t>(n);
    e.a = n;
    return e;
  };
  std::vector<const void*> words{c->head};
  for (std::uint64_t i = 0; i < written; ++i)
    words.insert(words.end(), {&c->cell[i].sequence, &c->cell[i].at_ns, &c->cell[i].a});
  return {.name = "events, overwritten",
          .set_up =
              [=] {
                *c->head = shm::kEvents;
                for (std::uint64_t i = 0; i <= written; ++i) {
                  c->cell[i] = event(i);
                  c->cell[i].sequence = i + 1;
                }
              },
          .actors = {[=] {
                       for (std::uint64_t i = 0; i < written; ++i) c->writer.event(event(shm::kEvents + i));
                     },
                     [=] {
                       for (const std::uint64_t from : {std::uint64_t{0}, std::uint64_t{shm::kEvents}}) {
                         std::array<shm::Event, 1> out;
                         std::uint64_t next = 0;
                         const std::uint32_t count = c->reader.events(from, out, &next);
                         if (count == 0) {
                           require(next <= shm::kEvents, "an event that is counted was not there");
                           continue;
                         }
                         require(out[0].a == out[0].sequence - 1, "an event passes for another");
                         require(out[0].at_ns == static_cast<std::int64_t>(out[0].a), "a torn event");
                       }
                     }},
          .watched = only(words)};
}

Model schedule(int writes, int looks) {
  struct Told {
    shm::SchedulePage page{};
    std::uint64_t seen = 0;
  };
  auto t = std::make_shared<Told>();
  const auto said = [](std::uint32_t n) {
    shm::Schedule s;
    s.standing = n;
    s.ask_bucket = n;  // in the last word
    return s;
  };
  return {.name = "a schedule",
          .set_up = [=] { *t = {}; },
          .actors = {[=] {
                       for (int i = 0; i < writes; ++i) t->page.write(said(static_cast<std::uint32_t>(i) + 1));
                     },
                     [=] {
                       std::uint32_t last = 0;
                       for (int i = 0; i < looks; ++i) {
                         shm::Schedule s;
                         if (!t->page.read(t->seen, s)) continue;
                         require(s.standing == s.ask_bucket, "a torn schedule passes for whole");
                         require(s.standing == t->seen / 2, "a schedule passes for another");
                         require(s.standing > last, "a schedule is read twice");
                         last = s.standing;
                       }
                     }},
          .watched = only({&t->page.version, &t->page.words.front(), &t->page.words.back()})};
}

Model header() {
  struct Segment {
    shm::SegmentHeader header{};
    std::uint64_t body = 0;
  };
  auto s = std::make_shared<Segment>();
  return {.name = "a segment's header",
          .set_up = [=] { *s = {}; },
          .actors = {[=] {
                       const std::uint64_t full = 7;
                       shm::copy_in(&s->body, &full, sizeof full);
                       s->header.publish(shm::SegmentKind::frames, sizeof *s);
                     },
                     [=] {
                       if (!s->header.published(shm::SegmentKind::frames)) return;
                       std::uint64_t body = 0;
                       shm::copy_once(body, &s->body);
                       require(body == 7, "a segment published before it was filled");
                     }}};
}

}  // namespace

std::vector<Model> page_models(Size size) {
  const bool large = size == Size::large;
  auto counters = std::make_shared<Counters>();
  const auto view = std::make_shared<Shown>(counters);
  return {ledger(counters, large ? 2 : 1, 2, large ? 14 : 10),
          ended(counters),
          used_again(counters, large ? 3 : 2),
          events(counters, large ? 2 : 1),
          schedule(large ? 4 : 2, large ? 4 : 3),
          header(),
          copied(view, large ? 2 : 1),
          shown(view)};
}

}  // namespace leat::explore
