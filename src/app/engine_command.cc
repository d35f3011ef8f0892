#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>

#include "app/command.h"
#include "app/stable_pool.h"
#include "base/log.h"
#include "base/version.h"
#include "gateway/model_vocabulary.h"
#include "tensor/target.h"
#include "worker/engine_process.h"

namespace sluice::app {
namespace {

struct Options {
    std::string config;
    std::uint16_t port = 0;
    std::optional<std::string> model;
    std::string threads = "auto";
    std::size_t pool_tokens = engine::EngineOptions{}.pool_tokens;
    std::size_t running_max = engine::EngineOptions{}.running_max;
    bool json = false;
};

void announce(std::uint16_t port, const port::ServerInfo& info, bool json) {
    const std::string url = fmt::format("http://127.0.0.1:{}", port);
    if (json) {
        const boost::json::object line{{"event", "ready"}, {"url", url}, {"pid", getpid()}};
        print(boost::json::serialize(line) + "\n");
    } else {
        print(fmt::format("ready on {} ({} {})\n", url, info.model, info.numerics_id));
    }
    std::fflush(stdout);
}

Result<std::size_t> thread_count(std::string_view text) {
    // One core is left to the gateway and the clients; a small model gains little from many.
    if (text == "auto") return std::max(1U, std::thread::hardware_concurrency() / 2);
    std::size_t threads = 0;
    if (CLI::detail::lexical_cast(std::string(text), threads) && threads >= 1 && threads <= 256)
        return threads;
    return std::unexpected(
        Error::invalid(fmt::format("'{}' is neither 'auto' nor 1 to 256", text), "--threads"));
}

int run(const Options& options) {
    const auto config = read_config(options.config);
    if (!config) return fail_config(config.error());
    const PoolConfig& pool = stable_pool(*config);
    const auto threads = thread_count(options.threads);
    if (!threads) return fail(kWrongUse, threads.error());
    if (const auto logging = log::configure_from_environment("engine"); !logging)
        return fail(kWrongUse, logging.error());
    if (const auto target = tensor::select_target(); !target)
        return fail(kCannotStart, target.error());
    const auto path = gateway::find_model(options.model.value_or(*pool.model));
    if (!path) return fail(kCannotStart, path.error());
    const auto tokenizer = gateway::load_tokenizer(*path);
    if (!tokenizer) return fail(kCannotStart, tokenizer.error());

    worker::WorkerOptions worker;
    worker.model = *path;
    worker.port = options.port;
    worker.engine.threads = *threads;
    worker.engine.pool_tokens = options.pool_tokens;
    worker.engine.running_max = options.running_max;
    worker.about.tokenizer_digest = tokenizer->digest();
    worker.about.version = version().version;
    worker.about.commit = version().commit;
    worker.about.build_flags = version().flags;
    worker.on_listening = [](std::uint16_t) {};
    worker.on_ready = [json = options.json](std::uint16_t port, const port::ServerInfo& info) {
        announce(port, info, json);
    };
    const auto ended = worker::run_worker(std::move(worker));
    if (!ended) return fail(kCannotStart, ended.error());
    return *ended == SIGINT ? kInterrupted : kDone;
}

}  // namespace

Run define_engine(CLI::App& command) {
    auto options = std::make_shared<Options>();
    command.add_option("--config", options->config, "Configuration file")->type_name("FILE");
    command.add_option("--port", options->port, "Port to listen on; 0 takes a free one")
        ->type_name("N")
        ->capture_default_str();
    command.add_option("--model", options->model, "GGUF file, or krill")->type_name("FILE");
    command.add_option("--threads", options->threads, "Threads that compute, or auto")
        ->type_name("N|auto")
        ->capture_default_str();
    command
        .add_option("--pool-tokens", options->pool_tokens,
                    "Tokens whose keys and values fit into memory")
        ->type_name("N")
        ->capture_default_str();
    command.add_option("--max-running", options->running_max, "Requests that share a step at most")
        ->type_name("N")
        ->capture_default_str();
    command.add_flag("--json", options->json, "Announce the address as one JSON object");
    return [options] { return run(*options); };
}

}  // namespace sluice::app
