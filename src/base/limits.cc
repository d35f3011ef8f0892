#include "base/limits.h"

#include <array>

namespace sluice::limits {
namespace {

constexpr auto kTable = std::to_array<Limit>({
    {"http.header", kHeaderBytes, "bytes", "431, connection closed"},
    {"http.header_fields", kHeaderFields, "count", "431, connection closed"},
    {"http.body", kBodyBytes, "bytes", "413 payload_too_large, connection closed"},
    {"http.chunk_overhead", kChunkOverheadBytes, "bytes",
     "extensions and trailers beyond 16 bytes a chunk: 400, connection closed"},
    {"http.connections", kConnections, "count", "further connections wait in the listen backlog"},
    {"http.pipelined", kPipelinedBytes, "bytes", "reading pauses until the answer is out"},
    {"http.stream_backlog", kStreamBacklogBytes, "bytes",
     "slow reader: stream ends, request cancelled"},
    {"http.header_time", kHeaderSeconds, "s", "408, connection closed"},
    {"http.body_time", kBodySeconds, "s", "408, connection closed"},
    {"http.idle_time", kIdleSeconds, "s", "idle connection closed"},
    {"http.write_stall", kWriteStallSeconds, "s", "connection closed, request cancelled"},
    {"http.linger_time", kLingerSeconds, "s", "refused client that still sends: connection cut"},
    {"http.linger", kLingerBytes, "bytes", "refused client that still sends: connection cut"},
    {"sse.event", kSseEventBytes, "bytes", "upstream_error"},
    {"json.depth", kJsonDepth, "levels", "400 invalid_request"},
    {"json.memory", kJsonMemoryBytes, "bytes", "400 invalid_request"},
    {"request.messages", kMessages, "count", "400 invalid_request"},
    {"request.max_tokens", kMaxTokens, "count", "400 invalid_request"},
    {"request.stop", kStopStrings, "count", "400 invalid_request"},
    {"request.stop_length", kStopStringBytes, "bytes", "400 invalid_request"},
    {"request.stop_token_ids", kStopTokenIds, "count", "400 invalid_request"},
    {"request.logit_bias", kLogitBiasEntries, "count", "400 invalid_request"},
    {"request.top_logprobs", kTopLogprobs, "count", "400 invalid_request"},
    {"request.id", kRequestIdBytes, "bytes", "x-request-id is replaced by our own"},
    {"request.queue", kQueuedRequests, "count", "503 queue_full with Retry-After"},
    {"request.deadline", kRequestSeconds, "s", "504 deadline_exceeded"},
    {"port.salt", kPortSaltBytes, "bytes", "400 invalid_request"},
    {"port.text", kPortTextBytes, "bytes", "message refused"},
    {"port.sources", kPortSources, "count", "message refused"},
    {"port.kv_components", kPortKvComponents, "count", "message refused"},
    {"port.deadline", kPortDeadlineMilliseconds, "ms", "400 invalid_request"},
    {"engine.waiting", kEngineWaiting, "count", "503 queue_full"},
    {"engine.running", kEngineRunning, "count", "further requests wait"},
    {"gguf.metadata", kGgufMetadataEntries, "count", "file refused"},
    {"gguf.tensors", kGgufTensors, "count", "file refused"},
    {"gguf.string", kGgufStringBytes, "bytes", "file refused"},
    {"gguf.array", kGgufArrayEntries, "count", "file refused"},
    {"gguf.name", kGgufNameBytes, "bytes", "file refused"},
    {"gguf.alignment", kGgufAlignment, "bytes", "file refused"},
    {"model.vocabulary", kModelVocabulary, "count", "file refused"},
    {"model.context", kModelContextTokens, "tokens", "file refused"},
    {"model.layers", kModelLayers, "count", "file refused"},
    {"model.heads", kModelHeads, "count", "file refused"},
    {"model.width", kModelWidth, "elements", "file refused; ranks and head sizes too"},
    {"model.feed_forward", kModelFeedForward, "elements", "file refused"},
    {"model.experts", kModelExperts, "count", "file refused"},
    {"tokenizer.file", kTokenizerFileBytes, "bytes", "file refused"},
    {"tokenizer.tokens", kVocabularyTokens, "count", "file refused"},
    {"tokenizer.merges", kTokenizerMerges, "count", "file refused"},
    {"tokenizer.added_token", kAddedTokenBytes, "bytes", "file refused"},
    {"config.file", kConfigFileBytes, "bytes", "file refused"},
    {"config.key_depth", kConfigKeyDepth, "levels", "file refused"},
    {"config.errors", kConfigErrors, "count", "further errors are not listed"},
    {"config.pools", kConfigPools, "count", "file refused"},
    {"config.workers", kConfigWorkers, "count", "file refused"},
    {"config.threads", kConfigThreads, "count", "file refused"},
    {"log.line", kLogLineBytes, "bytes", "line cut"},
    {"metrics.series", kMetricSeries, "count",
     "further label values of a metric count as \"other\""},
    {"metrics.label", kMetricLabelBytes, "bytes", "label value cut"},
});

}  // namespace

std::span<const Limit> all() { return kTable; }

}  // namespace sluice::limits
