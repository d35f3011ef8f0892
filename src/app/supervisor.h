#pragma once

// Runs a gateway, its engines and its cache nodes as processes of this same program, for as long as it is asked to:
// the decisions are SupervisorPolicy's, this carries them out with poll(2), signals and pipes.
//
// No child outlives the supervisor, however that ends (base/subprocess.h). All keep the ports they
// first got: a restarted engine is where the gateway looks for it, a restarted node where the engines
// do, a restarted gateway where its clients do.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/service_state.h"
#include "app/supervisor_child.h"
#include "app/supervisor_policy.h"
#include "app/supervisor_relay.h"
#include "app/supervisor_signals.h"
#include "base/log.h"
#include "routing/leg_phase.h"

namespace sluice::app {

struct EnginePlan {
    std::string name{};  ///< "stable-0"
    std::string pool = "stable";
    std::string model = "krill";
    std::string threads = "auto";  ///< As the command line writes it.
    routing::LegPhase phase = routing::LegPhase::kFull;
    std::int64_t dp = 1;  ///< Engines in the process.
};

/// A cache server of our own.
struct KvNodePlan {
    std::string name{};    ///< "kv-0"
    std::string folder{};  ///< For what it keeps on disk; empty: nothing.
    std::string dram{};    ///< Sizes as the command line writes them: "1GiB".
    std::string ssd{};
    std::string retain{};        ///< "agent=72h,chat=168h"
    std::string tenant_bytes{};  ///< Empty: no limit.
    std::uint16_t port = 0;      ///< 0 takes a free one.
    std::uint16_t http_port = 0;
};

struct ServicePlan {
    std::vector<std::string> program{};  ///< Before the subcommand; empty: this very program.
    std::string config{};                ///< A file; empty: none.
    std::string state{};                 ///< Folder for the gateway's plan; empty: none.
    std::string model{};                 ///< Of the stable pool, over what the file says; or empty.
    std::string speculation{};           ///< Of all engines; empty: their own choice.
    std::string keys{};                  ///< File of API keys; empty: none.
    std::vector<EnginePlan> engines{};   ///< None if all pools are pass-through.
    std::vector<KvNodePlan> kv_nodes{};
    std::string kv_directory{};  ///< That engines share beside these nodes; empty: none.
    std::uint16_t port = 0;      ///< 0 takes a free one.
    std::uint16_t admin_port = 0;
    std::string records{};  ///< Folder for records; empty: as the configuration says.
};

/// All optional, all called from inside `run`.
struct ServiceEvents {
    std::function<void(std::string_view message)> on_progress{};  ///< Before it is ready.
    std::function<void(const ServiceState& state)> on_ready{};    ///< Once.
    std::function<void(const ServiceState& state)> on_restart{};  ///< A process has a new pid.
    std::function<void()> on_log_written{};
};

struct ServiceEnd {
    int code = 0;
    /// Why it never became ready, lines for the user ("sluice: ..."); empty otherwise.
    std::string complaint{};
};

class Supervisor {
public:
    Supervisor(ServicePlan plan, ServiceEvents events, const StopSignals& signals);

    /// Blocks until the service has ended and no child is left. From the main thread.
    [[nodiscard]] ServiceEnd run();

private:
    using Clock = SupervisorPolicy::Clock;
    using Action = SupervisorPolicy::Action;

    struct Member {
        std::string name{};  ///< "engine stable-0"
        std::optional<SupervisedChild> process{};
        std::string url{};  ///< Known from the first time it is ready.
        std::string admin{};
        std::string http{};
    };

    [[nodiscard]] bool is_gateway(std::size_t child) const { return child == policy_.gateway(); }
    [[nodiscard]] std::vector<std::string> command(std::size_t child) const;
    [[nodiscard]] std::vector<std::string> engine_command(std::size_t child) const;
    [[nodiscard]] std::vector<std::string> node_command(std::size_t node) const;
    [[nodiscard]] std::vector<std::string> gateway_command() const;
    [[nodiscard]] const Member& node(std::size_t index) const {
        return members_[plan_.engines.size() + index];
    }
    [[nodiscard]] ServiceState state() const;

    /// True if there was something to do.
    bool act();
    void perform(const Action& action);
    void start(std::size_t child);
    void wait();
    void take_signals();
    void on_event(std::size_t child, const ChildEvent& event);
    void on_end(std::size_t child, const ExitStatus& status, const std::string& complaints);
    void report_progress();
    void pass_on(std::string_view line);
    void note(log::Level level, const std::string& message);

    ServicePlan plan_;
    ServiceEvents events_;
    const StopSignals& signals_;
    SupervisorPolicy policy_;
    LineRelay relay_;
    std::vector<Member> members_;
    ServiceEnd end_;
    bool finished_ = false;
};

/// The path of the running program, or a name for it that holds even if the file was replaced.
[[nodiscard]] std::string own_program();

}  // namespace sluice::app
