#include <memory>

#include "planner/constraints.h"
#include "tools/base/documents/document.h"
#include "tools/base/documents/text_file.h"

namespace leat::planner {
namespace {

Selection selection(const JsonCursor& c) {
  return {.application = c.text_or("application", ""),
          .module = c.text_or("module", ""),
          .model = c.text_or("model", ""),
          .partition_class = c.text_or("class", "")};
}

void bounds(const JsonCursor& c, PlanConstraints::Row& row) {
  if (!c.has("at_least") && !c.has("at_most")) c.fail("bounds nothing; add at_least, at_most or both");
  row.min = c.number_or("at_least", row.min, -kHuge, kHuge);
  row.max = c.number_or("at_most", row.max, -kHuge, kHuge);
  if (row.min > row.max) c.at("at_least").fail("is above at_most; lower it");
}

PlanConstraints::Memory memory(const JsonCursor& c) {
  c.only({"partition", "class", "at_most_bytes"});
  if (c.has("partition") == c.has("class")) c.fail("is of one partition or of a class; give one of the two keys");
  return {c.text_or("partition", ""), c.text_or("class", ""), c.at("at_most_bytes").integer(1, INT64_MAX), c.place()};
}

PlanConstraints::Apart apart(const JsonCursor& c) {
  c.only({"models", "class"});
  PlanConstraints::Apart out{{}, c.text_or("class", ""), c.place()};
  for (const auto& item : c.at("models").items()) out.models.push_back(item.text());
  if (out.models.size() < 2) c.at("models").fail("keeps nothing apart; name two models or more");
  return out;
}

PlanConstraints::Row partitions(const JsonCursor& c) {
  c.only({"application", "module", "model", "class", "at_least", "at_most"});
  PlanConstraints::Row out;
  out.place = c.place();
  out.terms.push_back({PlanConstraints::Term::Of::partitions, selection(c), 1, out.place});
  bounds(c, out);
  return out;
}

PlanConstraints::Term term(const JsonCursor& c) {
  using Of = PlanConstraints::Term::Of;
  c.only({"variable", "application", "module", "model", "class", "times"});
  const std::string variable = c.at("variable").text();
  PlanConstraints::Term out{Of::partitions, selection(c), c.number_or("times", 1, -kHuge, kHuge), c.place()};
  if (variable == "devices") {
    out.of = Of::devices;
  } else if (variable == "used") {
    out.of = Of::used;
  } else if (variable == "rate") {
    out.of = Of::rate;
    if (c.has("class")) c.at("class").fail("a rate is a module's, whatever class it runs on; leave the key out");
  } else if (variable != "partitions") {
    c.at("variable").fail("'" + variable + "' is no variable; use partitions, devices, used or rate");
  }
  return out;
}

PlanConstraints::Row row(const JsonCursor& c) {
  c.only({"terms", "at_least", "at_most"});
  PlanConstraints::Row out;
  out.place = c.place();
  bounds(c, out);
  for (const auto& item : c.at("terms").items()) {
    out.terms.push_back(term(item));
    const PlanConstraints::Term& t = out.terms.back();
    if (t.of == PlanConstraints::Term::Of::rate &&
        ((t.times > 0 && c.has("at_most")) || (t.times < 0 && c.has("at_least"))))
      item.fail("a rate is what partitions carry and can only be held from below; bound the partitions instead");
  }
  if (out.terms.empty()) c.at("terms").fail("is empty; add {variable = \"partitions\", module = ...}");
  return out;
}

}  // namespace

Result<PlanConstraints> parse_constraints(std::string_view text, const std::string& name) {
  const auto document = JsonDocument::of(name, text);
  const JsonCursor root = document->root();
  root.only({"memory", "apart", "partitions", "row"});
  PlanConstraints out;
  const auto each = [&](const char* key, auto&& read, auto& into) {
    for (const auto& item : root.tables(key)) into.push_back(read(item));
  };
  each("memory", memory, out.memory);
  each("apart", apart, out.apart);
  each("partitions", partitions, out.rows);
  each("row", row, out.rows);
  if (document->failed()) return document->error();
  return out;
}

Result<PlanConstraints> read_constraints(const std::string& path) {
  const auto text = read_text_file(path);
  if (!text) return Error{text.error()};
  return parse_constraints(*text, path);
}

}  // namespace leat::planner
