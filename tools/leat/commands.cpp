#include "tools/leat/commands.h"

namespace leat::tools {

// One line here per sub-command, in the order of `leat --help`.
extern const cli::Subcommand kLeatTry;
extern const cli::Subcommand kLeatServe;
extern const cli::Subcommand kLeatFeed;
extern const cli::Subcommand kLeatGateway;
extern const cli::Subcommand kLeatTop;
extern const cli::Subcommand kLeatStatus;
extern const cli::Subcommand kLeatReload;
extern const cli::Subcommand kLeatLoad;
extern const cli::Subcommand kLeatUnload;
extern const cli::Subcommand kLeatMetrics;
extern const cli::Subcommand kLeatProfile;
extern const cli::Subcommand kLeatPlan;
extern const cli::Subcommand kLeatSim;
extern const cli::Subcommand kLeatRecord;
extern const cli::Subcommand kLeatTrace;
extern const cli::Subcommand kLeatCertainty;
extern const cli::Subcommand kLeatCheck;
extern const cli::Subcommand kLeatDoctor;
extern const cli::Subcommand kLeatBridge;

std::span<const cli::Subcommand* const> commands() {
  static const cli::Subcommand* const table[] = {
      &kLeatTry,   &kLeatServe,     &kLeatFeed,    &kLeatGateway, &kLeatTop,    &kLeatStatus, &kLeatReload,
      &kLeatLoad,  &kLeatUnload,    &kLeatMetrics, &kLeatProfile, &kLeatPlan,   &kLeatSim,    &kLeatRecord,
      &kLeatTrace, &kLeatCertainty, &kLeatCheck,   &kLeatDoctor,  &kLeatBridge,
  };
  return table;
}

}  // namespace leat::tools
