#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <thread>

#include "app/command.h"
#include "app/key_file.h"
#include "app/stable_pool.h"
#include "app/state_folder.h"
#include "app/supervisor.h"
#include "app/up_detach.h"
#include "app/up_kv_nodes.h"
#include "app/up_ports.h"
#include "app/up_report.h"
#include "app/up_welcome.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/service_config.h"
#include "base/units.h"
#include "gateway/access.h"

namespace sluice::app {
namespace {

struct Options {
    std::string config;
    std::string model;
    std::string threads;
    std::string speculation;
    std::string state;
    std::optional<std::uint16_t> port;
    std::optional<std::int64_t> workers;
    std::optional<std::int64_t> prefill;
    std::optional<std::int64_t> decode;
    std::optional<std::int64_t> dp;
    std::optional<std::int64_t> kv_nodes;
    std::string kv_node_dram;
    std::string kv_node_ssd;
    bool detach = false;
    bool first_request = false;
    bool json = false;
    int report_fd = -1;  ///< Of the command that started this one detached.

    [[nodiscard]] Output output() const { return json ? Output::kJson : Output::kText; }
};

/// CLI11's complaint, or an empty text.
std::string check_threads(const std::string& text) {
    std::int64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    const bool good =
        error == std::errc() && stop == end && number >= 1 && number <= limits::kConfigThreads;
    if (good || text == "auto") return {};
    return fmt::format("{} is neither \"auto\" nor from 1 to {}", text, limits::kConfigThreads);
}

/// Flags speak of the pool that answers; any of them replaces its whole shape.
void apply_shape(const Options& options, NativeConfig& native) {
    if (options.workers || options.prefill) {
        native.urls = {};
        native.workers = {options.workers.value_or(1), "--workers"};
        native.prefill = {options.prefill.value_or(0), "--prefill"};
        native.decode = {options.decode.value_or(0), "--decode"};
    }
    if (options.dp) native.dp = {*options.dp, "--dp"};
}

void apply_kv(const Options& options, KvConfig& kv) {
    if (options.kv_nodes) kv.start_nodes = {*options.kv_nodes, "--kv-nodes"};
    // Their text was checked as the command line was read.
    if (!options.kv_node_dram.empty())
        kv.node_dram = {*parse_bytes(options.kv_node_dram), "--kv-node-dram"};
    if (!options.kv_node_ssd.empty())
        kv.node_ssd = {*parse_bytes(options.kv_node_ssd), "--kv-node-ssd"};
}

/// Engines that take no more than their share of the machine do not slow each other down.
std::string threads_of_each(const std::optional<std::int64_t>& configured, std::int64_t engines) {
    if (configured) return std::to_string(*configured);
    if (engines == 1) return "auto";
    return std::to_string(std::max<std::int64_t>(1, std::thread::hardware_concurrency() / engines));
}

/// The processes of one pool: "stable-0", or of a split "stable-prefill-0" and "stable-decode-0".
std::vector<EnginePlan> engines_of(const PoolConfig& pool, const EnginePlan& common) {
    using routing::LegPhase;
    std::vector<EnginePlan> engines;
    const auto add = [&](LegPhase phase, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) {
            EnginePlan& engine = engines.emplace_back(common);
            engine.phase = phase;
            engine.name = phase == LegPhase::kFull
                              ? fmt::format("{}-{}", *pool.name, i)
                              : fmt::format("{}-{}-{}", *pool.name, to_string(phase), i);
        }
    };
    if (!pool.native.urls->empty()) return engines;
    if (!pool.native.is_split()) add(LegPhase::kFull, *pool.native.workers);
    if (pool.native.is_split()) add(LegPhase::kPrefill, *pool.native.prefill);
    if (pool.native.is_split()) add(LegPhase::kDecode, *pool.native.decode);
    return engines;
}

/// Every pool of our own engines runs.
ServicePlan make_plan(const ServiceConfig& config, const StateFolder& folder,
                      const Options& options) {
    ServicePlan plan{.config = options.config,
                     .state = folder.path(),
                     .model = options.model,
                     .speculation = options.speculation,
                     .keys = key_file_path(config, folder),
                     .port = config.gateway.listen->port,
                     .admin_port = config.gateway.admin->port};
    const PoolConfig& stable = stable_pool(config);
    std::int64_t all = 0;
    for (const PoolConfig& pool : config.pools)
        if (pool.is_native()) all += pool.native.processes() * *pool.native.dp;
    const bool automatic = options.threads == "auto";
    if (!*config.record.path) plan.records = folder.path() + "/records";
    for (const PoolConfig& pool : config.pools) {
        if (!pool.is_native()) continue;
        const bool own_model = &pool != &stable || options.model.empty();
        std::string threads = threads_of_each(automatic ? std::nullopt : *pool.native.threads, all);
        if (!options.threads.empty() && !automatic) threads = options.threads;
        const auto engines =
            engines_of(pool, {.pool = *pool.name,
                              .model = own_model ? *pool.native.model : options.model,
                              .threads = threads,
                              .dp = *pool.native.dp});
        plan.engines.insert(plan.engines.end(), engines.begin(), engines.end());
    }
    return plan;
}

std::string stop_command(const Options& options) {
    if (options.state.empty()) return "`make down` or `sluice down`";
    return fmt::format("`sluice down --state {}`", options.state);
}

std::string already_running(const StateFolder& folder, const Options& options) {
    const Result<ServiceState> state = folder.read_state();
    const std::optional<pid_t> pid = folder.holder();
    return fmt::format("sluice: already {}{} (pid {}); stop it with {}",
                       state ? "running on " : "starting", state ? state->url : "",
                       pid.value_or(state ? state->pid : 0), stop_command(options));
}

/// Asks the first question beside the supervisor, for as long as the service runs.
class BackgroundWelcome {
public:
    void start(const ServiceState& state, const Options& options) {
        welcome_ = std::make_unique<Welcome>(state, options.output(), stop_command(options));
        thread_ = std::thread([this] { [[maybe_unused]] const int code = welcome_->run(); });
    }

    ~BackgroundWelcome() {
        if (!thread_.joinable()) return;
        welcome_->cancel();
        thread_.join();
    }

private:
    std::unique_ptr<Welcome> welcome_;
    std::thread thread_;
};

ServiceEvents make_events(UpReport& report, const StateFolder& folder, const StateLock& lock,
                          const Options& options, BackgroundWelcome& welcome) {
    const auto write_state = [&lock](const ServiceState& state) {
        if (const auto written = lock.write_state(state); !written) {
            log::error("{}", written.error().to_string());
        }
    };
    ServiceEvents events;
    events.on_progress = [&report](std::string_view message) { report.progress(message); };
    events.on_ready = [&, write_state](const ServiceState& state) {
        write_state(state);
        if (const auto written = remember_kv_nodes(folder, state); !written)
            log::error("{}", written.error().to_string());
        report.ready(state);
        if (options.first_request) welcome.start(state, options);
    };
    events.on_restart = [&report, write_state](const ServiceState& state) {
        write_state(state);
        report.restarted(state);
    };
    if (options.report_fd >= 0) events.on_log_written = [&lock] { lock.rotate_full_log(); };
    return events;
}

/// `config` has been read; from here on it is one process, in the foreground or detached.
int serve(ServiceConfig config, const StateFolder& folder, const Options& options) {
    // A reader that goes away is not a reason to end.
    std::signal(SIGPIPE, SIG_IGN);
    const bool detached = options.report_fd >= 0;
    const std::unique_ptr<UpReport> report =
        detached ? report_to_pipe(UniqueFd(options.report_fd)) : report_to_user(options.output());
    const auto refuse = [&report](const std::string& complaint) {
        report->failed(complaint);
        return kCannotStart;
    };
    const Result<StopSignals> signals = StopSignals::take();
    if (!signals) return refuse("sluice: " + signals.error().to_string());
    const Result<StateLock> lock = StateLock::acquire(folder);
    if (!lock && lock.error().code() == ErrorCode::kUnavailable) {
        return refuse(already_running(folder, options));
    }
    if (!lock) return refuse("sluice: " + lock.error().to_string());
    const auto gateway = choose_ports(config.gateway, options.port);
    if (!gateway) return refuse("sluice: " + gateway.error().to_string());
    config.gateway = *gateway;
    if (detached) {
        if (const auto opened = lock->open_log(); !opened) {
            return refuse("sluice: " + opened.error().to_string());
        }
    }

    ServicePlan plan = make_plan(config, folder, options);
    auto nodes = plan_kv_nodes(config, folder);
    if (!nodes) return refuse("sluice: " + nodes.error().to_string());
    plan.kv_nodes = std::move(*nodes);
    plan.kv_directory = config.kv.directory->value_or("");
    BackgroundWelcome welcome;
    Supervisor supervisor(std::move(plan), make_events(*report, folder, *lock, options, welcome),
                          *signals);
    const ServiceEnd end = supervisor.run();
    if (!end.complaint.empty()) report->failed(end.complaint);
    return end.code;
}

int detach(const StateFolder& folder, const Options& options) {
    std::vector<std::string> argv = {own_program(), "up", "--report-fd", std::to_string(kReportFd)};
    const auto add = [&argv](const char* name, const std::string& value) {
        if (!value.empty()) argv.insert(argv.end(), {name, value});
    };
    add("--config", options.config);
    add("--model", options.model);
    add("--threads", options.threads);
    add("--speculation", options.speculation);
    add("--state", options.state);
    if (options.port) add("--port", std::to_string(*options.port));
    const auto add_number = [&add](const char* name, const std::optional<std::int64_t>& value) {
        if (value) add(name, std::to_string(*value));
    };
    add_number("--workers", options.workers);
    add_number("--prefill", options.prefill);
    add_number("--decode", options.decode);
    add_number("--dp", options.dp);
    add_number("--kv-nodes", options.kv_nodes);
    add("--kv-node-dram", options.kv_node_dram);
    add("--kv-node-ssd", options.kv_node_ssd);

    const DetachedStart start = start_detached(std::move(argv), folder.log_path());
    if (start.code != kDone) return start.code;
    print_ready(start.state, options.output());
    if (!options.first_request) return kDone;
    return Welcome(start.state, options.output(), stop_command(options)).run();
}

/// The gateway would refuse to start, again and again, and say why only in its log.
Result<void> check_access(const ServiceConfig& config, const StateFolder& folder) {
    const auto keys = gateway::KeyRing::load(key_file_path(config, folder));
    if (!keys) return std::unexpected(keys.error());
    const auto rules = gateway::access_rules(*config.gateway.listen, *config.gateway.admin,
                                             config.gateway.open->has_value(), *keys);
    if (!rules) return std::unexpected(rules.error());
    std::vector<std::string> one_tenant_pools;
    for (const PoolConfig& pool : config.pools)
        if (pool.serves_one_tenant()) one_tenant_pools.push_back(*pool.name);
    return gateway::check_isolation(one_tenant_pools, config.gateway.open->has_value(), *keys);
}

int up(const Options& options) {
    auto config = read_config(options.config);
    if (!config) return fail_config(config.error());
    for (PoolConfig& pool : config->pools)
        if (pool.is_native() && *pool.name == *config->plan.stable)
            apply_shape(options, pool.native);
    apply_kv(options, config->kv);
    const Result<StateFolder> folder = StateFolder::find(options.state);
    if (!folder) return fail(kWrongUse, folder.error());
    if (const auto safe = check_access(*config, *folder); !safe)
        return fail(kCannotStart, safe.error());
    if (options.detach) return detach(*folder, options);
    return serve(std::move(*config), *folder, options);
}

/// How many engines of which kind.
void define_shape(CLI::App& command, Options& options) {
    const CLI::Range count(std::int64_t{1}, limits::kConfigWorkers);
    CLI::Option* const workers =
        command.add_option("--workers", options.workers, "Engine processes")
            ->check(count)
            ->type_name("N");
    CLI::Option* const prefill =
        command
            .add_option("--prefill", options.prefill,
                        "Instead of --workers: processes that do prompts, and")
            ->check(count)
            ->type_name("P")
            ->excludes(workers);
    CLI::Option* const decode =
        command.add_option("--decode", options.decode, "processes that go on with the answers")
            ->check(count)
            ->type_name("D")
            ->excludes(workers)
            ->needs(prefill);
    prefill->needs(decode);
    command.add_option("--dp", options.dp, "Engines in each process, which share its weights")
        ->check(CLI::Range(std::int64_t{1}, static_cast<std::int64_t>(limits::kDpRanks)))
        ->type_name("N");
}

void define_kv_nodes(CLI::App& command, Options& options) {
    const auto is_size = [](const std::string& text) {
        const auto bytes = parse_bytes(text);
        return bytes ? std::string() : bytes.error().message();
    };
    command.add_option("--kv-nodes", options.kv_nodes, "Cache nodes beside the engines")
        ->check(CLI::Range(std::int64_t{0}, static_cast<std::int64_t>(limits::kKvStores)))
        ->type_name("N");
    command
        .add_option("--kv-node-dram", options.kv_node_dram, "Memory of each of them, as in 1GiB")
        ->check(is_size)
        ->type_name("SIZE");
    command
        .add_option("--kv-node-ssd", options.kv_node_ssd,
                    "Of each on disk, below the state folder, as in 16GiB; 0B: none")
        ->check(is_size)
        ->type_name("SIZE");
}

}  // namespace

Run define_up(CLI::App& command) {
    auto options = std::make_shared<Options>();
    // A script may add to what another one gives.
    command.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    command.add_option("--config", options->config, "The TOML file; without it, the defaults")
        ->type_name("FILE");
    command.add_option("--model", options->model, "A GGUF file, or krill, the built-in model")
        ->type_name("FILE");
    command.add_option("--port", options->port, "Where clients connect; 0 takes a free one")
        ->type_name("N");
    define_shape(command, *options);
    define_kv_nodes(command, *options);
    command.add_option("--threads", options->threads, "Of each engine: a number, or auto")
        ->check(check_threads)
        ->type_name("N");
    command
        .add_option("--speculation", options->speculation,
                    "Of each engine: auto, off, lookup in the text so far, or mtp, the model's own "
                    "head; changes no token")
        ->check(CLI::IsMember({"auto", "off", "lookup", "mtp"}))
        ->type_name("KIND");
    command
        .add_option("--state", options->state,
                    "State folder; else $XDG_STATE_HOME/sluice or ~/.local/state/sluice")
        ->type_name("DIR");
    command.add_flag("--detach", options->detach, "Go on in the background once it can answer");
    command.add_flag("--first-request", options->first_request,
                     "Ask it something, show the answer");
    command.add_flag("--json", options->json, "Print JSON, one object a line");
    command.add_option("--report-fd", options->report_fd)->group("");  // For --detach itself.
    return [options] { return up(*options); };
}

}  // namespace sluice::app
