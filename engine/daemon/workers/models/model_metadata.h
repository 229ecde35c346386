// What modules serve with: the words of the configuration, and what the models said where it was silent, gathered from
// the workers that opened them. Pure; values.
#pragma once

#include <string>
#include <vector>

#include "engine/daemon/configuration/config.h"
#include "engine/exec/recognise/recognise.h"
#include "tools/base/json/json.h"

namespace leat::daemon {

// The stages of one module each know some of its words.
void merge(const exec::Recognised& from, exec::Recognised& to);

// What clients are told of an application's classes: one line a head, as first_head() numbers them: the first module's
// own, then the labels of those behind it; nothing where they are more than can be told. known: by module.
std::string class_names(const ApplicationConfig& application, const std::vector<exec::Recognised>& known);

// For people and scripts: "preprocess" and "postprocess" (their words, and what they were concluded from) and "labels"
// (how many, the first, and from where); each only where there is such a thing.
Json words_of(const exec::Recognised& known, const ModuleConfig& module);

}  // namespace leat::daemon
