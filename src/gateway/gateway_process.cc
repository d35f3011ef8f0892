#include "gateway/gateway_process.h"

#include <fmt/format.h>

#include <csignal>
#include <map>
#include <utility>

#include "base/file_limit.h"
#include "base/log.h"
#include "checkpoint/gguf_file.h"
#include "checkpoint/hyper_parameters.h"
#include "gateway/model_vocabulary.h"
#include "gateway/protection.h"
#include "gateway/record_keeper.h"
#include "gateway/record_row.h"
#include "gateway/trace_exporter.h"

namespace sluice::gateway {
namespace {

std::string url_of(const net::HttpServerOptions& options, std::uint16_t port) {
    const bool v6 =
        options.address.find(':') != std::string::npos && options.address.front() != '[';
    return fmt::format("{}://{}{}{}:{}", options.tls ? "https" : "http", v6 ? "[" : "",
                       options.address, v6 ? "]" : "", port);
}

using Preparers =
    std::map<std::pair<std::string, protocol::Thinking>, std::shared_ptr<const RequestPreparer>>;

/// One preparer for a model and a way to think: pools that share it share what it prepares.
Result<std::shared_ptr<const RequestPreparer>> find_preparer(const NativePoolSetup& setup,
                                                             Preparers& known) {
    std::shared_ptr<const RequestPreparer>& preparer = known[{setup.model, setup.thinking}];
    if (preparer) return preparer;
    const auto path = find_model(setup.model);
    if (!path) return std::unexpected(path.error());
    const auto file = checkpoint::GgufFile::open(*path);
    if (!file) return std::unexpected(file.error());
    auto tokenizer = read_tokenizer(*file);
    if (!tokenizer) return std::unexpected(tokenizer.error().within(path->string()));
    const auto parameters = checkpoint::read_hyper_parameters(*file);
    if (!parameters) return std::unexpected(parameters.error());
    const bool built_in = setup.model == kBuiltInModel;
    // Not every prompt is a conversation: /v1/completions works without a dialect, too.
    preparer = std::make_shared<const RequestPreparer>(
        std::move(*tokenizer), PoolProfile{.model = built_in ? setup.model : path->stem().string(),
                                           .dialect = parameters->dialect,
                                           .thinking = setup.thinking,
                                           .context_tokens = parameters->context_length});
    return preparer;
}

Result<std::shared_ptr<record::RecordStore>> open_store(const RecordSetup& setup) {
    if (setup.folder.empty()) return nullptr;
    auto store = record::RecordStore::open({.folder = setup.folder,
                                            .retention_age = setup.retention_age,
                                            .retention_bytes = setup.retention_bytes});
    if (!store) return std::unexpected(store.error());
    for (const auto& [pool, price_hour] : setup.prices) (*store)->set_price(pool, price_hour);
    return std::shared_ptr<record::RecordStore>(std::move(*store));
}

/// The store that `options` ask for, and the observer that fills it and tells others.
Result<void> set_up_records(net::EventLoop& loop, GatewayProcessOptions& options) {
    auto store = open_store(options.records);
    if (!store) return std::unexpected(store.error());
    std::shared_ptr<TraceExporter> traces;
    if (!options.records.otlp_endpoint.empty()) {
        auto created = TraceExporter::create(loop, {.endpoint = options.records.otlp_endpoint});
        if (!created) return std::unexpected(created.error());
        traces = std::move(*created);
    }
    options.gateway.records = *store;
    auto keeper = std::make_shared<RecordKeeper>(
        RecordKeeper::Options{.store = *store,
                              .access_log = options.records.access_log,
                              .traces = std::move(traces),
                              .copies_are_compared = true});
    options.plan.on_copy_done = [keeper](const RequestReport& copy, const std::string& baseline,
                                         const std::optional<traffic::Comparison>& comparison) {
        keeper->add(
            copy, comparison ? std::optional(comparison_of(*comparison, baseline)) : std::nullopt);
    };
    options.gateway.observers.push_back(std::move(keeper));
    return {};
}

void reload_plan(PlanService& service, const std::function<Result<traffic::Plan>()>& read) {
    if (!read) return;
    auto plan = read();
    const Result<void> done =
        plan ? service.reload(std::move(*plan)) : Result<void>(std::unexpected(plan.error()));
    if (!done) log::error("the plan was not changed: {}", done.error().to_string());
}

}  // namespace

Result<int> run_gateway(GatewayProcessOptions options, const GatewayEvents& events) {
    raise_file_limit();
    Preparers preparers;
    for (const NativePoolSetup& setup : options.native) {
        auto preparer = find_preparer(setup, preparers);
        if (!preparer) return std::unexpected(preparer.error());
        options.gateway.native_pools.push_back({.name = setup.name,
                                                .workers = setup.workers,
                                                .stall_time = setup.stall_time,
                                                .preparer = *preparer});
    }

    auto protection = Protection::load(options.protection, options.gateway);
    if (!protection) return std::unexpected(protection.error());
    net::EventLoop loop;
    options.gateway.caches = options.admission.caches;
    options.gateway.admission =
        std::make_shared<FairGate>(loop, options.gateway.access, std::move(options.admission));
    if (const auto set_up = set_up_records(loop, options); !set_up)
        return std::unexpected(set_up.error());
    GatewayAddresses addresses;
    options.gateway.on_ready = [&] { events.on_ready(addresses); };
    const auto plan = std::make_shared<PlanService>(loop, options.plan);
    options.gateway.stable = plan->controller().plan().stable;
    options.gateway.make_steering = [plan](PoolSet& pools) { return plan->make_steering(pools); };
    options.gateway.observers.push_back(plan);
    auto gateway = Gateway::create(loop, options.gateway);
    if (!gateway) return std::unexpected(gateway.error());
    plan->attach(**gateway);
    loop.on_signal({SIGHUP}, [&](int) { reload_plan(*plan, options.read_plan); });
    addresses = {.url = url_of(options.gateway.listen, (*gateway)->port()),
                 .admin = url_of(options.gateway.admin, (*gateway)->admin_port())};
    int stopped_by = 0;
    loop.on_signal({SIGTERM, SIGINT}, [&](int signal) {
        if (std::exchange(stopped_by, signal) != 0) return loop.stop();
        log::info("stopping; {} requests are running", (*gateway)->live_requests());
        (*gateway)->drain(options.grace, [&loop] { loop.stop(); });
    });
    protection->watch(loop);
    events.on_listening(addresses);
    loop.run();
    return stopped_by;
}

}  // namespace sluice::gateway
