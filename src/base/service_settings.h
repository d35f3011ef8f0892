#pragma once

// The one table of settings: key, field, default, meaning. Reading (service_config.cc) and showing
// (config_rows.cc) walk it; nothing else includes this header.
//
// A visitor is called as visit(key, field, default, meaning[, range]).

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "base/limits.h"
#include "base/service_config.h"

namespace sluice::settings {

using config::Range;

inline constexpr auto kEngines =
    std::to_array<std::string_view>({"native", "openai", "vllm", "sglang", "llama.cpp"});

/// All but our own are given the client's request as it is.
inline bool is_upstream(std::string_view engine) {
    return engine != "native" && std::ranges::find(kEngines, engine) != kEngines.end();
}

template <class Gateway, class Visitor>
void visit_gateway(Gateway& gateway, Visitor&& visit) {
    visit("listen", gateway.listen, HostPort{"127.0.0.1", 8080},
          "where clients connect; port 0 takes a free one");
    visit("admin", gateway.admin, HostPort{"127.0.0.1", 8081}, "metrics and control");
    visit("keys", gateway.keys, std::nullopt,
          "file of API keys; \"\": keys.json of the state folder");
    visit("open", gateway.open, std::nullopt,
          "\"anyone may use this\": without a key, from anywhere");
    visit("tls_certificate", gateway.tls_certificate, std::nullopt, "PEM file; \"\": plain HTTP");
    visit("tls_key", gateway.tls_key, std::nullopt, "PEM file of the certificate's private key");
    visit("tls_admin", gateway.tls_admin, false, "whether the admin address speaks TLS, too");
    visit("ca_bundle", gateway.ca_bundle, std::nullopt,
          "PEM file of who vouches for https pools; \"\": the system's");
    visit("queue_requests", gateway.queue_requests, limits::kQueuedRequests,
          "how many requests may wait", Range{1, limits::kQueuedRequests});
    visit("queue_wait", gateway.queue_wait, std::chrono::seconds(limits::kQueueWaitSeconds),
          "requests that would wait longer are refused at once");
    visit("headers_after", gateway.headers_after, std::chrono::seconds(2),
          "a stream that waits longer gets its head, then comments");
}

template <class Tenant, class Visitor>
void visit_tenant(Tenant& tenant, Visitor&& visit) {
    constexpr Range kRate{0, 1'000'000'000'000};
    visit("name", tenant.name, "", "as `sluice ctl keys add --tenant` has it");
    visit("requests_per_minute", tenant.requests_per_minute, 0, "0: no limit", kRate);
    visit("tokens_per_minute", tenant.tokens_per_minute, 0, "prompt and answer; 0: no limit",
          kRate);
    visit("concurrency", tenant.concurrency, 0, "requests with a worker at once; 0: no limit",
          Range{0, limits::kConnections});
    visit("weight", tenant.weight, 1.0, "share of the service when there is not enough for all");
    visit("priority", tenant.priority, 0, "served before all tenants of lower priority",
          Range{-limits::kPriorityMax, limits::kPriorityMax});
    visit("share", tenant.share, "tenant",
          "who shares cached prefixes from the first user message on: tenant, user or session");
    visit("class", tenant.retention, "chat",
          "how long prompts without tools are kept: agent, chat or none; see [kv]");
    visit("kv_bytes", tenant.kv_bytes, std::uint64_t{0},
          "cached bytes in each tier; 0B: as [kv] tenant_bytes says");
}

inline constexpr std::int64_t kKvReplicasMost = 8;

template <class Node, class Visitor>
void visit_kv_node(Node& node, Visitor&& visit) {
    visit("url", node.url, "", "a cache server: redis://, rediss:// (TLS) or redis+cluster://");
    visit("password_env", node.password_env, "", "the environment variable of its password");
    visit("http", node.http, std::nullopt,
          "of `sluice kvnode`: where it tells what it holds; \"\": another kind of server");
}

template <class Kv, class Visitor>
void visit_kv(Kv& kv, Visitor&& visit) {
    visit("dram", kv.dram, std::uint64_t{512} << 20U,
          "of each engine process for blocks beside its pool; 0B: none");
    visit("directory", kv.directory, std::nullopt,
          "a folder that all engines share, on 3FS, NFS or Lustre; \"\": none");
    visit("ca_bundle", kv.ca_bundle, std::nullopt,
          "PEM file of who vouches for rediss:// nodes; \"\": the system's");
    visit("reuse", kv.reuse, "exact",
          "whose blocks are read: the same build's, or any compatible one's");
    visit("force", kv.force, "auto",
          "blocks are loaded where that is sooner; load and recompute are for tests");
    visit("replicas", kv.replicas, 1, "nodes that hold each block", Range{1, kKvReplicasMost});
    visit("agent", kv.agent, std::chrono::hours(72), "how long blocks of agents stay unused");
    visit("chat", kv.chat, std::chrono::hours(168), "how long blocks of chats stay unused");
    visit("tenant_bytes", kv.tenant_bytes, std::uint64_t{0},
          "of one tenant in each node and engine; 0B: no limit");
    visit("start_nodes", kv.start_nodes, 0, "nodes that `sluice up` starts",
          Range{0, static_cast<std::int64_t>(limits::kKvStores)});
    visit("node_dram", kv.node_dram, std::uint64_t{1} << 30U, "of each of them");
    visit("node_ssd", kv.node_ssd, std::uint64_t{16} << 30U,
          "of each of them, below the state folder; 0B: none");
}

template <class Native, class Visitor>
void visit_native(Native& native, Visitor&& visit) {
    visit("model", native.model, "krill", "a GGUF file, or the built-in model");
    visit("urls", native.urls, std::vector<std::string>{},
          "instead of workers: engines that run already, [PHASE=]URL");
    visit("prefill", native.prefill, 0, "instead of workers: processes that do prompts, and",
          Range{0, limits::kConfigWorkers});
    visit("decode", native.decode, 0, "processes that go on with the answers",
          Range{0, limits::kConfigWorkers});
    if (!native.is_split() && native.urls->empty())
        visit("workers", native.workers, 1, "engine processes", Range{1, limits::kConfigWorkers});
    visit("dp", native.dp, 1, "engines in each process, which share its weights",
          Range{1, static_cast<std::int64_t>(limits::kDpRanks)});
    visit("threads", native.threads, std::nullopt, "of each engine",
          Range{1, limits::kConfigThreads});
    visit("step_time", native.step_time, std::chrono::milliseconds(50),
          "prompts hold answers up no longer");
    visit("stall_timeout", native.stall_timeout, std::chrono::seconds(15),
          "a worker that is silent for longer has lost its requests");
    visit("thinking", native.thinking, false, "whether answers think unless the request says");
}

template <class Upstream, class Visitor>
void visit_upstream(Upstream& upstream, Visitor&& visit) {
    visit("urls", upstream.urls, std::vector<std::string>{}, "where it answers, up to /v1");
    visit("api_key_env", upstream.api_key_env, "", "the environment variable that holds its key");
    visit("model", upstream.model, "", "the name clients use; empty takes every name");
    visit("upstream_model", upstream.upstream_model, "", "what it is called there");
    visit("max_concurrency", upstream.max_concurrency, 0,
          "requests at a time of each address; 0 is unknown", Range{0, limits::kConfigConcurrency});
    visit("usage", upstream.usage, "always", "always ask streams for usage, or as_asked");
    visit("connect_timeout", upstream.connect_timeout, std::chrono::seconds(2),
          "until a connection is there");
    visit("first_token_timeout", upstream.first_token_timeout, std::chrono::seconds(120),
          "until the first event, or the whole of another answer");
    visit("stall_timeout", upstream.stall_timeout, std::chrono::seconds(60),
          "longest silence after it");
    visit("shared_cache", upstream.shared_cache, std::nullopt,
          "\"tenants may share\": cached prefixes are not kept apart");
}

template <class Pool, class Visitor>
void visit_pool(Pool& pool, Visitor&& visit) {
    visit("name", pool.name, "stable", "what plans, records and metrics call it");
    visit("engine", pool.engine, "native", "what kind of engine runs it");
    if (is_upstream(*pool.engine)) {
        visit_upstream(pool.upstream, visit);
    } else {
        visit_native(pool.native, visit);
    }
    visit("price.hour", pool.price_hour, 0.0, "of the whole pool; for cost per success");
}

template <class Record, class Visitor>
void visit_record(Record& record, Visitor&& visit) {
    visit("path", record.path, std::nullopt,
          "folder of the records; \"\": in the state folder of `sluice up`");
    visit("retention_age", record.retention_age, std::chrono::hours(24 * 30),
          "older records are deleted");
    visit("retention_bytes", record.retention_bytes, std::uint64_t{4} << 30U,
          "beyond it the oldest records are deleted");
    visit("access_log", record.access_log, false, "one line a request on stderr, as JSON");
    visit("otlp_endpoint", record.otlp_endpoint, std::nullopt,
          "collector of traces; \"\": OTEL_EXPORTER_OTLP_ENDPOINT, else none");
}

template <class Discovery, class Visitor>
void visit_discovery(Discovery& discovery, Visitor&& visit) {
    visit("etcd", discovery.etcd, std::vector<std::string>{},
          "addresses of etcd, which is asked for workers");
    visit("prefix", discovery.prefix, "/sluice/workers/", "of the workers' keys there");
}

template <class Plan, class Visitor>
void visit_plan(Plan& plan, Visitor&& visit) {
    visit("stable", plan.stable, "", "the pool that answers");
    visit("salt", plan.salt, "", "another one deals conversations out to pools anew");
}

template <class Split, class Visitor>
void visit_split(Split& split, Visitor&& visit) {
    visit("pool", split.pool, "", "the pool that answers a share");
    visit("weight", split.weight, std::nullopt, "its share of the conversations");
    visit("lease", split.lease, std::nullopt, "how long that holds unless applied again");
}

template <class Shadow, class Visitor>
void visit_shadow(Shadow& shadow, Visitor&& visit) {
    visit("pool", shadow.pool, "", "the pool that gets copies");
    visit("share", shadow.share, std::nullopt, "of the conversations");
    visit("max_concurrent", shadow.max_concurrent, 0, "copies at a time");
}

template <class Guard, class Visitor>
void visit_guard(Guard& guard, Visitor&& visit) {
    visit("pool", guard.pool, "", "the pool that is watched");
    visit("metric", guard.metric, "", "what is measured");
    visit("max", guard.max, std::nullopt, "a share, or seconds: more sends all traffic back");
    visit("max_ratio", guard.max_ratio, std::nullopt, "the same, as a multiple of stable's");
    visit("min_samples", guard.min_samples, 0, "of each pool, before it says anything");
    visit("window", guard.window, std::chrono::milliseconds{}, "how far it looks back");
}

}  // namespace sluice::settings
