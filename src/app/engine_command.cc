#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "app/command.h"
#include "app/engine_registration.h"
#include "app/kv_flags.h"
#include "app/model_files.h"
#include "app/stable_pool.h"
#include "base/hardware.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/units.h"
#include "base/version.h"
#include "gateway/model_vocabulary.h"
#include "tensor/target.h"
#include "worker/engine_process.h"

namespace sluice::app {
namespace {

struct Options {
    std::string config;
    std::optional<std::string> model;
    std::string address = "127.0.0.1";
    std::uint16_t port = 0;
    std::optional<std::string> threads;
    std::optional<std::string> step_time;
    std::string speculation = "auto";
    std::size_t running = engine::EngineOptions{}.running_max;
    std::size_t pool_tokens = engine::EngineOptions{}.pool_tokens;
    RegistrationFlags registration;
    KvFlags kv;
    std::size_t ranks = 1;
    std::size_t recompute_max = worker::KvOptions{}.recompute_max;
    bool json = false;
};

void announce(std::string_view event, const std::string& url, bool json) {
    if (json) {
        const boost::json::object line{{"event", event}, {"url", url}, {"pid", getpid()}};
        print(boost::json::serialize(line) + "\n");
    } else {
        print(fmt::format("{} on {}\n", event, url));
    }
    std::fflush(stdout);
}

std::string url_of(const std::string& address, std::uint16_t port) {
    const bool v6 = address.find(':') != std::string::npos && address.front() != '[';
    return fmt::format("http://{}{}{}:{}", v6 ? "[" : "", address, v6 ? "]" : "", port);
}

/// The flag, else the pool's setting.
Result<std::size_t> threads_of(const Options& options, const PoolConfig& pool) {
    if (options.threads) return parse_threads(*options.threads);
    if (*pool.native.threads) return static_cast<std::size_t>(**pool.native.threads);
    return parse_threads("auto");
}

Result<std::chrono::milliseconds> step_time_of(const Options& options, const PoolConfig& pool) {
    if (!options.step_time)
        return pool.is_native() ? *pool.native.step_time : engine::EngineOptions().step_time;
    auto time = parse_duration(*options.step_time);
    if (time && time->count() >= 1 && time->count() <= kStepTimeMost.count()) return time;
    return std::unexpected(Error::invalid(
        fmt::format("must be from 1ms to {}ms", kStepTimeMost.count()), "--step-time"));
}

/// Tokens go in and out of an engine, so a model without a tokenizer runs too.
std::string tokenizer_digest(const std::filesystem::path& model) {
    const auto tokenizer = gateway::load_tokenizer(model);
    if (tokenizer) return tokenizer->digest();
    log::warn("no tokenizer: {}", tokenizer.error().to_string());
    return {};
}

int serve(const Options& options, const worker::KvOptions& kv,
          const std::optional<RegistrationPlan>& registration, const std::filesystem::path& model,
          std::size_t threads, std::chrono::milliseconds step_time,
          engine::Speculation speculation) {
    const auto faults = fault_points_of_environment();
    if (!faults) return fail(kWrongUse, faults.error());
    if (faults->any()) log::warn("faults are planted on purpose: SLUICE_FAULTS is set");
    const bool json = options.json;
    const std::string& address = options.address;
    worker::WorkerOptions worker;
    worker.model = model;
    worker.address = address;
    worker.port = options.port;
    worker.engine.threads = threads;
    worker.engine.speculation = speculation;
    worker.engine.step_time = step_time;
    worker.engine.faults = *faults;
    worker.engine.running_max = options.running;
    worker.engine.pool_tokens = options.pool_tokens;
    worker.engine.step_tokens = std::max(worker.engine.step_tokens, options.running);
    worker.ranks = options.ranks;
    worker.kv = kv;
    worker.kv.faults = *faults;
    worker.kv.recompute_max = options.recompute_max;
    worker.about.tokenizer_digest = tokenizer_digest(model);
    worker.about.version = version().version;
    worker.about.commit = version().commit;
    worker.about.build_flags = version().flags;
    worker.about.hardware = cpu_name();
    worker.on_listening = [address, json](std::uint16_t port) {
        announce("listening", url_of(address, port), json);
    };
    std::optional<EngineRegistration> registered;
    worker.on_ready = [&, address, json](std::uint16_t port, const port::ServerInfo&) {
        announce("ready", url_of(address, port), json);
        if (registration) registered.emplace(*registration, url_of(address, port));
    };
    const auto ended = worker::run_worker(std::move(worker));
    if (!ended) return fail(kCannotStart, ended.error());
    return *ended == SIGINT ? kInterrupted : kDone;
}

int run(const Options& options) {
    const auto config = read_config(options.config);
    if (!config) return fail_config(config.error());
    if (const auto logging = log::configure_from_environment("engine"); !logging) {
        return fail(kWrongUse, logging.error());
    }
    if (const auto target = tensor::select_target(); !target)
        return fail(kCannotStart, target.error());
    const PoolConfig& pool = stable_pool(*config);
    if (!pool.is_native() && !options.model)
        return fail(kWrongUse, "the stable pool has no engine of ours; name a --model");
    const auto threads = threads_of(options, pool);
    if (!threads) return fail(kWrongUse, threads.error());
    const auto step_time = step_time_of(options, pool);
    if (!step_time) return fail(kWrongUse, step_time.error());
    const auto speculation = parse_speculation(options.speculation);
    if (!speculation) return fail(kWrongUse, speculation.error());
    const auto kv = kv_options(options.kv, config->kv);
    if (!kv) return fail(kWrongUse, kv.error());
    const auto registration = plan_registration(options.registration, *config, options.address);
    if (!registration) return fail(kWrongUse, registration.error());
    const auto model = gateway::find_model(options.model.value_or(*pool.native.model));
    if (!model) return fail(kCannotStart, model.error());
    return serve(options, *kv, *registration, *model, *threads, *step_time, *speculation);
}

}  // namespace

Run define_engine(CLI::App& command) {
    auto options = std::make_shared<Options>();
    command.add_option("--config", options->config, "Configuration file; the stable pool counts")
        ->type_name("FILE");
    command.add_option("--model", options->model, "GGUF file, or krill")->type_name("FILE");
    command.add_option("--address", options->address, "Numeric address to listen on")
        ->type_name("IP")
        ->capture_default_str();
    command.add_option("--port", options->port, "Port of the engine; 0 takes a free one")
        ->type_name("N")
        ->capture_default_str();
    command
        .add_option("--speculation", options->speculation,
                    "Guess tokens: auto, off, lookup in the text so far, or mtp, the model's own "
                    "head; changes no token")
        ->type_name("KIND")
        ->capture_default_str();
    command.add_option("--threads", options->threads, "Threads that compute: a number, or auto")
        ->type_name("N");
    command
        .add_option("--step-time", options->step_time,
                    "Longest that prompts may hold answers up, as in 50ms; changes no token")
        ->type_name("TIME");
    command
        .add_option("--running", options->running,
                    "Most requests that are computed at once; further ones wait")
        ->check(CLI::Range(1, 4096))
        ->type_name("N")
        ->capture_default_str();
    command
        .add_option("--pool-tokens", options->pool_tokens,
                    "Tokens whose keys and values fit into memory")
        ->check(CLI::Range(std::uint64_t{64}, std::uint64_t{1} << 32))
        ->type_name("N")
        ->capture_default_str();
    define_registration(command, options->registration);
    define_kv(command, options->kv);
    command
        .add_option("--dp", options->ranks,
                    "Engines in this process, which share the weights; each has a pool of its own")
        ->check(CLI::Range(std::size_t{1}, limits::kDpRanks))
        ->type_name("N")
        ->capture_default_str();
    command
        .add_option("--recompute-max", options->recompute_max,
                    "Most tokens that are computed where another worker's blocks can't be had")
        ->type_name("N")
        ->capture_default_str();
    command.add_flag("--json", options->json, "Announce addresses as JSON, an object a line");
    return [options] { return run(*options); };
}

}  // namespace sluice::app
